package card_test

import (
	"bufio"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"jurat/internal/card"
)

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
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	return &judge{t: t, in: in, out: bufio.NewReader(out)}
}

type answer struct {
	Canonical string
	Card      json.RawMessage
	Held      bool
	Error     string
}

func (j *judge) ask(question map[string]any) (a answer) {
	j.t.Helper()
	doc, err := json.Marshal(question)
	if err != nil {
		j.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(j.in, "%s\n", doc); err != nil {
		j.t.Fatal(err)
	}
	line, err := j.out.ReadBytes('\n')
	if err != nil {
		j.t.Fatal(err)
	}
	if err := json.Unmarshal(line, &a); err != nil || a.Error != "" {
		j.t.Fatalf("%s: %v %s", line, err, a.Error)
	}
	return a
}

// randomly drops, empties and adds members, as a card that fits the schema may have them.
func randomly(r *rand.Rand, value any, depth int) any {
	switch v := value.(type) {
	case map[string]any:
		for member, inner := range v {
			switch r.IntN(12) {
			case 0:
				delete(v, member)
			case 1:
				switch inner.(type) {
				case string:
					v[member] = ""
				case []any:
					v[member] = []any{}
				case bool:
					v[member] = r.IntN(2) == 0
				}
			default:
				v[member] = randomly(r, inner, depth+1)
			}
		}
		if r.IntN(8) == 0 && depth != 3 { // not among names that are the card's own, as of security schemes
			v["x-vendor"] = map[string]any{"n": 1.5, "empty": []any{}}
		}
	case []any:
		for i := range v {
			v[i] = randomly(r, v[i], depth+1)
		}
	}
	return value
}

const rich = `{"name":"Recipe Agent","description":"Cooks – и ещё","version":"1.0.0","iconUrl":"https://a.example/i","documentationUrl":"https://a.example/d",
 "supportedInterfaces":[{"url":"https://a.example/v1","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":"t"},{"url":"https://a.example/v2","protocolBinding":"GRPC","protocolVersion":"1.0"}],
 "provider":{"url":"https://a.example","organization":"Example"},
 "capabilities":{"streaming":false,"pushNotifications":true,"extendedAgentCard":false,"extensions":[{"uri":"https://a.example/ext","description":"d","required":true,"params":{"kept":0,"list":["",1e21,0.1],"none":{}}}]},
 "securityRequirements":[{"schemes":{"key":{"list":["read"]}}}],
 "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain","image/png"],
 "skills":[{"id":"s","name":"Soup","description":"Makes soup","tags":["food"],"examples":["e"],"inputModes":["text/plain"],"outputModes":[],"securityRequirements":[{"schemes":{"key":{"list":[]}}}]}]}`

// TestCanonicalAsSDK compares the form Emptied with what the SDK makes of the same cards.
func TestCanonicalAsSDK(t *testing.T) {
	j := startJudge(t)
	for seed := range uint64(500) {
		var tree any
		if err := json.Unmarshal([]byte(rich), &tree); err != nil {
			t.Fatal(err)
		}
		tree = randomly(rand.New(rand.NewPCG(seed, 1)), tree, 0)
		doc, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parse(t, string(doc)).Canonical(card.Emptied)
		if err != nil {
			t.Fatal(err)
		}
		if want := j.ask(map[string]any{"ask": "canonical", "card": tree}).Canonical; want != string(got) {
			t.Fatalf("%s\nwe:  %s\nSDK: %s", doc, got, want)
		}
	}
}

// TestSignaturesAsSDK lets the SDK check what is signed here, and checks what the SDK signed.
func TestSignaturesAsSDK(t *testing.T) {
	j := startJudge(t)
	for name, key := range keys(t) {
		if name == "RS256" {
			continue // its JWK needs the primes; the other two show how the card is read
		}
		ours, err := parse(t, whole).Sign(signer(t, key), "")
		if err != nil {
			t.Fatal(err)
		}
		public := jwk(t, name, key, false)
		if !j.ask(map[string]any{"ask": "verify", "card": json.RawMessage(ours), "key": public}).Held {
			t.Errorf("%s: the SDK refuses our signature", name)
		}
		forged := strings.Replace(string(ours), "Cooks", "Robs", 1)
		if j.ask(map[string]any{"ask": "verify", "card": json.RawMessage(forged), "key": public}).Held {
			t.Errorf("%s: the SDK takes a changed card", name)
		}
		theirs := j.ask(map[string]any{"ask": "sign", "card": json.RawMessage(rich), "key": jwk(t, name, key, true),
			"header": map[string]string{"alg": name, "kid": "k", "typ": "JOSE"}}).Card
		c := parse(t, string(theirs))
		if form, err := c.Check(&c.Signatures[0], key.Public()); err != nil || form != card.Emptied {
			t.Errorf("%s: of the SDK's signature: %q, %v", name, form, err)
		}
	}
}

func jwk(t *testing.T, name string, key crypto.Signer, private bool) map[string]string {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	out := map[string]string{"alg": name}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		point, err := key.PublicKey.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		out["kty"], out["crv"], out["x"], out["y"] = "EC", "P-256", b64(point[1:33]), b64(point[33:])
		if private {
			d, err := key.Bytes()
			if err != nil {
				t.Fatal(err)
			}
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
