package card_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/card"
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
	c, err := card.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func signer(t testing.TB, key crypto.Signer) evidence.Signer {
	t.Helper()
	s, err := evidence.NewSigner(key, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keys(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"ES256": ec, "EdDSA": ed, "RS256": rs}
}

// TestForms gives a card whose members each form reads in its own way.
func TestForms(t *testing.T) {
	c := parse(t, strings.NewReplacer(`"streaming":false`, `"streaming":false,"unknown":{"a":""}`, `"iconUrl"`, ``,
		`"params":{"kept":0}`, `"required":false,"params":{"kept":0,"gone":{"x":[]}}`,
		`"tags":["food"]`, `"tags":[],"examples":[]`, `"version":"1.0.0"`, `"version":"","iconUrl":""`,
		`"protocolVersion":"1.0"`, `"protocolVersion":"","tenant":""`).Replace(whole))
	for form, want := range map[card.Form][]string{
		card.Served: {`"unknown":{"a":""}`, `"required":false`, `"gone":{"x":[]}`, `"tags":[]`, `"examples":[]`, `"version":""`, `"iconUrl":""`,
			`"tenant":""`, `"streaming":false`, `"protocolVersion":""`},
		card.Defaults: {`"unknown":{"a":""}`, `!"required"`, `"gone":{"x":[]}`, `"tags":[]`, `!"examples"`, `"version":""`, `"iconUrl":""`,
			`!"tenant"`, `"streaming":false`, `"protocolVersion":""`},
		card.Emptied: {`!"unknown"`, `!"required"`, `!"gone"`, `!"tags"`, `!"examples"`, `!"version"`, `!"iconUrl"`,
			`!"tenant"`, `"streaming":false`, `!"protocolVersion"`, `"kept":0`},
	} {
		doc, err := c.Canonical(form)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if text, not := strings.CutPrefix(w, "!"); strings.Contains(string(doc), text) == not {
				t.Errorf("%s: want %s in %s", form, w, doc)
			}
		}
	}
	if got := strings.Join(c.Uncovered(card.Emptied), " "); got != "/capabilities/unknown /iconUrl /skills/0/examples /skills/0/tags /supportedInterfaces/0/protocolVersion /supportedInterfaces/0/tenant /version" {
		t.Errorf("uncovered: %s", got)
	}
}

// TestSignAndCheck signs with each algorithm, and checks that one changed character, another key and another algorithm are told.
func TestSignAndCheck(t *testing.T) {
	all := keys(t)
	for name, key := range all {
		doc, err := parse(t, whole).Sign(signer(t, key), "")
		if err != nil {
			t.Fatal(err)
		}
		c := parse(t, string(doc))
		if len(c.Signatures) != 1 || c.Signatures[0].Algorithm != name {
			t.Fatalf("%s: %+v", name, c.Signatures)
		}
		if form, err := c.Check(&c.Signatures[0], key.Public()); err != nil || form != card.Defaults {
			t.Errorf("%s: %q, %v", name, form, err)
		}
		changed := parse(t, strings.Replace(string(doc), "Makes soup", "Makes poison", 1))
		if _, err := changed.Check(&changed.Signatures[0], key.Public()); !errors.Is(err, card.ErrNotThisKey) {
			t.Errorf("%s, changed: %v", name, err)
		}
		for other, key := range all {
			if other == name {
				continue
			}
			if _, err := c.Check(&c.Signatures[0], key.Public()); err == nil {
				t.Errorf("%s is checked by a key of %s", name, other)
			}
		}
		again, err := c.Sign(signer(t, all["ES256"]), "second")
		if err != nil {
			t.Fatal(err)
		}
		two := parse(t, string(again))
		if _, err := two.Check(&two.Signatures[0], key.Public()); err != nil || len(two.Signatures) != 2 || two.Signatures[1].KeyID != "second" {
			t.Errorf("%s with a second signature: %v, %+v", name, err, two.Signatures)
		}
	}
}

// TestSignRefuses holds that no card is signed that other implementations read in another way.
func TestSignRefuses(t *testing.T) {
	key := signer(t, keys(t)["ES256"])
	for member, place := range map[string]string{
		`"iconUrl":"",`:     "/iconUrl",
		`"vendor":{"a":1},`: "/vendor",
		`"securitySchemes":{},"documentationUrl":"x",`: "", // twice: refused when it is parsed
	} {
		c, err := card.Parse([]byte(strings.Replace(whole, `"version"`, member+`"version"`, 1)))
		if err == nil {
			_, err = c.Sign(key, "")
		}
		if err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: %v", member, err)
		}
	}
}

// TestHostileSignatures holds that headers which ask for another kind of check get none.
func TestHostileSignatures(t *testing.T) {
	key := keys(t)["ES256"]
	doc, err := parse(t, whole).Sign(signer(t, key), "")
	if err != nil {
		t.Fatal(err)
	}
	c := parse(t, string(doc))
	good := strings.Split(strings.Split(string(doc), `"protected":"`)[1], `"`)[0]
	b64 := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, protected := range map[string]string{
		"none":     b64(`{"alg":"none","kid":"k"}`),
		"a MAC":    b64(`{"alg":"HS256","kid":"k"}`),
		"critical": b64(`{"alg":"ES256","kid":"k","crit":["b64"],"b64":false}`),
		"not JSON": b64(`alg`),
		"twice":    b64(`{"alg":"none","alg":"ES256"}`),
		"padding":  good + "=",
		"another":  b64(`{"alg":"ES256","kid":"k","typ":"JOSE"}`),
	} {
		c2, err := card.Parse([]byte(strings.Replace(string(doc), good, protected, 1)))
		if err == nil {
			_, err = c2.Check(&c2.Signatures[0], key.Public())
		}
		if err == nil {
			t.Errorf("%s: held", name)
		}
	}
	if _, err := c.Check(&c.Signatures[0], key.Public()); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{`{"signatures":1}`, `{"signatures":[1]}`, `{"signatures":[{"protected":"e30"}]}`, `[]`, `null`, `{"a":1,"a":2}`,
		`{"signatures":[` + strings.TrimSuffix(strings.Repeat(`{"protected":"e30","signature":""},`, 17), ",") + `]}`} {
		if _, err := card.Parse([]byte(wrong)); err == nil {
			t.Errorf("%s: parsed", wrong)
		}
	}
}

// FuzzParse holds that what parses has a digest, and that no form of it panics.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"capabilities":[],"skills":{"a":null},"signatures":[{"protected":"e30","signature":""}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, err := card.Parse(doc)
		if err != nil {
			return
		}
		if _, err := c.Digest(); err != nil {
			t.Fatal(err)
		}
		for _, form := range card.Forms() {
			if once, err := c.Canonical(form); err == nil {
				again := parse(t, string(once))
				if twice, err := again.Canonical(form); err != nil || string(once) != string(twice) {
					t.Fatalf("%s: %s, then %s (%v)", form, once, twice, err)
				}
			}
			c.Uncovered(form)
		}
	})
}
