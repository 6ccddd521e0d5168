package verify_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/verify"
	"jurat/verify/trust"
)

// TestSpentEffortClearsNobody: a file that makes the verifier spend all steps on unsigned lists does not bring an older list into force in
// the place of the reader's own, which was not checked for lack of steps.
func TestSpentEffortClearsNobody(t *testing.T) {
	const n = 16
	hour := time.Hour
	b, o, w := certifiedBundle(t, n)
	early, late := stamped.Add(48*hour), stamped.Add(72*hour)
	issued := func(template x509.RevocationList) []byte {
		template.Number = big.NewInt(7)
		return signList(t, &template, w.made.issuing, w.made.issuingKey).Raw
	}
	old := issued(x509.RevocationList{ThisUpdate: early, NextUpdate: late})
	own := listOf(t, issued(x509.RevocationList{ThisUpdate: late, NextUpdate: late.Add(hour), RevokedCertificateEntries: named(stamped.Add(-hour), 1)}))
	roots := signList(t, &x509.RevocationList{Number: big.NewInt(8), ThisUpdate: late, NextUpdate: late.Add(hour)}, w.made.root, w.made.rootKey)
	o.At, o.CRLs = late.Add(30*time.Minute), []*x509.RevocationList{roots, own}

	// The same key has another certificate, which expired between the two lists. Of that one the reader's list need not say anything.
	expired := *w.signer
	expired.SerialNumber, expired.NotAfter = big.NewInt(4), early.Add(hour)
	other := certify(t, &expired, w.made.signer.PublicKey, w.made.issuing, w.made.issuingKey)
	false0 := newKey(t)
	forger := certify(t, caTemplate("issuing", 1), false0.Public(), caTemplate("issuing", 1), false0)
	allExpired := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 60}, Value: der(t, stamped.AddDate(-1, 0, 0).UTC(), "generalized")}
	for i, r := range b.Records[:n-1] {
		r.Certificates = [][]byte{other.Raw, w.made.issuing.Raw}
		if i == 0 {
			r.Revocations = []evidence.Revocation{{Kind: evidence.CRL, Value: old}}
			continue
		}
		for j := range evidence.MaxRevocations {
			junk := signList(t, &x509.RevocationList{Number: big.NewInt(int64(100*i + j)), ThisUpdate: late.Add(time.Minute), NextUpdate: late.Add(hour),
				ExtraExtensions: []pkix.Extension{allExpired}}, forger, false0)
			r.Revocations = append(r.Revocations, evidence.Revocation{Kind: evidence.CRL, Value: junk.Raw})
		}
	}
	stolen := b.Records[n-1]
	report := verify.Bundle(b, o)
	if got := report.For(verify.Authentication, b.Records[0].Payload.RecordID); got.Status != verify.Proved {
		t.Errorf("the first record: %+v", got)
	}
	if got := report.For(verify.Authentication, stolen.Payload.RecordID); got.Status == verify.Proved {
		t.Errorf("the reader's list revokes the certificate: %+v", got)
	}
}

// listOf reads a list.
func listOf(t testing.TB, der []byte) *x509.RevocationList {
	t.Helper()
	list, err := trust.ParseCRL(der)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestManyExtensions: a list full of different extensions, and one with an entry full of them, are read once through. Anyone can send them
// unsigned, and a reader that compares each extension with each takes a minute for one.
func TestManyExtensions(t *testing.T) {
	var many []pkix.Extension
	for i := range 80_000 {
		many = append(many, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 1000 + i}})
	}
	for rule, change := range map[string]func(list *x509.RevocationList){
		"": func(list *x509.RevocationList) { list.ExtraExtensions = many },
		"revoked": func(list *x509.RevocationList) {
			list.RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped, 1, many...)}
		},
	} {
		b, o, w := certifiedBundle(t, 1)
		list := *w.lists[1]
		change(&list)
		o.CRLs[1] = signList(t, &list, w.made.issuing, w.made.issuingKey)
		carry(b.Records[0], &o)
		if got := verify.Bundle(b, o).Of(verify.Authentication); got.Rule != rule {
			t.Errorf("want rule %q: %+v", rule, got)
		}
	}
}

// TestManyAnswers: of very many answers about one serial number, those of other CAs' certificates are passed over.
func TestManyAnswers(t *testing.T) {
	b, o, w := certifiedBundle(t, 40)
	d := w.good(stamped.Add(48 * time.Hour))
	d.many = 13_000
	o.CRLs = o.CRLs[:1]
	carry(b.Records[0], &o)
	b.Records[0].Revocations = append(b.Records[0].Revocations, evidence.Revocation{Kind: evidence.OCSP, Value: d.build(t)})
	if got := verify.Bundle(b, o).Of(verify.Authentication); got.Status != verify.Proved {
		t.Errorf("%+v", got)
	}
}

// TestOddDates: a date in an extension is a GeneralizedTime in whole seconds of UTC, or the list cannot be used.
func TestOddDates(t *testing.T) {
	for text, rule := range map[string]string{"20251231230000Z": "revoked", "20251231230000.5Z": "revocation", "20260101000000+0100": "revocation", "202512312300Z": "revocation"} {
		b, o, w := certifiedBundle(t, 1)
		list := *w.lists[1]
		date := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 24}, Value: der(t, asn1.RawValue{Tag: asn1.TagGeneralizedTime, Bytes: []byte(text)})}
		list.RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped.Add(time.Hour), 1, date)}
		o.CRLs[1] = signList(t, &list, w.made.issuing, w.made.issuingKey)
		carry(b.Records[0], &o)
		if got := verify.Bundle(b, o).Of(verify.Authentication); got.Rule != rule {
			t.Errorf("%s: want %s: %+v", text, rule, got)
		}
	}
}
