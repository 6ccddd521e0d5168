package verify_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/verify"
	"jurat/verify/trust"
)

// TestTrustMadeByHand: a trust made in Go is checked at first use, and stays unchanged.
func TestTrustMadeByHand(t *testing.T) {
	r, o := standalone(t, output("a"))
	want := verify.Record(r, o)
	made := func() *trust.Trust {
		trusted := &trust.Trust{Logs: o.Trust.Logs, Witnesses: o.Trust.Witnesses, Quorum: o.Trust.Quorum}
		for _, k := range o.Trust.Keys {
			trusted.Keys = append(trusted.Keys, trust.Key{Name: k.Name, Role: k.Role, Algorithm: k.Algorithm, KeyID: k.KeyID, PublicKey: k.PublicKey, Custody: k.Custody,
				NotBefore: k.NotBefore, NotAfter: k.NotAfter, Revoked: k.Revoked, With: k.With, WithFrom: k.WithFrom})
		}
		for _, a := range o.Trust.Authorities {
			trusted.Authorities = append(trusted.Authorities, trust.Authority{Name: a.Name, Certificate: a.Certificate, Clock: a.Clock, Policies: a.Policies})
		}
		return trusted
	}
	by := o
	by.Trust = made()
	for range 2 {
		got := verify.Record(r, by)
		if diff := cmp.Diff(want.Guarantees, got.Guarantees); diff != "" || got.Outcome != verify.Proved {
			t.Errorf("%s: %s", got.Outcome, diff)
		}
	}
	for name, spoil := range map[string]func(*trust.Trust){
		"a certificate that is none": func(t *trust.Trust) { t.Authorities[0].Certificate = []byte("x") },
		"no certificate":             func(t *trust.Trust) { t.Authorities[0].Certificate = nil },
		"a key that is none":         func(t *trust.Trust) { t.Keys[0].PublicKey = nil },
		"another key id":             func(t *trust.Trust) { t.Keys[0].KeyID = evidence.DigestOf([]byte("x")) },
		"a CA without anything":      func(t *trust.Trust) { t.CAs = append(t.CAs, trust.CA{}) },
		"a witness that is none":     func(t *trust.Trust) { t.Witnesses, t.Quorum = []string{"x"}, 1 },
	} {
		by.Trust = made()
		spoil(by.Trust)
		got := verify.Record(r, by)
		if got.Outcome != verify.NotProved {
			t.Errorf("%s: %s: %+v", name, got.Outcome, got.Details)
		}
	}
}

// TestRequire: the report names what does not count. It counts if the reader requires it.
func TestRequire(t *testing.T) {
	r, o := standalone(t, output("a"))
	report := verify.Record(r, o)
	if report.Outcome != verify.Proved || !cmp.Equal(report.Uncounted, []verify.Guarantee{verify.NonRepudiation}) {
		t.Errorf("%s, uncounted %v", report.Outcome, report.Uncounted)
	}
	for g, want := range map[verify.Guarantee]verify.Status{verify.NonRepudiation: verify.NotProved, verify.Configuration: verify.Proved, verify.HumanReview: verify.NotProved} {
		o.Require = []verify.Guarantee{g}
		if report := verify.Record(r, o); report.Outcome != want {
			t.Errorf("%s required: %s, want %s", g, report.Outcome, want)
		}
	}
}
