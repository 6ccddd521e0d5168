package scitt

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/internal/cbor"
)

// MaxCertificates is how many certificates of a statement are read.
const MaxCertificates = 16

// sha256Algorithm is SHA-256 among COSE's algorithms (RFC 9054).
const sha256Algorithm = int64(-16)

// ErrCertificate says that a statement contradicts itself: a key signed it that is not the one of the certificate which its protected header names.
var ErrCertificate = errors.New("the key that signed it is not that of the certificate that it names")

// chain are the parameters x5chain and x5t (RFC 9360) of a protected header.
type chain struct {
	first *x509.Certificate // nil: there is none, or it cannot be read
	err   error             // why it cannot be read
	hash  []byte            // SHA-256 of the first certificate; nil: none that is known here
}

// readChain reads what the protected header says of the signer's certificate. Beside it anybody can put one.
func readChain(header cbor.Map) (c chain) {
	if value, there := header.Get(labelThumbprint); there {
		if list, ok := value.([]any); ok && len(list) == 2 && list[0] == sha256Algorithm {
			c.hash, _ = list[1].([]byte)
		}
	}
	value, there := header.Get(labelChain)
	if !there {
		return c
	}
	der, ok := value.([]byte)
	if list, many := value.([]any); many && len(list) > 1 && len(list) <= MaxCertificates {
		der, ok = list[0].([]byte)
	}
	if !ok {
		c.err = fmt.Errorf("%w: the certificates (33) are neither a byte string nor an array of 2 to %d", ErrUnsupported, MaxCertificates)
		return c
	}
	if c.first, c.err = x509.ParseCertificate(der); c.err != nil {
		c.first, c.err = nil, fmt.Errorf("%w: its certificate (33) cannot be read: %w", ErrUnsupported, c.err)
	}
	return c
}

// Certificate is the first certificate of the protected header: that of the key which signed, by the issuer's word. nil: there is none that can be read.
func (s *Statement) Certificate() *x509.Certificate { return s.chain.first }

// CheckCertificate compares the certificate that the protected header names with the key that signed the statement. It returns ErrCertificate if they
// differ, and ErrUnsupported if that cannot be known. A statement that names none is not contradicted.
func (s *Statement) CheckCertificate(public crypto.PublicKey) error {
	c := &s.chain
	if c.first == nil {
		return c.err
	}
	id, err := evidence.KeyIDOf(public)
	if err != nil {
		return err
	}
	if digest := sha256.Sum256(c.first.Raw); c.hash != nil && string(digest[:]) != string(c.hash) {
		return fmt.Errorf("%w: x5t (34) is of another certificate than the first of x5chain (33)", ErrCertificate)
	}
	if evidence.DigestOf(c.first.RawSubjectPublicKeyInfo) != id {
		return ErrCertificate
	}
	return nil
}

// chainOf returns the certificates that name a key, and those that issued them, one by the other, from some in any order. A root stays out: readers have theirs.
func chainOf(certificates [][]byte, key evidence.KeyID) (list [][]byte) {
	var at *x509.Certificate
	parsed := make([]*x509.Certificate, 0, len(certificates))
	for _, der := range certificates {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			continue // whoever reads the record passes over it, too
		}
		if parsed = append(parsed, c); at == nil && evidence.DigestOf(c.RawSubjectPublicKeyInfo) == key {
			at = c
		}
	}
	for at != nil && len(list) < MaxCertificates {
		list = append(list, at.Raw)
		at = issuerAmong(parsed, at)
	}
	return list
}

// issuerAmong returns the certificate that issued another; nil: it is not there, or a root.
func issuerAmong(list []*x509.Certificate, of *x509.Certificate) *x509.Certificate {
	for _, c := range list {
		isRoot := string(c.RawIssuer) == string(c.RawSubject)
		if !isRoot && string(c.RawSubject) == string(of.RawIssuer) && of.CheckSignatureFrom(c) == nil {
			return c
		}
	}
	return nil
}

// certified are the parameters of a protected header that name the signer's certificate.
func certified(list [][]byte) cbor.Map {
	if len(list) == 0 {
		return nil
	}
	var value any = list[0]
	if len(list) > 1 {
		all := make([]any, len(list))
		for i := range list {
			all[i] = list[i]
		}
		value = all
	}
	digest := sha256.Sum256(list[0])
	return cbor.Map{{Key: labelChain, Value: value}, {Key: labelThumbprint, Value: []any{sha256Algorithm, digest[:]}}}
}
