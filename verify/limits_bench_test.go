package verify_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
)

// beside runs two functions alternately, so that other load slows both equally. It reports the ratio of their times
// and the allowed one.
func beside(b *testing.B, limit float64, whole, bare func()) {
	b.Helper()
	var one, other time.Duration
	for b.Loop() {
		start := time.Now()
		whole()
		middle := time.Now()
		bare()
		one, other = one+middle.Sub(start), other+time.Since(middle)
	}
	b.ReportMetric(float64(one.Microseconds())/float64(b.N), "µs-whole")
	b.ReportMetric(float64(other.Microseconds())/float64(b.N), "µs-bare")
	b.ReportMetric(one.Seconds()/other.Seconds(), "ratio")
	b.ReportMetric(limit, "limit")
}

// BenchmarkLimits compares sealing and verifying with the cryptographic work that no program can avoid.
func BenchmarkLimits(b *testing.B) {
	b.Run("seal", benchmarkSeal)
	b.Run("verify a record", benchmarkRecord)
	b.Run("verify a record of a bundle", benchmarkRecordOfBundle)
}

// benchmarkSeal: from a payload of 2 KiB as it comes in to a record with a token of the built-in authority, beside
// canonical form, hash, signature and token.
func benchmarkSeal(b *testing.B) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	signer, err := evidence.NewSigner(key, rand.Reader)
	must(err)
	authority := authorityOf(b)
	doc := fmt.Appendf(nil, `{"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"m-1",`+
		`"prompt":%q,"response":%q,"parameters":{"temperature":0.2}}`, strings.Repeat("Which route? ", 70), strings.Repeat("A9 via Nuremberg. ", 50))
	issue := func(imprint [32]byte) []byte {
		token, err := authority.Issue(&timestamp.Request{Imprint: imprint, Nonce: big.NewInt(1 << 60), CertReq: true})
		must(err)
		return token
	}
	beside(b, 1.5, func() {
		draft, err := evidence.ParseDraft(doc)
		must(err)
		r, err := draft.Seal(evidence.Sealing{Signers: []evidence.Signer{signer}, RecordID: "01890000-0000-7000-8000-000000000001"})
		must(err)
		r.Timestamps = []evidence.Timestamp{{Kind: evidence.RFC3161, Token: issue(r.Imprint())}}
	}, func() {
		form, err := evidence.Canonical(doc)
		must(err)
		digest := sha256.Sum256(form)
		signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
		must(err)
		issue(sha256.Sum256(signature))
	})
}

func authorityOf(b *testing.B) *timestamp.Authority {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	config := timestamp.CertificateConfig{Key: key, Serial: big.NewInt(1), NotBefore: jurattest.Start, NotAfter: jurattest.Start.AddDate(1, 0, 0)}
	root, err := timestamp.NewRoot(config)
	if err != nil {
		b.Fatal(err)
	}
	certificate, err := timestamp.NewCertificate(config, root, key)
	if err != nil {
		b.Fatal(err)
	}
	authority, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: certificate,
		Now: func() time.Time { return jurattest.Start.Add(time.Hour) }})
	if err != nil {
		b.Fatal(err)
	}
	return authority
}

// bareSignatures checks n P-256 signatures, and one of Ed25519 if a checkpoint is to be checked.
func bareSignatures(b *testing.B, n int, checkpoint bool) func() {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	digest := sha256.Sum256(nil)
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	if err != nil {
		b.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	signed := ed25519.Sign(private, digest[:])
	return func() {
		for range n {
			if !ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature) {
				b.Fatal("bad signature")
			}
		}
		if checkpoint && !ed25519.Verify(public, digest[:], signed) {
			b.Fatal("bad signature")
		}
	}
}

// benchmarkRecord: a record with a token and its place in a log of 1000, opened or from the bytes of its file, beside the signatures of
// its actor, its authority, the authority's certificate, and the log.
func benchmarkRecord(b *testing.B) {
	h := jurattest.New(b)
	r := h.Seal(b, output("a"))
	for range 999 {
		h.Seal(b, output("b"))
	}
	if _, err := h.Ledger.Checkpoint(b.Context()); err != nil {
		b.Fatal(err)
	}
	r, err := h.Ledger.ProveOne(b.Context(), r)
	if err != nil {
		b.Fatal(err)
	}
	file, err := r.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	o := h.Options(b)
	b.Run("opened", func(b *testing.B) {
		beside(b, 1.5, func() {
			if report := verify.Record(r, o); report.Outcome != verify.Proved {
				b.Fatal(report)
			}
		}, bareSignatures(b, 3, true))
	})
	b.Run("from its bytes", func(b *testing.B) {
		beside(b, 1.5, func() {
			if report, err := verify.File(file, o); err != nil || report.Outcome != verify.Proved {
				b.Fatal(report, err)
			}
		}, bareSignatures(b, 3, true))
	})
}

// benchmarkRecordOfBundle: likewise of one that came with 499 others, all under one checkpoint and stamped by one authority,
// whose certificate is looked at once. Per record, and on one core: see the GOMAXPROCS that go test -cpu 1 sets.
func benchmarkRecordOfBundle(b *testing.B) {
	const n = 500
	h := jurattest.New(b)
	var records []*evidence.Record
	for range n {
		records = append(records, h.Seal(b, output("a")))
	}
	file, err := h.Bundle(b, records...).Marshal()
	if err != nil {
		b.Fatal(err)
	}
	o := h.Options(b)
	beside(b, 1.5, func() {
		if report, err := verify.File(file, o); err != nil || report.Outcome != verify.Proved {
			b.Fatal(report, err)
		}
	}, bareSignatures(b, 2*n, false))
}
