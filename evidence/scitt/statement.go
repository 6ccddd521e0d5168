package scitt

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"

	"jurat/evidence"
	"jurat/internal/kit/cbor"
	"jurat/internal/kit/fault"
)

// MaxFile is the largest statement that Parse reads, in bytes. It has room for a record's payload twice.
const MaxFile = 64 << 20

// MaxReceipts is how many receipts of a statement are read.
const MaxReceipts = 16

// Header parameters of jurat's own, from the range for private use (below -65536).
const (
	labelAbout  = int64(-70001) // protected, text: About
	labelRecord = int64(-70002) // unprotected, bytes: the record file
	labelEntry  = int64(-70003) // unprotected, bytes, of a receipt: the log's entry
)

// Claims of RFC 8392, in the header by RFC 9597.
const (
	claimIssuer  = int64(1)
	claimSubject = int64(2)
)

// ContentType is that of a record's canonical payload. It is not registered.
const ContentType = "application/vnd.jurat.payload+json"

// About is in every statement of jurat's, for people who see it in other tools.
const About = "The COSE signature over this payload is that of whoever exported this record, and says only that they did. Who said what is shown " +
	"by the record's own signatures, in the unprotected header parameter -70002: each was made over this payload, and is no COSE signature. " +
	"A receipt of the log is about the record's entry in the log, which is beside its proof in the parameter -70003, and not about this statement."

// A Statement is an opened Signed Statement. What it says is unverified until Check has checked it with a key that the caller
// trusts.
type Statement struct {
	Issuer      string // the claim iss; "" if there is none
	Subject     string // the claim sub
	ContentType string // of the payload; "" if it is none that is a text
	KeyID       []byte // a hint
	Payload     []byte
	Receipts    []Receipt

	message *sign1
	chain   chain
	record  []byte
	about   any
}

// Parse reads a Signed Statement or a Transparent Statement. It refuses CBOR that two readers could read differently, and a payload
// that is not there.
func Parse(file []byte) (s *Statement, err error) {
	defer fault.While(&err, "opening statement")
	if len(file) > MaxFile {
		return nil, fmt.Errorf("longer than %d MiB", MaxFile>>20)
	}
	m, err := parseSign1(file)
	if err != nil {
		return nil, err
	}
	if m.detached {
		return nil, errors.New("its payload is not in it (detached): put the payload into the statement")
	}
	s = &Statement{message: m, KeyID: m.keyID(), Payload: m.payload}
	s.chain = readChain(m.protected)
	s.about, _ = m.protected.Get(labelAbout)
	value, _ := m.unprotected.Get(labelRecord)
	s.record, _ = value.([]byte)
	kind, _ := m.protected.Get(labelContentType)
	s.ContentType, _ = kind.(string)
	if s.Issuer, s.Subject, err = readClaims(m.protected); err != nil {
		return nil, err
	}
	s.readReceipts()
	return s, nil
}

// readClaims reads issuer and subject from a protected header.
func readClaims(header cbor.Map) (issuer, subject string, err error) {
	value, there := header.Get(labelClaims)
	if !there {
		return "", "", nil
	}
	claims, ok := value.(cbor.Map)
	if !ok {
		return "", "", errors.New("CWT claims (15): not a map")
	}
	for claim, to := range map[int64]*string{claimIssuer: &issuer, claimSubject: &subject} {
		value, there := claims.Get(claim)
		if !there {
			continue
		}
		if *to, ok = value.(string); !ok {
			return "", "", fmt.Errorf("CWT claims (15): the claim %d is not a text", claim)
		}
	}
	return issuer, subject, nil
}

// readReceipts reads the first receipts. One that cannot be read proves nothing, and says nothing against the statement.
func (s *Statement) readReceipts() {
	value, _ := s.message.unprotected.Get(labelReceipts)
	list, _ := value.([]any)
	for _, item := range list[:min(MaxReceipts, len(list))] {
		doc, _ := item.([]byte)
		r, err := parseReceipt(doc)
		if err != nil {
			r = &Receipt{unread: err}
		}
		s.Receipts = append(s.Receipts, *r)
	}
}

// Check verifies the statement's signature with a key that the caller trusts. Its error has evidence.ErrSignature in its
// chain if the key did not make it, and ErrUnsupported if that cannot be checked here.
func (s *Statement) Check(public crypto.PublicKey) error { return s.message.check(public, s.Payload) }

// Own reports whether the statement claims to be of a record of jurat's, in its protected header.
func (s *Statement) Own() bool { return s.about != nil }

// ErrNoRecord says that the record of a statement is not in it. Anybody can take it out or replace it, since no signature of the statement covers it.
var ErrNoRecord = errors.New("the record is not in it")

// Record returns the record that the statement was made of. It returns an error unless the statement is the one that Sign makes of this
// record for its issuer, apart from the signature and the receipts. The error has ErrNoRecord in its chain if the record is missing.
func (s *Statement) Record() (r *evidence.Record, err error) {
	defer fault.While(&err, "opening statement")
	if s.record == nil {
		return nil, fmt.Errorf("%w (header parameter %d)", ErrNoRecord, labelRecord)
	}
	if r, err = evidence.Open(s.record); err != nil {
		return nil, fmt.Errorf("%w (header parameter %d): %w", ErrNoRecord, labelRecord, err)
	}
	switch {
	case string(r.Canonical()) != string(s.Payload):
		return nil, fmt.Errorf("%w (header parameter %d): its payload is not that of the record there", ErrNoRecord, labelRecord)
	case s.Subject != r.Payload.RecordID:
		return nil, fmt.Errorf("its subject is %q, and the record is %s", evidence.Abbreviate(s.Subject), r.Payload.RecordID)
	case s.ContentType != ContentType:
		return nil, fmt.Errorf("its content type is %q: want %q", evidence.Abbreviate(s.ContentType), ContentType)
	case s.about != About:
		return nil, fmt.Errorf("the header parameter %d does not say what the signature is", labelAbout)
	}
	return r, nil
}

// Issuer returns the name of an actor as an issuer.
func Issuer(role evidence.Role, name string) string {
	return "urn:jurat:" + string(role) + ":" + url.PathEscape(name)
}

// ErrAlgorithm says that a key signs by an algorithm that statements do not have.
var ErrAlgorithm = errors.New("statements are signed by ES256 or Ed25519")

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
