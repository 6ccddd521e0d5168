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
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"jurat/evidence"
	"jurat/internal/court/card"
	"jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/trust"
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
		must.Need(t, changed != doc, "%q changes nothing in %s", change, doc)
		c := parse(t, changed)
		err := c.Check(&c.Signatures[0], key.Public())
		must.Hold(t, (err == nil) == holds, "%q: %v", change, err)
		after, err := c.Digest()
		must.Hold(t, err == nil && after != before, "%q: the digest stays, %v", change, err)
	}
}

// TestCheck checks signatures of each algorithm, and that one changed character, another key and another algorithm are told.
func TestCheck(t *testing.T) {
	all := keys(t)
	for name, key := range all {
		doc := sign(t, whole, key, "")
		c := parse(t, doc)
		must.Need(t, len(c.Signatures) == 1 && c.Signatures[0].Algorithm == name, "%s: %+v", name, c.Signatures)
		must.Want(t, c.Check(&c.Signatures[0], key.Public()), nil, name)
		changed := parse(t, strings.Replace(doc, "Makes soup", "Makes poison", 1))
		must.Want(t, changed.Check(&changed.Signatures[0], key.Public()), card.ErrNotThisKey, name, "changed")
		for other, key := range all {
			must.Hold(t, other == name || c.Check(&c.Signatures[0], key.Public()) != nil, "%s is checked by a key of %s", name, other)
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
		must.Hold(t, err != nil, "%s: held", name)
	}
	must.Want(t, c.Check(&c.Signatures[0], key.Public()), nil)
	for _, wrong := range []string{`{"signatures":1}`, `{"signatures":[1]}`, `{"signatures":[{"protected":"e30"}]}`, `[]`, `null`, `{"a":1,"a":2}`,
		`{"signatures":[` + strings.TrimSuffix(strings.Repeat(`{"protected":"e30","signature":""},`, 17), ",") + `]}`} {
		must.Refuse(t, "", wrong, "parsed")(card.Parse([]byte(wrong)))
	}
}

// FuzzParse holds that what parses has a digest.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"capabilities":[],"skills":{"a":null},"signatures":[{"protected":"e30","signature":""}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		if c, err := card.Parse(doc); err == nil {
			must.Get(c.Digest())(t)
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
		must.Need(t, os.Getenv("CI") != "true", "JURAT_TEST_A2A names no folder with @a2a-js/sdk: scripts/test installs it")
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
	must.Get(fmt.Fprintf(j.in, "%s\n", doc))(j.t)
	line := must.Get(j.out.ReadBytes('\n'))(j.t)
	err := json.Unmarshal(line, &a)
	must.Need(j.t, err == nil && a.Error == "", "%s: %v %s", line, err, a.Error)
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
		must.Hold(t, j.ask(map[string]any{"ask": "verify", "card": json.RawMessage(ours), "key": public}).Held,
			"%s: the SDK refuses a signature of the form that is checked here", name)
		theirs := j.ask(map[string]any{"ask": "sign", "card": json.RawMessage(whole), "key": jwk(t, name, key, true),
			"header": map[string]string{"alg": name, "kid": "k", "typ": "JOSE"}}).Card
		c := parse(t, string(theirs))
		err := c.Check(&c.Signatures[0], key.Public())
		must.Hold(t, err == nil, "%s: of the SDK's signature: %v", name, err)
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

var moment = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// entry is what a trust file says of a key.
func entry(t testing.TB, name string, key crypto.Signer) trust.Key {
	t.Helper()
	der := must.Get(evidence.MarshalPublicKey(key.Public()))(t)
	return trust.Key{Name: name, Role: evidence.RoleAgent, Algorithm: algorithmOf(t, key), KeyID: idOf(t, key), PublicKey: der, Custody: trust.ByOwner}
}

func trusting(t testing.TB, list ...trust.Key) *trust.Trust {
	t.Helper()
	return must.Get((&trust.Trust{Keys: list}).Prepared())(t)
}

func verified(t testing.TB, c *card.Card, r card.Reader) *card.Report {
	t.Helper()
	if r.At.IsZero() {
		r.At = moment
	}
	return must.Get(c.Verify(r))(t)
}

// naming is a card that names a key.
func naming(t testing.TB, name string, key crypto.Signer, more string) string {
	t.Helper()
	return strings.Replace(whole, `{"uri":"https://a.example/ext","params":{"kept":0}}`,
		`{"uri":"`+card.Extension+`","params":{"role":"agent","name":"`+name+`","key_id":"`+idOf(t, key).String()+`"`+more+`}}`, 1)
}

// TestVerify gives, for each rule, a card that breaks it alone.
func TestVerify(t *testing.T) {
	all, others := keys(t), keys(t)
	own, owner, stranger := all["ES256"], all["EdDSA"], others["ES256"]
	named := naming(t, "a", own, "")
	both := trusting(t, entry(t, "a", own), entry(t, "owner", owner))
	with := func(change func(*trust.Key)) *trust.Trust {
		k := entry(t, "a", own)
		change(&k)
		return trusting(t, k, entry(t, "owner", owner))
	}
	many := make([]trust.Key, 0, 200)
	for range 200 {
		key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		many = append(many, entry(t, "x", key))
	}
	for name, test := range map[string]struct {
		card       string
		trust      *trust.Trust
		outcome    verify.Status
		rule       string // of the first signature
		binding    string
		selfIssued bool
	}{
		"signed":                  {card: sign(t, whole, own, ""), trust: both, outcome: verify.Proved, binding: "-"},
		"another kid":             {card: sign(t, whole, own, "my-key"), trust: both, outcome: verify.Proved, binding: "-"},
		"unsigned":                {card: whole, trust: both, outcome: verify.NotProved, binding: "-"},
		"no trust":                {card: sign(t, whole, own, ""), trust: nil, outcome: verify.NotProved, rule: "unknown-key", binding: "-"},
		"unknown key":             {card: sign(t, whole, stranger, ""), trust: both, outcome: verify.NotProved, rule: "unknown-key", binding: "-"},
		"unknown key and a good":  {card: sign(t, sign(t, whole, stranger, ""), own, ""), trust: both, outcome: verify.Proved, rule: "unknown-key", binding: "-"},
		"kid of another":          {card: sign(t, whole, stranger, idOf(t, own).String()), trust: both, outcome: verify.Refuted, rule: "signature", binding: "-"},
		"a forged one and a good": {card: sign(t, sign(t, whole, stranger, idOf(t, own).String()), owner, ""), trust: both, outcome: verify.Refuted, rule: "signature", binding: "-"},
		"changed":                 {card: strings.Replace(sign(t, whole, own, idOf(t, own).String()), "Makes soup", "Makes poison", 1), trust: both, outcome: verify.Refuted, rule: "signature", binding: "-"},
		"revoked":                 {card: sign(t, whole, own, ""), trust: with(func(k *trust.Key) { k.Revoked = moment.Add(time.Hour) }), outcome: verify.NotProved, rule: "revoked", binding: "-"},
		"ended":                   {card: sign(t, whole, own, ""), trust: with(func(k *trust.Key) { k.NotAfter = moment.Add(-time.Hour) }), outcome: verify.NotProved, rule: "validity", binding: "-"},
		"not yet":                 {card: sign(t, whole, own, ""), trust: with(func(k *trust.Key) { k.NotBefore = moment.Add(time.Hour) }), outcome: verify.NotProved, rule: "validity", binding: "-"},
		"with another": {card: sign(t, whole, own, ""), trust: trusting(t, func() trust.Key {
			k := entry(t, "a", own)
			k.With = []evidence.KeyID{entry(t, "a", stranger).KeyID}
			return k
		}(), entry(t, "a", stranger)), outcome: verify.NotProved, rule: "second-signature", binding: "-"},
		"too many keys": {card: sign(t, whole, own, "my-key"), trust: trusting(t, append(many, entry(t, "a", own))...), outcome: verify.NotProved, rule: "effort", binding: "-"},

		"self-issued":         {card: sign(t, named, own, ""), trust: both, outcome: verify.Proved, selfIssued: true},
		"vouched for":         {card: sign(t, named, owner, ""), trust: both, outcome: verify.Proved},
		"by both":             {card: sign(t, sign(t, named, own, ""), owner, ""), trust: both, outcome: verify.Proved},
		"names, unsigned":     {card: named, trust: both, outcome: verify.NotProved, binding: "unsigned"},
		"names an unknown":    {card: sign(t, naming(t, "a", stranger, ""), owner, ""), trust: both, outcome: verify.NotProved, binding: "unknown-key"},
		"names another actor": {card: sign(t, naming(t, "b", own, ""), owner, ""), trust: both, outcome: verify.Refuted, binding: "actor"},
		"an unknown log":      {card: sign(t, naming(t, "a", own, `,"log":"log+1+AAAA"`), owner, ""), trust: both, outcome: verify.NotProved, binding: "log"},
		"no names in it":      {card: sign(t, strings.Replace(whole, "https://a.example/ext", card.Extension, 1), own, ""), trust: both, outcome: verify.NotProved, binding: "form"},
	} {
		r := verified(t, parse(t, test.card), card.Reader{Trust: test.trust})
		must.Hold(t, r.Outcome == test.outcome && r.SelfIssued == test.selfIssued, "%s: %s, self-issued %v: %+v", name, r.Outcome, r.SelfIssued, r)
		if len(r.Signatures) > 0 && r.Signatures[0].Rule != test.rule {
			t.Errorf("%s: rule %q, want %q", name, r.Signatures[0].Rule, test.rule)
		}
		rule := "-"
		if r.Binding != nil {
			rule = r.Binding.Rule
		}
		must.Hold(t, rule == test.binding, "%s: binding %q, want %q", name, rule, test.binding)
	}
}

// TestNames: a card names one key, in one form, and clashes with every other.
func TestNames(t *testing.T) {
	all := keys(t)
	c := parse(t, naming(t, "a", all["ES256"], ""))
	n, err := c.Names()
	must.Hold(t, err == nil && n != nil && n.Name == "a", "%+v, %v", n, err)
	n, err = parse(t, whole).Names()
	must.Hold(t, n == nil && err == nil, "%+v, %v", n, err)
	twice := strings.Replace(whole, `{"uri":"https://a.example/ext","params":{"kept":0}}`, strings.Repeat(`{"uri":"`+card.Extension+`","params":{}},`, 2)+`{}`, 1)
	for _, wrong := range []string{twice, strings.Replace(whole, "https://a.example/ext", card.Extension, 1)} {
		must.Fail(t, card.ErrNames, wrong)(parse(t, wrong).Names())
	}
	must.Want(t, c.Clashes(evidence.RoleAgent, "a", idOf(t, all["ES256"])), nil)
	for _, err := range []error{c.Clashes(evidence.RoleAgent, "b", idOf(t, all["ES256"])), c.Clashes(evidence.RoleAgent, "a", idOf(t, all["EdDSA"]))} {
		must.Hold(t, err != nil, "a card of another passes for this actor's")
	}
}

// FuzzVerify holds that no card panics, and that none is proved by a trust file that has no key of its signers.
func FuzzVerify(f *testing.F) {
	all := keys(f)
	trusted := trusting(f, entry(f, "a", all["ES256"]))
	f.Add([]byte(sign(f, naming(f, "a", all["ES256"], ""), all["EdDSA"], idOf(f, all["ES256"]).String())))
	f.Add([]byte(whole))
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, err := card.Parse(doc)
		if err != nil {
			return
		}
		r, err := c.Verify(card.Reader{Trust: trusted, At: moment})
		must.Need(t, err != nil || r.Outcome != verify.Proved, "proved: %s", doc)
	})
}

func TestReaddress(t *testing.T) {
	from := must.Get(card.ParseOrigin("https://Agent.example"))(t)
	to := must.Get(card.ParseOrigin("http://127.0.0.1:8420/"))(t)
	for _, c := range []struct{ card, want string }{
		{`{"name":"A","own":1,"signatures":[{"protected":"e30","signature":"AA"}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://agent.example:443/a2a?x=1"},
			{"protocolBinding":"GRPC","url":"https://agent.example/g"},{"protocolBinding":"HTTP+JSON","url":"https://other.example/"},7,{"url":"https://u@agent.example/"}]}`,
			`{"name":"A","own":1,"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"http://127.0.0.1:8420/a2a?x=1"}]}`},
		{`{"name":"A","url":"https://agent.example/v1","preferredTransport":"HTTP+JSON","additionalInterfaces":[{"transport":"grpc","url":"https://agent.example/"},{"transport":"JSONRPC","url":"https://agent.example"}]}`,
			`{"additionalInterfaces":[{"transport":"JSONRPC","url":"http://127.0.0.1:8420"}],"name":"A","preferredTransport":"HTTP+JSON","url":"http://127.0.0.1:8420/v1"}`},
		{`{"name":"A","url":"https://other.example/"}`, "error: the agent card's url is not at https://agent.example:443"},
		{`{"name":"A","url":"https://agent.example/","preferredTransport":"GRPC"}`, "error: the agent card's url is not at https://agent.example:443, or speaks gRPC"},
		{`{"name":"A","supportedInterfaces":[{"protocolBinding":"GRPC","url":"https://agent.example/"}]}`, "error: the agent card names no interface"},
		{`{"name":"A"}`, "error: the agent card names no interface"},
		{`[]`, "error: parsing agent card"},
	} {
		got, err := card.Readdress([]byte(c.card), from, to)
		if wrong, is := strings.CutPrefix(c.want, "error: "); is {
			must.Hold(t, err != nil && strings.Contains(err.Error(), wrong), "%s: %v, want %s", c.card, err, wrong)
		} else if err != nil || string(got) != c.want {
			t.Errorf("%s:\n%s %v, want\n%s", c.card, got, err, c.want)
		}
	}
}

func TestParseOrigin(t *testing.T) {
	for address, wrong := range map[string]string{"https://a": "", "http://127.0.0.1:1/": "", "grpc://a": "gRPC", "a": "want https", "https://a/path": "paths pass", "https://u:p@a": "want https", "https://a?": "want https", "": "want https", "https://\x00": "no URL"} {
		_, err := card.ParseOrigin(address)
		must.Hold(t, (err == nil) == (wrong == "") && (err == nil || strings.Contains(err.Error(), wrong)), "%q: %v", address, err)
	}
}
