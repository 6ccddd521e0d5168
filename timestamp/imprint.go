package timestamp

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Imprint is what an authority stamps: the hash of something (RFC 3161, 2.4.1).
type Imprint struct {
	Hash crypto.Hash // SHA256, SHA384 or SHA512; 0: an unknown algorithm
	Sum  []byte      // as long as Hash demands
}

// sha256Imprint returns a SHA-256 imprint, which most requests use.
func sha256Imprint(digest [sha256.Size]byte) Imprint {
	return Imprint{Hash: crypto.SHA256, Sum: digest[:]}
}

func (m Imprint) equal(other Imprint) bool {
	return m.Hash != 0 && m.Hash == other.Hash && bytes.Equal(m.Sum, other.Sum)
}

func (m Imprint) check() error {
	if _, known := digestOIDs[m.Hash]; !known {
		return fmt.Errorf("%w: imprint", ErrAlgorithm)
	}
	if len(m.Sum) != m.Hash.Size() {
		return fmt.Errorf("%w: an imprint of %d bytes is not one of %v", ErrMalformed, len(m.Sum), m.Hash)
	}
	return nil
}

// digestOIDs are the hash algorithms that this package writes.
var digestOIDs = map[crypto.Hash]string{crypto.SHA256: oidSHA256, crypto.SHA384: oidSHA384, crypto.SHA512: oidSHA512}

// imprint reads MessageImprint. If the algorithm is unknown, Hash is 0.
func (d *decoder) imprint(s *cryptobyte.String) Imprint {
	contents := d.read(s, asn1.SEQUENCE, "message imprint")
	algorithm := d.algorithm(&contents, "imprint algorithm")
	at := contents
	sum := d.octets(&contents, "hashed message")
	d.end(contents, "message imprint")
	if d.err != nil {
		return Imprint{}
	}
	hash, err := algorithm.digest()
	if err != nil {
		return Imprint{}
	}
	// "The length of the hash value MUST match the length of the hash value for
	// that algorithm" (RFC 3161, 2.4.1).
	if len(sum) != hash.Size() {
		d.fail(at, "hashed message does not have the length of its algorithm")
		return Imprint{}
	}
	return Imprint{Hash: hash, Sum: sum}
}

func addImprint(b *cryptobyte.Builder, m Imprint) {
	if err := m.check(); err != nil {
		b.SetError(err)
		return
	}
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		addAlgorithm(b, digestOIDs[m.Hash])
		b.AddASN1OctetString(m.Sum)
	})
}
