package timestamp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"io"
	"math/big"
	"slices"
	"time"
)

// WORTHLESS KEYS. They are published with the source so that tests have the same tokens everywhere. Anyone can sign
// with them. Verify recognises and refuses them. Never list them as trusted.
const (
	mockRootKeyWORTHLESS = "7162afdd29097c3947556bd586e8c70667e834b42998097ad146c8c3effdd3aa"
	mockKeyWORTHLESS     = "9d34e00e6fb41ae75ae0332d5c3f8b6440a1a604c9e08bc6b6025fd1e24f2c6c"
)

// SHA-256 of the SubjectPublicKeyInfo of those keys.
const (
	mockRootKeyDigest = "41bcd95f8c1c4871d2bedef7b0c350f808dea9548694fd60fa393168237b1a10"
	mockKeyDigest     = "f28a178c9b6a1c9250a90f2dc09a70b8f828ae5ce8c07b8f3812fab38abd6c4c"
)

// The mock's certificates are constants: code that makes certificates may change its bytes, and these must not
// change.
const (
	mockRootPEM = `-----BEGIN CERTIFICATE-----
MIIB4jCCAYigAwIBAgIBATAKBggqhkjOPQQDAjBWMSowKAYDVQQKEyFXT1JUSExF
U1M6IGl0cyBrZXlzIGFyZSBwdWJsaXNoZWQxKDAmBgNVBAMTH2p1cmF0IG1vY2sg
cm9vdCwgZm9yIHRlc3RzIG9ubHkwIBcNMjUwMTAxMDAwMDAwWhgPMjEyNTEyMzEy
MzU5NTlaMFYxKjAoBgNVBAoTIVdPUlRITEVTUzogaXRzIGtleXMgYXJlIHB1Ymxp
c2hlZDEoMCYGA1UEAxMfanVyYXQgbW9jayByb290LCBmb3IgdGVzdHMgb25seTBZ
MBMGByqGSM49AgEGCCqGSM49AwEHA0IABCyZUkAI7emSIAMa71F00FyX41eF+qNr
gpZKDTi6wrJBb16CNFl7X2jeI4hLIwf9ihiCQRzFH5MJ+JTj4CLPhbOjRTBDMA4G
A1UdDwEB/wQEAwIBBjASBgNVHRMBAf8ECDAGAQH/AgEAMB0GA1UdDgQWBBT7WRZl
dtT1iA3nPX0Z4au5RNAIIjAKBggqhkjOPQQDAgNIADBFAiEAtMPXHzlk1OSPewYw
OARlguB5CN/ygRqrAOCS+wftJdQCIFkW0KFQK44faxKf1tNXA94QOQxNy65gfIOC
Q/mpZ7Ui
-----END CERTIFICATE-----`
	mockPEM = `-----BEGIN CERTIFICATE-----
MIICGTCCAcCgAwIBAgIBAjAKBggqhkjOPQQDAjBWMSowKAYDVQQKEyFXT1JUSExF
U1M6IGl0cyBrZXlzIGFyZSBwdWJsaXNoZWQxKDAmBgNVBAMTH2p1cmF0IG1vY2sg
cm9vdCwgZm9yIHRlc3RzIG9ubHkwIBcNMjUwMTAxMDAwMDAwWhgPMjEyNTEyMzEy
MzU5NTlaMFsxKjAoBgNVBAoTIVdPUlRITEVTUzogaXRzIGtleXMgYXJlIHB1Ymxp
c2hlZDEtMCsGA1UEAxMkanVyYXQgbW9jayBhdXRob3JpdHksIGZvciB0ZXN0cyBv
bmx5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAESKCGn1n1XSYu2GeHXjPFFjoJ
L+oGszGRo8JWTY+3UCoT8mgW11wY8Qdbie6j5N4Phf/hA5zKt15XiTTj11J/s6N4
MHYwDgYDVR0PAQH/BAQDAgeAMAwGA1UdEwEB/wQCMAAwHQYDVR0OBBYEFO8zzvPm
skwa5TMD+3vp1p1jqJxSMB8GA1UdIwQYMBaAFPtZFmV21PWIDec9fRnhq7lE0Agi
MBYGA1UdJQEB/wQMMAoGCCsGAQUFBwMIMAoGCCqGSM49BAMCA0cAMEQCIDN5Sx5E
OdNosKBS2sTuKOrbsMhZP0rvrAPTSoO3uXaWAiAOQ2jhsUsVtUBEQMWEGBLpTH8q
+SAV8sVdri187/B+og==
-----END CERTIFICATE-----`
)

// mockGenTime is the time of every mock token.
const mockGenTime = "20260101000000"

// NewMock returns an authority for tests in which everything is fixed: the same
// request gives the same bytes, everywhere and always.
//
//   - Key, certificates and policy (MockPolicy) are constants; Certificates()[1]
//     is the root.
//   - genTime is 2026-01-01T00:00:00Z.
//   - The serial number is the first 8 bytes, as an unsigned big-endian integer,
//     of SHA-256(imprint ‖ nonce), where nonce is its magnitude, big-endian
//     without leading zero bytes, and nothing when there is none.
//   - The nonce is repeated.
//   - Signatures are deterministic (RFC 6979).
//
// Verify refuses its tokens unless Options.UnsafeAllowMock is set.
func NewMock() *Authority {
	genTime := fixed(time.Parse(genTimeSeconds, mockGenTime))
	a := fixed(NewAuthority(AuthorityConfig{
		Key:         mockKey(mockKeyWORTHLESS),
		Certificate: mockCertificate(mockPEM),
		Chain:       []*x509.Certificate{mockCertificate(mockRootPEM)},
		Policy:      MockPolicy(),
		Now:         func() time.Time { return genTime },
	}))
	a.serial = mockSerial
	return a
}

const mockSerialBytes = 8

func mockSerial(r *Request) (*big.Int, error) {
	input := r.Imprint[:]
	if r.Nonce != nil {
		input = slices.Concat(input, r.Nonce.Bytes())
	}
	digest := sha256.Sum256(input)
	return new(big.Int).SetUint64(binary.BigEndian.Uint64(digest[:mockSerialBytes])), nil
}

// deterministic signs by RFC 6979, which crypto/ecdsa does without randomness.
type deterministic struct{ key *ecdsa.PrivateKey }

func (d deterministic) Public() crypto.PublicKey { return d.key.Public() }

func (d deterministic) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return d.key.Sign(nil, digest, opts)
}

func mockKey(scalar string) crypto.Signer {
	return deterministic{fixed(ecdsa.ParseRawPrivateKey(elliptic.P256(), fixed(hex.DecodeString(scalar))))}
}

func mockCertificate(text string) *x509.Certificate {
	block, _ := pem.Decode([]byte(text))
	return fixed(x509.ParseCertificate(block.Bytes))
}
