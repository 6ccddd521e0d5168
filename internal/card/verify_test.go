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
	"jurat/internal/must"
	"jurat/verify"
	"jurat/verify/trust"
)

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

// TestNames: a card names one key, in one form, and clashes with every other.
func TestNames(t *testing.T) {
	all := keys(t)
	c := parse(t, naming(t, "a", all["ES256"], ""))
	if n, err := c.Names(); err != nil || n == nil || n.Name != "a" {
		t.Errorf("%+v, %v", n, err)
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
	must.Want(t, c.Clashes(evidence.RoleAgent, "a", idOf(t, all["ES256"])), nil)
	for _, err := range []error{c.Clashes(evidence.RoleAgent, "b", idOf(t, all["ES256"])), c.Clashes(evidence.RoleAgent, "a", idOf(t, all["EdDSA"]))} {
		if err == nil {
			t.Error("a card of another passes for this actor's")
		}
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
		if err == nil && r.Outcome == verify.Proved {
			t.Fatalf("proved: %s", doc)
		}
	})
}
