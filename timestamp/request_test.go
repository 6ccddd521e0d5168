package timestamp

import (
	"bytes"
	"crypto/x509"
	"errors"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/must"
)

var (
	compareInts = cmp.Comparer(func(a, b *big.Int) bool { return a == b || a != nil && b != nil && a.Cmp(b) == 0 })
	compareOIDs = cmp.Comparer(func(a, b x509.OID) bool { return a.Equal(b) })
)

func TestRequestIsBounded(t *testing.T) {
	if _, err := (&Request{Nonce: new(big.Int).Lsh(big.NewInt(1), MaxRequestSize*8)}).Marshal(); !errors.Is(err, ErrMalformed) {
		t.Errorf("nonce beyond the cap: %v", err)
	}
}

func TestParseResponse(t *testing.T) {
	token := newDraft(t).build(t)
	response := must.Get(MarshalResponse(token))(t)
	if got := must.Get(ParseResponse(response))(t); !bytes.Equal(got, token) {
		t.Error("token differs")
	}
	for i := range response {
		if _, err := ParseResponse(response[:i]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	text := func(s string) []byte { return seq(tlv(asn1.UTF8String, []byte(s))) }
	bits := func(b ...byte) []byte { return tlv(asn1.BIT_STRING, b) }

	for _, test := range []struct {
		name     string
		response []byte
		want     error // nil: granted, a StatusError: refused, ErrMalformed
	}{
		{"granted with modifications", seq(seq(integer(1)), token), nil},
		{"granted with text", seq(seq(integer(0), text("welcome")), token), nil},
		{"granted without a token", seq(seq(integer(0))), ErrMalformed},
		{"granted with a failure", seq(seq(integer(0), bits(7, 0x80)), token), ErrMalformed},
		{"rejected with a token", seq(seq(integer(2)), token), ErrMalformed},
		{"rejected", seq(seq(integer(2), text("no"), bits(7, 0x80))), &StatusError{2, []string{"badAlg"}, []string{"no"}}},
		{"rejected for reasons unknown", seq(seq(integer(2), bits(0, 0x20, 0x01))), &StatusError{2, []string{"badRequest", "unacceptedPolicy"}, nil}},
		{"rejected for a reason without a name", seq(seq(integer(2), bits(6, 0x40))), &StatusError{2, []string{"bit 1"}, nil}},
		{"waiting", seq(seq(integer(3))), &StatusError{3, nil, nil}},
		{"unknown status", seq(seq(integer(77))), &StatusError{77, nil, nil}},
		{"status beyond 32 bits", seq(seq(integer(1 << 40))), ErrMalformed},
		{"text empty", seq(seq(integer(2), seq())), ErrMalformed},
		{"text not UTF-8", seq(seq(integer(2), text("\xff"))), ErrMalformed},
		{"failure with trailing zeros", seq(seq(integer(2), bits(0, 0x80))), ErrMalformed},
		{"failure with set padding", seq(seq(integer(2), bits(7, 0x81))), ErrMalformed},
		{"trailing data", append(bytes.Clone(response), 0), ErrMalformed},
		{"trailing member", seq(seq(integer(0)), token, null()), ErrMalformed},
		{"token of another kind", seq(seq(integer(0)), octets(nil)), ErrMalformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseResponse(test.response)
			var want *StatusError
			if !errors.As(test.want, &want) {
				checkError(t, err, test.want)
				return
			}
			var got *StatusError
			if !errors.As(err, &got) {
				t.Fatalf("error %v is no StatusError", err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if err := (&StatusError{2, []string{"badAlg"}, []string{"no"}}).Error(); err != `authority refused: status 2 (rejection): badAlg: "no"` {
		t.Error(err)
	}
}

// TestIdentifiers compares the object identifiers with their dotted form.
func TestIdentifiers(t *testing.T) {
	for contents, dotted := range map[string]string{
		oidSignedData: "1.2.840.113549.1.7.2", oidTSTInfo: "1.2.840.113549.1.9.16.1.4",
		oidContentType: "1.2.840.113549.1.9.3", oidMessageDigest: "1.2.840.113549.1.9.4",
		oidSigningCertificate: "1.2.840.113549.1.9.16.2.12", oidSigningCertificateV2: "1.2.840.113549.1.9.16.2.47",
		oidSHA256: "2.16.840.1.101.3.4.2.1", oidSHA384: "2.16.840.1.101.3.4.2.2", oidSHA512: "2.16.840.1.101.3.4.2.3",
		oidRSA: "1.2.840.113549.1.1.1", oidMGF1: "1.2.840.113549.1.1.8", oidRSAPSS: "1.2.840.113549.1.1.10",
		oidSHA256WithRSA: "1.2.840.113549.1.1.11", oidSHA384WithRSA: "1.2.840.113549.1.1.12", oidSHA512WithRSA: "1.2.840.113549.1.1.13",
		oidECDSAWithSHA256: "1.2.840.10045.4.3.2", oidECDSAWithSHA384: "1.2.840.10045.4.3.3", oidECDSAWithSHA512: "1.2.840.10045.4.3.4",
	} {
		want := must.Get(x509.ParseOID(dotted))(t)
		if got := must.Get(want.MarshalBinary())(t); string(got) != contents {
			t.Errorf("%s is %x, not %x", dotted, got, contents)
		}
	}
}
