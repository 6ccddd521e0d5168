package verify_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"testing"

	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// BenchmarkBundle verifies the case file of a trial; per record beside the two bare P-256 verifications that it takes,
// its actor's and its authority's, and the one of the authority's certificate.
func BenchmarkBundle(b *testing.B) {
	h := jurattest.New(b)
	bundle := h.Bundle(b, h.Try(b, jury.FinalJudge).Records...)
	o := h.Options(b)
	n := float64(len(bundle.Records))
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if r := verify.Bundle(bundle, o); r.Outcome != verify.Proved {
				b.Fatal(r.Outcome)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/record")
	})
	b.Run("bare", func(b *testing.B) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		digest := sha256.Sum256(nil)
		signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for range len(bundle.Records) * 3 {
				if !ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature) {
					b.Fatal("bad signature")
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/record")
	})
}
