package jurattest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"io"
	"math/big"
	"testing"
	"time"

	"jurat/timestamp"
)

// NewForStrangers makes a House whose tokens other programs can verify. Verify refuses the mock's keys by their
// values. The keys of this authority are as worthless, but other programs do not know them. Its clock stands at
// Start, like the mock's.
func NewForStrangers(t testing.TB) *House {
	t.Helper()
	return furnish(t, "", Authority(t, "", Start))
}

// Authority returns a time-stamping authority with worthless keys derived from its name. Its clock stands still. The
// same requests in the same order give the same tokens.
func Authority(t testing.TB, name string, now time.Time) *timestamp.Authority {
	t.Helper()
	rootKey, key := AuthorityKey(t, name+" root"), AuthorityKey(t, name)
	config := timestamp.CertificateConfig{Key: rootKey, Serial: big.NewInt(1), NotBefore: Start.AddDate(-1, 0, 0),
		NotAfter: Start.AddDate(99, 0, 0), Operator: "WORTHLESS: its keys are published " + name}
	root, err := timestamp.NewRoot(config)
	check(t, err)
	config.Key, config.Serial = key, big.NewInt(2)
	leaf, err := timestamp.NewCertificate(config, root, rootKey)
	check(t, err)
	a, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: leaf, Chain: []*x509.Certificate{root},
		Now: func() time.Time { return now }, Rand: stream(3), Policy: timestamp.MockPolicy()})
	check(t, err)
	return a
}

// AuthorityKey returns the key derived from a name. It signs without randomness (RFC 6979).
func AuthorityKey(t testing.TB, name string) crypto.Signer {
	t.Helper()
	seed := sha256.Sum256([]byte("jurattest: a worthless authority\x00" + name))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	check(t, err)
	return deterministic{key}
}

type deterministic struct{ *ecdsa.PrivateKey }

func (d deterministic) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return d.PrivateKey.Sign(nil, digest, opts)
}
