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

// BenchmarkBatch makes the evidence records of 10,000 records with one token, and compares the time for each record with
// that of a token of its own. Each evidence record contains the token.
func BenchmarkBatch(b *testing.B) {
	authority, _ := benchAuthority(b)
	const n = 10_000
	signatures, payload := make([]byte, 64), make([]byte, 2<<10)
	var size int
	run := func() {
		tree := must[*Tree](b)(NewTree(crypto.SHA256))
		for i := range n {
			signatures[0], signatures[1] = byte(i), byte(i>>8)
			payload[0], payload[1] = byte(i), byte(i>>8)
			must[int](b)(tree.Add(signatures, payload))
		}
		token := stampRoot(b, tree, authority)
		for i := range n {
			size = len(must[[]byte](b)(tree.EvidenceRecord(i, token)))
		}
	}
	b.Run("10,000 evidence records by one token", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			run()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		b.ReportMetric(float64(size), "bytes/record")
	})
	b.Run("a token", func(b *testing.B) {
		for b.Loop() {
			token := must[[]byte](b)(authority.Issue(&Request{Imprint: testImprint, CertReq: true}))
			size = len(token)
		}
		b.ReportMetric(float64(size), "bytes/record")
	})
	b.Run("verifying an evidence record", func(b *testing.B) {
		tree := must[*Tree](b)(NewTree(crypto.SHA256))
		for i := range n {
			signatures[0], signatures[1] = byte(i), byte(i>>8)
			must[int](b)(tree.Add(signatures, payload))
		}
		der := must[[]byte](b)(tree.EvidenceRecord(n-1, stampRoot(b, tree, authority)))
		g, opts := Group{Required: [][]byte{signatures, payload}}, rootsOf(b)
		for b.Loop() {
			must[[]*Token](b)(parseRecord(b, der).Verify(g, opts))
		}
	})
}
