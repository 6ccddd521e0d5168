package verify_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"jurat/dsse"
	"jurat/evidence"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// enveloped is a record in an envelope that the operator signed, and the options that prove it.
func enveloped(t *testing.T, postQuantum bool) (*dsse.Envelope, verify.Options) {
	t.Helper()
	h := jurattest.New(t)
	h.Keys.PostQuantum = postQuantum
	r, err := h.Ledger.ProveOne(t.Context(), h.Seal(t, output("a")))
	if err != nil {
		t.Fatal(err)
	}
	e := wrap(t, h, r, evidence.RoleOperator)
	return e, h.Options(t)
}

func wrap(t *testing.T, h *jurattest.House, file interface{ Marshal() ([]byte, error) }, role evidence.Role) *dsse.Envelope {
	t.Helper()
	doc, err := file.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	statement, err := dsse.Statement(doc)
	if err != nil {
		t.Fatal(err)
	}
	signers, err := h.Keys.Signers(t.Context(), role, "operator")
	if err != nil {
		t.Fatal(err)
	}
	e, err := dsse.Sign(statement, signers)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func marshalled(t *testing.T, file interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	doc, err := file.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestEveryRuleOfAnEnvelope(t *testing.T) {
	operator := func(o *verify.Options) *trust.Key {
		for i := range o.Trust.Keys {
			if k := &o.Trust.Keys[i]; k.Role == evidence.RoleOperator && k.Algorithm == evidence.ES256 {
				return k
			}
		}
		t.Fatal("no operator's key")
		return nil
	}
	for _, tt := range []struct {
		name   string
		change func(e *dsse.Envelope, o *verify.Options)
		status verify.Status
		rule   string
	}{
		{"nothing", func(e *dsse.Envelope, o *verify.Options) {}, verify.Proved, ""},
		{"no trust", func(e *dsse.Envelope, o *verify.Options) { o.Trust = nil }, verify.NotProved, "unknown-key"},
		{"a key nobody knows", func(e *dsse.Envelope, o *verify.Options) { e.Signatures[0].KeyID = "k1" }, verify.NotProved, "unknown-key"},
		{"no key id", func(e *dsse.Envelope, o *verify.Options) { e.Signatures[0].KeyID = "" }, verify.NotProved, "unknown-key"},
		{"a signature nobody knows beside it", func(e *dsse.Envelope, o *verify.Options) {
			e.Signatures = append(e.Signatures, dsse.Signature{KeyID: "k1", Signature: []byte("x")})
		}, verify.Proved, ""},
		{"a changed signature", func(e *dsse.Envelope, o *verify.Options) { e.Signatures[0].Signature[9] ^= 1 }, verify.Refuted, "signature"},
		{"a changed signature beside a good one", func(e *dsse.Envelope, o *verify.Options) {
			s := e.Signatures[0]
			s.Signature = bytes.Clone(s.Signature)
			s.Signature[9] ^= 1
			e.Signatures = append(e.Signatures, s)
		}, verify.Refuted, "signature"},
		{"a clerk's key", func(e *dsse.Envelope, o *verify.Options) { operator(o).Role = evidence.RoleClerk }, verify.Refuted, "actor"},
		{"a revoked key", func(e *dsse.Envelope, o *verify.Options) { operator(o).Revoked = jurattest.Start.Add(time.Hour) }, verify.NotProved, "revoked"},
		{"a key with an end", func(e *dsse.Envelope, o *verify.Options) { operator(o).NotAfter = jurattest.Start.Add(time.Hour) }, verify.NotProved, "validity"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, o := enveloped(t, false)
			tt.change(e, &o)
			report := verified(t, marshalled(t, e), o)
			if got := report.Of(verify.Envelope); got.Status != tt.status || got.Rule != tt.rule || report.Outcome != tt.status || report.Kind != verify.OneRecord {
				t.Errorf("%+v, outcome %s", got, report.Outcome)
			}
		})
	}
}

// TestSecondSignatureOfAnEnvelope: keys that sign only together sign envelopes together, too.
func TestSecondSignatureOfAnEnvelope(t *testing.T) {
	e, o := enveloped(t, true)
	if got := verified(t, marshalled(t, e), o).Of(verify.Envelope); got.Status != verify.Proved {
		t.Errorf("%+v", got)
	}
	e.Signatures = e.Signatures[:1]
	if got := verified(t, marshalled(t, e), o).Of(verify.Envelope); got.Status != verify.Refuted || got.Rule != "second-signature" {
		t.Errorf("%+v", got)
	}
	for i := range o.Trust.Keys {
		o.Trust.Keys[i].WithFrom = jurattest.Start
	}
	if got := verified(t, marshalled(t, e), o).Of(verify.Envelope); got.Status != verify.NotProved || got.Rule != "second-signature" {
		t.Errorf("with_from: %+v", got)
	}
}

// TestEnvelopeVouchesForNothingInside: the signature of an envelope neither proves nor refutes the record in it.
func TestEnvelopeVouchesForNothingInside(t *testing.T) {
	h := jurattest.New(t)
	r, err := h.Ledger.ProveOne(t.Context(), h.Seal(t, output("a")))
	if err != nil {
		t.Fatal(err)
	}
	r.Signatures[0][9] ^= 1
	e := wrap(t, h, r, evidence.RoleOperator)
	report := verified(t, marshalled(t, e), h.Options(t))
	if report.Of(verify.Envelope).Status != verify.Proved || report.Of(verify.Content).Status != verify.Refuted || report.Outcome != verify.Refuted {
		t.Errorf("%+v", report)
	}
}

func TestCaseFileInAnEnvelope(t *testing.T) {
	h := jurattest.New(t)
	e := wrap(t, h, h.Bundle(t, h.Try(t, jury.FinalJudge).Records...), evidence.RoleOperator)
	report := verified(t, marshalled(t, e), h.Options(t))
	if report.Kind != verify.Trial || report.Outcome != verify.Proved || report.Of(verify.Verdict).Status != verify.Proved || report.Of(verify.Envelope).Status != verify.Proved {
		t.Errorf("%+v", report)
	}
}

func TestDamagedAndForeignEnvelopes(t *testing.T) {
	e, o := enveloped(t, false)
	doc := string(marshalled(t, e))
	for _, damage := range []string{doc[:len(doc)/2] + doc[len(doc)/2+1:], strings.Replace(doc, `"payload":"`, `"payload":"!`, 1),
		strings.Replace(doc, `"payload":"eyJ`, `"payload":"eyK`, 1)} {
		if report := verified(t, []byte(damage), o); report.Outcome != verify.Refuted || report.Of(verify.Content).Rule != "form" {
			t.Errorf("%+v", report)
		}
	}
	other, err := dsse.Sign([]byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://slsa.dev/provenance/v1"}`), operatorSigners(t))
	if err != nil {
		t.Fatal(err)
	}
	if report, err := verify.File(marshalled(t, other), o); !errors.Is(err, verify.ErrNotOurs) || !strings.Contains(err.Error(), "slsa.dev") {
		t.Errorf("%+v, %v", report, err)
	}
}

func operatorSigners(t *testing.T) []evidence.Signer {
	t.Helper()
	s, err := jurattest.New(t).Keys.Signers(t.Context(), evidence.RoleOperator, "operator")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
