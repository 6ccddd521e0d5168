package timestamp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"math/big"
	"testing"
	"time"
)

// benchAuthority signs with randomness, as a real one does.
func benchAuthority(b *testing.B) (*Authority, *ecdsa.PrivateKey) {
	key := must[*ecdsa.PrivateKey](b)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	root := testRoot(b)
	certificate := must[*x509.Certificate](b)(NewCertificate(CertificateConfig{
		Key: key, Serial: big.NewInt(3), NotBefore: testNotBefore, NotAfter: testNotAfter,
	}, root, testKey("root")))
	return must[*Authority](b)(NewAuthority(AuthorityConfig{
		Key: key, Certificate: certificate, Now: func() time.Time { return testTime },
	})), key
}

// BenchmarkIssue compares Issue with the bare signature in it.
func BenchmarkIssue(b *testing.B) {
	authority, key := benchAuthority(b)
	request := &Request{Imprint: testImprint, Nonce: big.NewInt(1 << 60), CertReq: true}
	b.Run("bare signature", func(b *testing.B) {
		digest := sha256.Sum256(nil)
		for b.Loop() {
			if _, err := key.Sign(rand.Reader, digest[:], crypto.SHA256); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("token", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := authority.Issue(request); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkVerify compares Verify with the two bare signature checks in it: the token's and the certificate's.
func BenchmarkVerify(b *testing.B) {
	authority, key := benchAuthority(b)
	token := must[[]byte](b)(authority.Issue(&Request{Imprint: testImprint, CertReq: true}))
	opts := Options{Roots: []*x509.Certificate{testRoot(b)}}
	b.Run("two bare signature checks", func(b *testing.B) {
		digest := sha256.Sum256(nil)
		signature := must[[]byte](b)(key.Sign(rand.Reader, digest[:], crypto.SHA256))
		for b.Loop() {
			for range 2 {
				if !ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature) {
					b.Fatal("refused")
				}
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Parse(token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse and verify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := verifyToken(token, opts); err != nil {
				b.Fatal(err)
			}
		}
	})
}
