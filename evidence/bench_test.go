package evidence

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudflare/circl/sign/mldsa/mldsa65"
)

// benchPayload is the audit model's example with texts that make it 2 KiB.
func benchPayload(b *testing.B) []byte {
	b.Helper()
	const form = `{"agent_id":"logistics-agent-v1","request_id":"uuid","timestamp":"2026-01-31T16:15:00Z","model":"gpt-4.1",` +
		`"model_version":"gpt-4.1-turbo-2026-01-25","prompt":%q,"context":%q,"response":%q,` +
		`"parameters":{"temperature":0.2,"top_p":0.9,"max_tokens":500}}`
	doc := fmt.Sprintf(form, strings.Repeat("Рассчитай оптимальный маршрут. ", 12), strings.Repeat("Location: Berlin. ", 27),
		strings.Repeat("A9 via Nuremberg.\n", 30))
	if len(doc) < 1900 || len(doc) > 2200 {
		b.Fatalf("the payload has %d bytes", len(doc))
	}
	return []byte(doc)
}

func benchRecord(b *testing.B, signer Signer) *Record {
	b.Helper()
	return seal(b, string(benchPayload(b)), nil, signer)
}

func BenchmarkCanonical(b *testing.B) {
	doc := benchPayload(b)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonical(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	canonical := benchRecord(b, testSigner(b, Ed25519)).Canonical()
	b.SetBytes(int64(len(canonical)))
	for b.Loop() {
		sha256.Sum256(canonical)
	}
}

// BenchmarkSign measures the signature alone. Compare BenchmarkSeal with it.
func BenchmarkSign(b *testing.B) {
	for _, algorithm := range Algorithms() {
		b.Run(string(algorithm), func(b *testing.B) {
			signer := testSigner(b, algorithm)
			canonical := benchRecord(b, signer).Canonical()
			for b.Loop() {
				if _, err := signer.Sign(canonical); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSeal measures ParseDraft and Seal: from a payload as it arrives to a signed record.
func BenchmarkSeal(b *testing.B) {
	for _, algorithm := range Algorithms() {
		b.Run(string(algorithm), func(b *testing.B) {
			doc := benchPayload(b)
			s := Sealing{Signers: []Signer{testSigner(b, algorithm)}, RecordID: testID}
			b.ReportAllocs()
			for b.Loop() {
				draft, err := ParseDraft(doc)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := draft.Seal(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMarshal(b *testing.B) {
	r := benchRecord(b, testSigner(b, Ed25519))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Marshal(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	file := marshalRecord(b, benchRecord(b, testSigner(b, Ed25519)))
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(file); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerify measures the check of the signature alone. Compare BenchmarkOpen with it.
func BenchmarkVerify(b *testing.B) {
	for _, algorithm := range Algorithms() {
		b.Run(string(algorithm), func(b *testing.B) {
			r, public := benchRecord(b, testSigner(b, algorithm)), testKey(b, algorithm).Public()
			for b.Loop() {
				if err := r.CheckSignature(0, public); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBareMLDSA measures the library alone. Compare BenchmarkSign and BenchmarkVerify with it.
func BenchmarkBareMLDSA(b *testing.B) {
	private := testKey(b, MLDSA65).(*mldsa65.PrivateKey)
	public := private.Public().(*mldsa65.PublicKey)
	canonical := benchRecord(b, testSigner(b, MLDSA65)).Canonical()
	signature := make([]byte, mldsa65.SignatureSize)
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			if err := mldsa65.SignTo(private, canonical, nil, false, signature); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if !mldsa65.Verify(public, canonical, nil, signature) {
				b.Fatal("bad signature")
			}
		}
	})
}

// BenchmarkParseBundle reads 100 records of 2 KiB.
func BenchmarkParseBundle(b *testing.B) {
	bundle, signer := &Bundle{}, testSigner(b, Ed25519)
	draft, err := ParseDraft(benchPayload(b))
	if err != nil {
		b.Fatal(err)
	}
	for i := range 100 {
		r, err := draft.Seal(Sealing{Signers: []Signer{signer}, RecordID: fmt.Sprintf("%s%012d", testID[:24], i)})
		if err != nil {
			b.Fatal(err)
		}
		bundle.Records = append(bundle.Records, r)
	}
	file := marshalBundle(b, bundle)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseBundle(file); err != nil {
			b.Fatal(err)
		}
	}
}
