package evidence

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"errors"
	"io"
	"testing"

	"jurat/internal/must"
)

func TestSignAndCheck(t *testing.T) {
	payload := seal(t, testPayload, nil).Canonical()
	for _, algorithm := range Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			key, signer := testKey(t, algorithm), testSigner(t, algorithm)
			signature := must.Get(signer.Sign(payload))(t)
			check := func(payload, signature []byte) error {
				return CheckSignature(key.Public(), signer.Info(), payload, signature)
			}
			must.Do(t, check(payload, signature))
			for i := range payload {
				wantBadSignature(t, check(flipped(payload, i), signature))
			}
			for i := range signature {
				for _, bits := range ways(i, 1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80) {
					damaged := bytes.Clone(signature)
					damaged[i] ^= bits
					wantBadSignature(t, check(payload, damaged))
				}
				wantBadSignature(t, check(payload, signature[:i]))
				wantBadSignature(t, check(payload, signature[i+1:]))
			}
			wantBadSignature(t, check(payload, append(bytes.Clone(signature), 0)))
			wantBadSignature(t, check(payload, append([]byte{0}, signature...)))
			wantBadSignature(t, check(payload, nil))
			wantBadSignature(t, check(nil, signature))
		})
	}
}

func flipped(data []byte, i int) []byte {
	data = bytes.Clone(data)
	data[i] ^= 1
	return data
}

func wantBadSignature(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, ErrSignature) {
		t.Fatalf("error is %v, want ErrSignature", err)
	}
}

// TestAnotherSigner checks a valid signature against a signer entry with another key or algorithm.
func TestAnotherSigner(t *testing.T) {
	payload := []byte("payload")
	for _, algorithm := range Algorithms() {
		signer, public := testSigner(t, algorithm), testKey(t, algorithm).Public()
		signature := must.Get(signer.Sign(payload))(t)
		for _, other := range Algorithms() {
			if other == algorithm {
				continue
			}
			wantBadSignature(t, CheckSignature(public, SignerInfo{other, signer.Info().KeyID}, payload, signature))
			wantBadSignature(t, CheckSignature(public, SignerInfo{algorithm, testSigner(t, other).Info().KeyID}, payload, signature))
			wantBadSignature(t, CheckSignature(testKey(t, other).Public(), signer.Info(), payload, signature))
			r := &Record{Payload: Payload{Signers: []SignerInfo{signer.Info()}}, Signatures: [][]byte{signature}, canonical: payload}
			wantBadSignature(t, r.CheckSignatureOf(0, testSigner(t, other).Info().KeyID, public))
		}
		wantBadSignature(t, CheckSignature(nil, signer.Info(), payload, signature))
		wantBadSignature(t, CheckSignature("a key", signer.Info(), payload, signature))
	}
}

// opaque is a private key whose bytes are not accessible, like one in an HSM.
type opaque struct{ inner crypto.Signer }

func (o opaque) Public() crypto.PublicKey { return o.inner.Public() }

func (o opaque) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return o.inner.Sign(random, digest, opts)
}

func TestOpaqueSigner(t *testing.T) {
	for _, algorithm := range Algorithms() {
		signer := must.Get(NewSigner(opaque{testKey(t, algorithm)}, rand.Reader))(t)
		if signer.Info() != testSigner(t, algorithm).Info() {
			t.Errorf("%s: the signer is %v", algorithm, signer.Info())
		}
		r := seal(t, testPayload, nil, signer)
		if err := r.CheckSignature(0, testKey(t, algorithm).Public()); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}

// broken is an HSM that fails or returns an invalid signature.
type broken struct {
	crypto.Signer
	answer []byte
	err    error
}

func (b broken) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return b.answer, b.err }

func TestBrokenSigner(t *testing.T) {
	draft := must.Get(ParseDraft([]byte(testPayload)))(t)
	outage := errors.New("the token was pulled out")
	for name, key := range map[string]broken{
		"error":     {testKey(t, RS256), nil, outage},
		"nothing":   {testKey(t, Ed25519), nil, nil},
		"not DER":   {testKey(t, ES256), []byte("nonsense"), nil},
		"very long": {testKey(t, RS256), make([]byte, maxSignature+1), nil},
	} {
		signer := must.Get(NewSigner(key, nil))(t)
		r, err := draft.Seal(Sealing{Signers: []Signer{signer}, RecordID: testID})
		if r != nil || err == nil || (key.err != nil && !errors.Is(err, outage)) {
			t.Errorf("%s: record %v, error %v", name, r, err)
		}
	}
}
