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
	"os"
	"os/exec"
	"testing"

	"jurat/internal/must"
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
