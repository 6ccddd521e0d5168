package card_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/card"
	"jurat/verify"
	"jurat/verify/trust"
)

var moment = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// entry is what a trust file says of a key.
func entry(t testing.TB, name string, key crypto.Signer) trust.Key {
	t.Helper()
	s := signer(t, key)
	der, err := evidence.MarshalPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return trust.Key{Name: name, Role: evidence.RoleAgent, Algorithm: s.Info().Algorithm, KeyID: s.Info().KeyID, PublicKey: der, Custody: trust.ByOwner}
}

func trusting(t testing.TB, list ...trust.Key) *trust.Trust {
	t.Helper()
	made, err := (&trust.Trust{Keys: list}).Prepared()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func signed(t testing.TB, c *card.Card, key crypto.Signer, kid string) *card.Card {
	t.Helper()
	doc, err := c.Sign(signer(t, key), kid)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(doc))
}

func verified(t testing.TB, c *card.Card, r card.Reader) *card.Report {
	t.Helper()
	if r.At.IsZero() {
		r.At = moment
	}
	report, err := c.Verify(r)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func naming(t testing.TB, c *card.Card, name string, key crypto.Signer) *card.Card {
	t.Helper()
	c, err := c.WithNames(card.Names{Role: evidence.RoleAgent, Name: name, KeyID: signer(t, key).Info().KeyID})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestVerify gives, for each rule, a card that breaks it alone.
func TestVerify(t *testing.T) {
	all, others := keys(t), keys(t)
	own, owner, stranger := all["ES256"], all["EdDSA"], others["ES256"]
	plain := parse(t, whole)
	named := naming(t, plain, "a", own)
	both := trusting(t, entry(t, "a", own), entry(t, "owner", owner))
	with := func(change func(*trust.Key)) *trust.Trust {
		k := entry(t, "a", own)
		change(&k)
		return trusting(t, k, entry(t, "owner", owner))
	}
	changed := func(c *card.Card, old, new string) *card.Card {
		doc, err := c.Sign(signer(t, own), "")
		if err != nil {
			t.Fatal(err)
		}
		return parse(t, strings.Replace(string(doc), old, new, 1))
	}
	many := make([]trust.Key, 0, 200)
	for range 200 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		many = append(many, entry(t, "x", key))
	}
	for name, test := range map[string]struct {
		card       *card.Card
		trust      *trust.Trust
		outcome    verify.Status
		rule       string // of the first signature
		binding    string
		selfIssued bool
	}{
		"signed":                  {card: signed(t, plain, own, ""), trust: both, outcome: verify.Proved, binding: "-"},
		"another kid":             {card: signed(t, plain, own, "my-key"), trust: both, outcome: verify.Proved, binding: "-"},
		"unsigned":                {card: plain, trust: both, outcome: verify.NotProved, binding: "-"},
		"no trust":                {card: signed(t, plain, own, ""), trust: nil, outcome: verify.NotProved, rule: "unknown-key", binding: "-"},
		"unknown key":             {card: signed(t, plain, stranger, ""), trust: both, outcome: verify.NotProved, rule: "unknown-key", binding: "-"},
		"unknown key and a good":  {card: signed(t, signed(t, plain, stranger, ""), own, ""), trust: both, outcome: verify.Proved, rule: "unknown-key", binding: "-"},
		"kid of another":          {card: signed(t, plain, stranger, signer(t, own).Info().KeyID.String()), trust: both, outcome: verify.Refuted, rule: "signature", binding: "-"},
		"a forged one and a good": {card: signed(t, signed(t, plain, stranger, signer(t, own).Info().KeyID.String()), owner, ""), trust: both, outcome: verify.Refuted, rule: "signature", binding: "-"},
		"changed":                 {card: changed(plain, "Makes soup", "Makes poison"), trust: both, outcome: verify.Refuted, rule: "signature", binding: "-"},
		"revoked":                 {card: signed(t, plain, own, ""), trust: with(func(k *trust.Key) { k.Revoked = moment.Add(time.Hour) }), outcome: verify.NotProved, rule: "revoked", binding: "-"},
		"ended":                   {card: signed(t, plain, own, ""), trust: with(func(k *trust.Key) { k.NotAfter = moment.Add(-time.Hour) }), outcome: verify.NotProved, rule: "validity", binding: "-"},
		"not yet":                 {card: signed(t, plain, own, ""), trust: with(func(k *trust.Key) { k.NotBefore = moment.Add(time.Hour) }), outcome: verify.NotProved, rule: "validity", binding: "-"},
		"with another": {card: signed(t, plain, own, ""), trust: trusting(t, func() trust.Key {
			k := entry(t, "a", own)
			k.With = []evidence.KeyID{entry(t, "a", stranger).KeyID}
			return k
		}(), entry(t, "a", stranger)), outcome: verify.NotProved, rule: "second-signature", binding: "-"},
		"too many keys": {card: signed(t, plain, own, "my-key"), trust: trusting(t, append(many, entry(t, "a", own))...), outcome: verify.NotProved, rule: "effort", binding: "-"},

		"self-issued":         {card: signed(t, named, own, ""), trust: both, outcome: verify.Proved, selfIssued: true},
		"vouched for":         {card: signed(t, named, owner, ""), trust: both, outcome: verify.Proved},
		"by both":             {card: signed(t, signed(t, named, own, ""), owner, ""), trust: both, outcome: verify.Proved},
		"names, unsigned":     {card: named, trust: both, outcome: verify.NotProved, binding: "unsigned"},
		"names an unknown":    {card: signed(t, naming(t, plain, "a", stranger), owner, ""), trust: both, outcome: verify.NotProved, binding: "unknown-key"},
		"names another actor": {card: signed(t, naming(t, plain, "b", own), owner, ""), trust: both, outcome: verify.Refuted, binding: "actor"},
		"an unknown log": {card: signed(t, func() *card.Card {
			c, err := plain.WithNames(card.Names{Role: evidence.RoleAgent, Name: "a", KeyID: signer(t, own).Info().KeyID, Log: "log+1+AAAA"})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}(), owner, ""), trust: both, outcome: verify.NotProved, binding: "log"},
		"no names in it": {card: signed(t, parse(t, strings.Replace(whole, "https://a.example/ext", card.Extension, 1)), own, ""), trust: both, outcome: verify.NotProved, binding: "form"},
	} {
		r := verified(t, test.card, card.Reader{Trust: test.trust})
		if r.Outcome != test.outcome || r.SelfIssued != test.selfIssued {
			t.Errorf("%s: %s, self-issued %v: %+v", name, r.Outcome, r.SelfIssued, r)
		}
		if len(r.Signatures) > 0 && r.Signatures[0].Rule != test.rule {
			t.Errorf("%s: rule %q, want %q", name, r.Signatures[0].Rule, test.rule)
		}
		rule := "-"
		if r.Binding != nil {
			rule = r.Binding.Rule
		}
		if rule != test.binding {
			t.Errorf("%s: binding %q, want %q", name, rule, test.binding)
		}
	}
}

// TestNamesStayInPlace holds that a signed card gets no other names, and that names survive every form.
func TestNamesStayInPlace(t *testing.T) {
	all := keys(t)
	c := naming(t, parse(t, whole), "a", all["ES256"])
	again := naming(t, c, "b", all["ES256"])
	if n, err := again.Names(); err != nil || n == nil || n.Name != "b" {
		t.Errorf("%+v, %v", n, err)
	}
	for _, form := range card.Forms() {
		doc, err := c.Canonical(form)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := parse(t, string(doc)).Names(); err != nil || n == nil || n.Name != "a" {
			t.Errorf("%s: %+v, %v", form, n, err)
		}
	}
	s := signed(t, c, all["ES256"], "")
	if _, err := s.WithNames(card.Names{Role: evidence.RoleAgent, Name: "b", KeyID: signer(t, all["ES256"]).Info().KeyID}); err == nil {
		t.Error("a signed card got other names")
	}
	if same := naming(t, s, "a", all["ES256"]); len(same.Signatures) != 1 {
		t.Error("the same names took the signature away")
	}
	if n, err := parse(t, whole).Names(); n != nil || err != nil {
		t.Errorf("%+v, %v", n, err)
	}
	twice := strings.Replace(whole, `{"uri":"https://a.example/ext","params":{"kept":0}}`, strings.Repeat(`{"uri":"`+card.Extension+`","params":{}},`, 2)+`{}`, 1)
	for _, wrong := range []string{twice, strings.Replace(whole, "https://a.example/ext", card.Extension, 1)} {
		if _, err := parse(t, wrong).Names(); !errors.Is(err, card.ErrNames) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if err := c.Clashes(evidence.RoleAgent, "a", signer(t, all["ES256"]).Info().KeyID); err != nil {
		t.Error(err)
	}
	for _, err := range []error{c.Clashes(evidence.RoleAgent, "b", signer(t, all["ES256"]).Info().KeyID),
		c.Clashes(evidence.RoleAgent, "a", signer(t, all["EdDSA"]).Info().KeyID)} {
		if err == nil {
			t.Error("a card of another passes for this actor's")
		}
	}
}

// FuzzVerify holds that no card panics, and that none is proved by a trust file that has no key of its signers.
func FuzzVerify(f *testing.F) {
	all := keys(f)
	trusted := trusting(f, entry(f, "a", all["ES256"]))
	doc, err := naming(f, parse(f, whole), "a", all["ES256"]).Sign(signer(f, all["EdDSA"]), signer(f, all["ES256"]).Info().KeyID.String())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Add([]byte(whole))
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, err := card.Parse(doc)
		if err != nil {
			return
		}
		r, err := c.Verify(card.Reader{Trust: trusted, At: moment})
		if err == nil && r.Outcome == verify.Proved {
			t.Fatalf("proved: %s", doc)
		}
	})
}
