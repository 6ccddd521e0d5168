package verify_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"
	"testing"
	"time"

	"jurat/internal/must"
	"jurat/verify"
)

func named(when time.Time, reason int) []x509.RevocationListEntry {
	return []x509.RevocationListEntry{revocationOf(3, when, reason)}
}

// der encodes a value.
func der(t testing.TB, v any, params ...string) []byte {
	t.Helper()
	return must.Get(asn1.MarshalWithParams(v, strings.Join(params, ",")))(t)
}

// TestManyExtensions: a list full of different extensions, and one with an entry full of them, are read once through. A reader that compares each extension with each takes a minute for one.
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
		if got := verify.Bundle(b, o).Of(verify.Authentication); got.Rule != rule {
			t.Errorf("want rule %q: %+v", rule, got)
		}
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
		if got := verify.Bundle(b, o).Of(verify.Authentication); got.Rule != rule {
			t.Errorf("%s: want %s: %+v", text, rule, got)
		}
	}
}
