package timestamp

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/must"
)

// seed adds the golden vectors of one kind as seeds. testdata/fuzz has further seeds.
func seed(f *testing.F, kind string) {
	for _, v := range loadVectors(f) {
		data := must.Get(os.ReadFile(v.path(kind)))(f)
		f.Add(data)
	}
	f.Add(bytes.Repeat([]byte{0x30, 0x80}, 100))
}

// FuzzParseResponse: a token that is taken out of a response and wrapped again is the same token.
func FuzzParseResponse(f *testing.F) {
	seed(f, ".tsr")
	f.Add(seq(seq(integer(2), seq(tlv(asn1.UTF8String, []byte("no"))), tlv(asn1.BIT_STRING, []byte{7, 0x80}))))
	f.Fuzz(func(t *testing.T, data []byte) {
		token, err := ParseResponse(data)
		if err != nil {
			return
		}
		again := must.Get(ParseResponse(must.Get(MarshalResponse(token))(t)))(t)
		if !bytes.Equal(again, token) || !bytes.Contains(data, token) {
			t.Errorf("%x became %x", token, again)
		}
	})
}

// FuzzParse: a token that parses gives the same result when parsed again, and a token that verifies was signed by the
// mock.
func FuzzParse(f *testing.F) {
	seed(f, ".tst")
	mock := NewMock()
	opts := Options{Roots: mock.Certificates()[1:], Intermediates: mock.Certificates()[:1], UnsafeAllowMock: true}
	signed := map[string]bool{}
	for _, v := range loadVectors(f) {
		signed[v.Imprint+v.Serial] = true
	}
	compareCertificates := cmp.Comparer(func(a, b *x509.Certificate) bool { return a.Equal(b) })
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := Parse(data)
		if err != nil {
			return
		}
		info := u.UnverifiedInfo()
		again := must.Get(Parse(data))(t).UnverifiedInfo()
		if diff := cmp.Diff(info, again, compareInts, compareOIDs, compareCertificates); diff != "" {
			t.Error(diff)
		}
		if !bytes.Contains(data, genTime(formatGenTime(info.GenTime))) {
			t.Errorf("genTime %v does not occur in the token in this form", info.GenTime)
		}
		token, err := u.Verify(info.Imprint, opts)
		if err == nil && !signed[hex.EncodeToString(info.Imprint[:])+token.Serial.Text(16)] {
			t.Errorf("%x verifies", data)
		}
	})
}
