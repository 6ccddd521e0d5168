package timestamp

import (
	"crypto"
	_ "crypto/sha256" // the digests below, registered
	_ "crypto/sha512"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Object identifiers as the contents of their DER encoding.
const (
	oidSignedData = "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"         // 1.2.840.113549.1.7.2
	oidTSTInfo    = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x04" // 1.2.840.113549.1.9.16.1.4

	oidContentType          = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x03"         // 1.2.840.113549.1.9.3
	oidMessageDigest        = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04"         // 1.2.840.113549.1.9.4
	oidSigningCertificate   = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x02\x0c" // 1.2.840.113549.1.9.16.2.12
	oidSigningCertificateV2 = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x02\x2f" // 1.2.840.113549.1.9.16.2.47

	oidSHA256 = "\x60\x86\x48\x01\x65\x03\x04\x02\x01" // 2.16.840.1.101.3.4.2.1
	oidSHA384 = "\x60\x86\x48\x01\x65\x03\x04\x02\x02" // 2.16.840.1.101.3.4.2.2
	oidSHA512 = "\x60\x86\x48\x01\x65\x03\x04\x02\x03" // 2.16.840.1.101.3.4.2.3

	oidRSA             = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01" // 1.2.840.113549.1.1.1
	oidMGF1            = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x08" // 1.2.840.113549.1.1.8
	oidRSAPSS          = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a" // 1.2.840.113549.1.1.10
	oidSHA256WithRSA   = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b" // 1.2.840.113549.1.1.11
	oidSHA384WithRSA   = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c" // 1.2.840.113549.1.1.12
	oidSHA512WithRSA   = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d" // 1.2.840.113549.1.1.13
	oidECDSAWithSHA256 = "\x2a\x86\x48\xce\x3d\x04\x03\x02"     // 1.2.840.10045.4.3.2
	oidECDSAWithSHA384 = "\x2a\x86\x48\xce\x3d\x04\x03\x03"     // 1.2.840.10045.4.3.3
	oidECDSAWithSHA512 = "\x2a\x86\x48\xce\x3d\x04\x03\x04"     // 1.2.840.10045.4.3.4

	oidKeyUsage    = "2.5.29.15" // as crypto/x509 prints them
	oidExtKeyUsage = "2.5.29.37"
)

// algorithm is an AlgorithmIdentifier (RFC 5280, 4.1.1.2).
type algorithm struct {
	oid        string
	parameters cryptobyte.String // the element, nil when left out
}

func (d *decoder) algorithm(s *cryptobyte.String, what string) algorithm {
	return d.algorithmIn(d.read(s, asn1.SEQUENCE, what), what)
}

// algorithmIn reads the members of an AlgorithmIdentifier.
func (d *decoder) algorithmIn(contents cryptobyte.String, what string) (a algorithm) {
	a.oid = d.oid(&contents, what)
	if d.more(contents) {
		a.parameters = d.anyElement(&contents, what+" parameters")
	}
	d.end(contents, what)
	return a
}

// plain reports whether the parameters are absent or NULL. For digests and RSA
// PKCS #1 v1.5 both forms must be accepted (RFC 5754, 2 and 3.2).
func (a algorithm) plain() bool {
	return a.parameters == nil || string(a.parameters) == "\x05\x00"
}

// digest returns the hash of a digest algorithm, or ErrAlgorithm if it is not accepted under a signature.
func (a algorithm) digest() (crypto.Hash, error) {
	if a.plain() {
		switch a.oid {
		case oidSHA256:
			return crypto.SHA256, nil
		case oidSHA384:
			return crypto.SHA384, nil
		case oidSHA512:
			return crypto.SHA512, nil
		}
	}
	return 0, fmt.Errorf("%w: digest", ErrAlgorithm)
}

// sum hashes data.
func sum(hash crypto.Hash, data []byte) []byte {
	h := hash.New()
	h.Write(data)
	return h.Sum(nil)
}
