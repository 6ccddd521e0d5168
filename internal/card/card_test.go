package card_test

import (
	"bufio"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"jurat/evidence"
	"jurat/internal/card"
	"jurat/internal/must"
)

const whole = `{"name":"Recipe Agent","description":"Cooks","version":"1.0.0",
 "supportedInterfaces":[{"url":"https://a.example/v1","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
 "provider":{"url":"https://a.example","organization":"Example"},
 "capabilities":{"streaming":false,"extensions":[{"uri":"https://a.example/ext","params":{"kept":0}}]},
 "securitySchemes":{"key":{"apiKeySecurityScheme":{"location":"header","name":"X-Key"}}},
 "securityRequirements":[{"schemes":{"key":{"list":["read"]}}}],
 "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
 "skills":[{"id":"s","name":"Soup","description":"Makes soup","tags":["food"]}]}`

func parse(t testing.TB, doc string) *card.Card {
	t.Helper()
	return must.Get(card.Parse([]byte(doc)))(t)
}

func idOf(t testing.TB, key crypto.Signer) evidence.KeyID {
	t.Helper()
	return must.Get(evidence.KeyIDOf(key.Public()))(t)
}

// sign adds a signature to a card, which has no members with their default value.
func sign(t testing.TB, doc string, key crypto.Signer, kid string) string {
	t.Helper()
	var tree map[string]any
	must.Do(t, json.Unmarshal([]byte(doc), &tree))
	given, _ := tree["signatures"].([]any)
	delete(tree, "signatures")
	payload, err := json.Marshal(tree)
	if err == nil {
		payload, err = evidence.Canonical(payload)
	}
	must.Do(t, err)
	algorithm := map[evidence.Algorithm]jose.SignatureAlgorithm{evidence.ES256: jose.ES256, evidence.RS256: jose.RS256, evidence.Ed25519: jose.EdDSA}[algorithmOf(t, key)]
	by := must.Get(jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, (&jose.SignerOptions{}).WithType("JOSE")))(t)
	made := must.Get(by.Sign(payload))(t)
	compact := must.Get(made.DetachedCompactSerialize())(t)
	protected, signature, _ := strings.Cut(compact, "..")
	tree["signatures"] = append(given, map[string]any{"protected": protected, "signature": signature})
	return string(must.Get(json.Marshal(tree))(t))
}

func algorithmOf(t testing.TB, key crypto.Signer) evidence.Algorithm {
	t.Helper()
	return must.Get(evidence.AlgorithmOf(key.Public()))(t)
}

func keys(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	ec := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must.Do(t, err)
	rs := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	return map[string]crypto.Signer{"ES256": ec, "EdDSA": ed, "RS256": rs}
}

// TestDefaults: a signature holds over a card that says defaults which the signer left out, where the schema makes no difference between both, and
// over no other change. The digest is of the card as it is served.
func TestDefaults(t *testing.T) {
	key := keys(t)["ES256"]
	doc := sign(t, whole, key, "k")
	before := must.Get(parse(t, doc).Digest())(t)
	for change, holds := range map[[2]string]bool{
		{`"name":"Soup"`, `"name":"Soup","examples":[],"inputModes":null`}:   true,
		{`"uri":"https`, `"required":false,"description":"","uri":"https`}:   true,
		{`"version":"1.0.0"`, `"securitySchemes2":{},"version":"1.0.0"`}:     false, // not in the schema
		{`"version":"1.0.0"`, `"iconUrl":"","version":"1.0.0"`}:              false, // optional: a default that is there is another card
		{`"streaming":false`, `"streaming":false,"pushNotifications":false`}: false,
		{`,"streaming":false`, ``}:                                           false,
		{`"tags":["food"]`, `"tags":[]`}:                                     false,
		{`{"kept":0}`, `{"kept":0,"more":""}`}:                               false,
		{`"Makes soup"`, `"Makes poison"`}:                                   false,
	} {
		changed := strings.Replace(doc, change[0], change[1], 1)
		if changed == doc {
			t.Fatalf("%q changes nothing in %s", change, doc)
		}
		c := parse(t, changed)
		if err := c.Check(&c.Signatures[0], key.Public()); (err == nil) != holds {
			t.Errorf("%q: %v", change, err)
		}
		if after, err := c.Digest(); err != nil || after == before {
			t.Errorf("%q: the digest stays, %v", change, err)
		}
	}
}

// TestCheck checks signatures of each algorithm, and that one changed character, another key and another algorithm are told.
func TestCheck(t *testing.T) {
	all := keys(t)
	for name, key := range all {
		doc := sign(t, whole, key, "")
		c := parse(t, doc)
		if len(c.Signatures) != 1 || c.Signatures[0].Algorithm != name {
			t.Fatalf("%s: %+v", name, c.Signatures)
		}
		if err := c.Check(&c.Signatures[0], key.Public()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		changed := parse(t, strings.Replace(doc, "Makes soup", "Makes poison", 1))
		if err := changed.Check(&changed.Signatures[0], key.Public()); !errors.Is(err, card.ErrNotThisKey) {
			t.Errorf("%s, changed: %v", name, err)
		}
		for other, key := range all {
			if other != name && c.Check(&c.Signatures[0], key.Public()) == nil {
				t.Errorf("%s is checked by a key of %s", name, other)
			}
		}
		two := parse(t, sign(t, doc, all["ES256"], "second"))
		if err := two.Check(&two.Signatures[0], key.Public()); err != nil || len(two.Signatures) != 2 || two.Signatures[1].KeyID != "second" {
			t.Errorf("%s with a second signature: %v, %+v", name, err, two.Signatures)
		}
	}
}

// TestHostileSignatures holds that headers which ask for another kind of check get none.
func TestHostileSignatures(t *testing.T) {
	key := keys(t)["ES256"]
	doc := sign(t, whole, key, "k")
	c := parse(t, doc)
	good := strings.Split(strings.Split(doc, `"protected":"`)[1], `"`)[0]
	b64 := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, protected := range map[string]string{
		"none":     b64(`{"alg":"none","kid":"k"}`),
		"a MAC":    b64(`{"alg":"HS256","kid":"k"}`),
		"critical": b64(`{"alg":"ES256","kid":"k","crit":["b64"],"b64":false}`),
		"not JSON": b64(`alg`),
		"twice":    b64(`{"alg":"none","alg":"ES256"}`),
		"padding":  good + "=",
		"another":  b64(`{"alg":"ES256","kid":"j","typ":"JOSE"}`),
		"spaces":   good[:8] + " " + good[8:],
		"a dot":    good + ".",
	} {
		c2, err := card.Parse([]byte(strings.Replace(doc, good, protected, 1)))
		if err == nil {
			err = c2.Check(&c2.Signatures[0], key.Public())
		}
		if err == nil {
			t.Errorf("%s: held", name)
		}
	}
	must.Want(t, c.Check(&c.Signatures[0], key.Public()), nil)
	for _, wrong := range []string{`{"signatures":1}`, `{"signatures":[1]}`, `{"signatures":[{"protected":"e30"}]}`, `[]`, `null`, `{"a":1,"a":2}`,
		`{"signatures":[` + strings.TrimSuffix(strings.Repeat(`{"protected":"e30","signature":""},`, 17), ",") + `]}`} {
		if _, err := card.Parse([]byte(wrong)); err == nil {
			t.Errorf("%s: parsed", wrong)
		}
	}
}

// FuzzParse holds that what parses has a digest.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"capabilities":[],"skills":{"a":null},"signatures":[{"protected":"e30","signature":""}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		if c, err := card.Parse(doc); err == nil {
			if _, err := c.Digest(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A judge is the A2A project's own SDK for JavaScript. 'scripts/test' installs it and names its folder.
type judge struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func startJudge(t *testing.T) *judge {
	folder := os.Getenv("JURAT_TEST_A2A")
	if folder == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("JURAT_TEST_A2A names no folder with @a2a-js/sdk: scripts/test installs it")
		}
		t.Skip("JURAT_TEST_A2A names no folder with @a2a-js/sdk: scripts/test installs it")
	}
	cmd := exec.Command("node", "testdata/judge.mjs", folder)
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	return &judge{t: t, in: in, out: bufio.NewReader(out)}
}

type answer struct {
	Card  json.RawMessage
	Held  bool
	Error string
}

func (j *judge) ask(question map[string]any) (a answer) {
	j.t.Helper()
	doc := must.Get(json.Marshal(question))(j.t)
	if _, err := fmt.Fprintf(j.in, "%s\n", doc); err != nil {
		j.t.Fatal(err)
	}
	line := must.Get(j.out.ReadBytes('\n'))(j.t)
	if err := json.Unmarshal(line, &a); err != nil || a.Error != "" {
		j.t.Fatalf("%s: %v %s", line, err, a.Error)
	}
	return a
}

// TestSignaturesAsSDK lets the SDK check what is signed here, and checks what the SDK signed.
func TestSignaturesAsSDK(t *testing.T) {
	j := startJudge(t)
	for name, key := range keys(t) {
		if name == "RS256" {
			continue // its JWK needs the primes; the other two show how the card is read
		}
		ours := sign(t, whole, key, "k")
		public := jwk(t, name, key, false)
		if !j.ask(map[string]any{"ask": "verify", "card": json.RawMessage(ours), "key": public}).Held {
			t.Errorf("%s: the SDK refuses a signature of the form that is checked here", name)
		}
		theirs := j.ask(map[string]any{"ask": "sign", "card": json.RawMessage(whole), "key": jwk(t, name, key, true),
			"header": map[string]string{"alg": name, "kid": "k", "typ": "JOSE"}}).Card
		c := parse(t, string(theirs))
		if err := c.Check(&c.Signatures[0], key.Public()); err != nil {
			t.Errorf("%s: of the SDK's signature: %v", name, err)
		}
	}
}

func jwk(t *testing.T, name string, key crypto.Signer, private bool) map[string]string {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	out := map[string]string{"alg": name}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		point := must.Get(key.PublicKey.Bytes())(t)
		out["kty"], out["crv"], out["x"], out["y"] = "EC", "P-256", b64(point[1:33]), b64(point[33:])
		if private {
			d := must.Get(key.Bytes())(t)
			out["d"] = b64(d)
		}
	case ed25519.PrivateKey:
		out["kty"], out["crv"], out["x"] = "OKP", "Ed25519", b64(key.Public().(ed25519.PublicKey))
		if private {
			out["d"] = b64(key.Seed())
		}
	}
	return out
}
