package timestamp

import (
	"crypto/x509"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/must"
)

// TestMemory: with a memory, each question gets the same answer as without.
func TestMemory(t *testing.T) {
	key, root := testKey("tsa"), testRoot(t)
	certificate := must.Get(NewCertificate(CertificateConfig{
		Key: key, Serial: big.NewInt(3), NotBefore: testNotBefore, NotAfter: testTime.Add(time.Hour)}, root, testKey("root")))(t)
	authority := must.Get(NewAuthority(AuthorityConfig{Key: key, Certificate: certificate, Now: func() time.Time { return testTime }}))(t)
	issue := func() []byte { return must.Get(authority.Issue(&Request{Imprint: testImprint, CertReq: true}))(t) }
	early := issue()

	m := NewMemory()
	verify := func(token []byte, o Options) error {
		o.Memory = m
		u := must.Get(m.Parse(token))(t)
		got, err := u.Verify(testImprint, o)
		o.Memory = nil
		plain := must.Get(Parse(token))(t)
		want, wantErr := plain.Verify(testImprint, o)
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("with a memory %v, without %v", err, wantErr)
		}
		if err == nil && !slices.EqualFunc(got.Chain, want.Chain, (*x509.Certificate).Equal) {
			t.Fatal("with a memory, Verify returned another path")
		}
		return err
	}
	trusted := Options{Roots: []*x509.Certificate{root}}
	for range 2 {
		must.Do(t, verify(early, trusted))
	}
	if len(m.answers) != 1 || len(m.certificates) != 1 {
		t.Errorf("%d paths, %d certificates", len(m.answers), len(m.certificates))
	}
	if err := verify(early, Options{}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("without roots: %v", err)
	}
	// The same token, renewed while the certificate was valid, and renewed later.
	renewed := Options{Roots: []*x509.Certificate{root}, Until: testTime.Add(time.Minute)}
	if err := verify(early, renewed); err != nil {
		t.Errorf("renewed in time: %v", err)
	}
	renewed.Until = testTime.Add(2 * time.Hour)
	if err := verify(early, renewed); !errors.Is(err, ErrExpired) {
		t.Errorf("renewed too late: %v", err)
	}
	// A token of the same certificate from after its end.
	f := draftBy(certificate, key)
	f.genTime = tlv(asn1.GeneralizedTime, []byte(formatGenTime(testTime.Add(2*time.Hour))))
	late := f.build(t)
	if err := verify(late, trusted); !errors.Is(err, ErrUntrusted) {
		t.Errorf("after it had expired: %v", err)
	}
	must.Do(t, verify(early, trusted))
}

// TestMemoryIsBounded: new certificates in each token must not fill the memory.
func TestMemoryIsBounded(t *testing.T) {
	m := NewMemory()
	for i := range 2 * maxAnswers {
		if a := m.remember([32]byte{byte(i), byte(i >> 8), 1}, func() answer { return answer{paths: Paths{{{}}}} }); a.err != nil || len(a.paths) != 1 {
			t.Fatal(a)
		}
	}
	if len(m.answers) > maxAnswers {
		t.Errorf("%d answers", len(m.answers))
	}
}
