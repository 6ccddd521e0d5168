// Package mandate reads, signs and checks mandates: an organisation says, under its seal, that a CA may certify keys of certain actors for a
// time.
//
// # The file
//
// A mandate file is a JWS in flattened JSON serialisation (RFC 7515, section 7.2.2). Its payload is the mandate in canonical form. Its protected
// header has the algorithm, the certificate of the seal and those above it (x5c), and the certificate's SHA-256. Its unprotected header may
// have RFC 3161 time stamps over the text of the signature, as JAdES (ETSI TS 119 182-1, section 5.3.4) places them.
//
// # A mandate is a JWS, and not CMS
//
// It is a JWS because the signed text stays readable, because cards are signed in the same way, and because OpenSSL
// can check the raw signature with the certificate's key:
//
//	openssl dgst -sha256 -verify seal-public.pem -signature signature.bin input.txt
//
// where input.txt is the texts protected and payload with a dot between them, and signature.bin the decoded signature (of ES256 in DER).
//
// # What a check proves
//
// [Check] proves that a qualified seal of an organisation is over the mandate: the seal's certificate comes from a CA/QC service that a trusted
// list shows as granted, both when the certificate began and when the mandate is proved to have existed. The mandate's own word and the
// header's are never trusted for that.
package mandate

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/jws"
	"jurat/verify/trust"
)

// Format is the version of the format of mandates.
const Format = "jurat/mandate/v1"

// The limits of a mandate file.
const (
	MaxSize         = 1 << 20 // bytes
	maxCertificates = 8
	maxCertificate  = 64 << 10
	maxTokens       = 8
)

// A Mandate is what an organisation signs.
type Mandate struct {
	Format string          `json:"format"`
	CA     evidence.KeyID  `json:"ca"`              // the key of the CA
	Roles  []evidence.Role `json:"roles"`           // sorted
	Names  []string        `json:"names,omitempty"` // of the actors, sorted; empty: every name
	From   time.Time       `json:"from"`
	To     time.Time       `json:"to"`
	Log    string          `json:"log,omitempty"` // the verifier key of the log in which the actors' records are; "": any
}

// ErrForm says that a file is no mandate in its form.
var ErrForm = errors.New("it is no signed mandate in its form")

// Canonical returns the bytes that are signed. It returns an error if the mandate breaks a rule of the format.
func (m *Mandate) Canonical() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	doc, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return evidence.Canonical(doc)
}

func (m *Mandate) check() error {
	switch {
	case m.Format != Format:
		return fmt.Errorf("format is %q, want %q", m.Format, Format)
	case m.CA.IsZero():
		return errors.New("ca is missing")
	case len(m.Log) > 512:
		return errors.New("log is longer than 512 bytes")
	}
	return trust.CheckScope(m.Roles, m.Names, m.From, m.To)
}

// A File is a signed mandate. Parse has checked its form, and nothing else.
type File struct {
	Mandate      Mandate
	Certificates []*x509.Certificate // the seal's, then those above it, as the signer gives them
	Tokens       [][]byte            // RFC 3161, over the text of the signature

	header    *jws.Header
	protected string
	payload   []byte
	signature string
}

// wire is the file's JSON.
type wire struct {
	Header    *unprotected `json:"header,omitempty"`
	Payload   string       `json:"payload"`
	Protected string       `json:"protected"`
	Signature string       `json:"signature"`
}

type unprotected struct {
	Timestamps [][]byte `json:"timestamps"`
}

// Parse reads a mandate file. All its errors have ErrForm in their chain.
func Parse(doc []byte) (*File, error) {
	f, err := parse(doc)
	if err != nil {
		return nil, fmt.Errorf("reading mandate: %w: %w", ErrForm, err)
	}
	return f, nil
}

func parse(doc []byte) (*File, error) {
	if len(doc) > MaxSize {
		return nil, fmt.Errorf("longer than %d bytes", MaxSize)
	}
	canonical, err := evidence.Canonical(evidence.CutMark(doc))
	if err != nil {
		return nil, err
	}
	var w wire
	if err := json.Unmarshal(canonical, &w, json.RejectUnknownMembers(true)); err != nil {
		return nil, evidence.Steady(err)
	}
	f := &File{protected: w.Protected, signature: w.Signature}
	if f.header, err = jws.ParseHeader(w.Protected, "sigT"); err != nil { // the claimed time of signing (JAdES), which nothing here rests on
		return nil, fmt.Errorf("protected%w", err)
	}
	if f.payload, err = jws.Base64.DecodeString(w.Payload); err != nil {
		return nil, errors.New("payload: not base64url without padding")
	}
	if _, err = jws.Base64.DecodeString(w.Signature); err != nil || w.Signature == "" {
		return nil, errors.New("signature: not base64url without padding")
	}
	if w.Header != nil {
		f.Tokens = w.Header.Timestamps
	}
	if len(f.Tokens) > maxTokens {
		return nil, fmt.Errorf("it has %d time stamps, more than %d", len(f.Tokens), maxTokens)
	}
	if err := f.readMandate(); err != nil {
		return nil, err
	}
	return f, f.readCertificates()
}

func (f *File) readMandate() error {
	if err := json.Unmarshal(f.payload, &f.Mandate, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("payload: %w", evidence.Steady(err))
	}
	again, err := f.Mandate.Canonical()
	if err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	if !bytes.Equal(again, f.payload) {
		return errors.New("payload: a member is empty, or it is not in canonical form")
	}
	return nil
}

func (f *File) readCertificates() error {
	if n := len(f.header.Certificates); n == 0 || n > maxCertificates {
		return fmt.Errorf("x5c has %d certificates: want 1 to %d", n, maxCertificates)
	}
	for i, der := range f.header.Certificates {
		if len(der) > maxCertificate {
			return fmt.Errorf("x5c: certificate %d has more than %d bytes", i+1, maxCertificate)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("x5c: certificate %d: %w", i+1, err)
		}
		f.Certificates = append(f.Certificates, c)
	}
	if f.header.Thumbprint != "" && f.header.Thumbprint != thumbprint(f.header.Certificates[0]) {
		return errors.New("x5t#S256 is that of another certificate than the first of x5c")
	}
	return nil
}

func thumbprint(der []byte) string {
	digest := sha256.Sum256(der)
	return jws.Base64.EncodeToString(digest[:])
}

// Marshal writes the file, in canonical form with a line feed. It refuses text that is not valid UTF-8.
func (f *File) Marshal() ([]byte, error) {
	w := wire{Payload: jws.Base64.EncodeToString(f.payload), Protected: f.protected, Signature: f.signature}
	if len(f.Tokens) > 0 {
		w.Header = &unprotected{f.Tokens}
	}
	doc, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("writing mandate: %w", err)
	}
	if doc, err = evidence.Canonical(doc); err != nil {
		return nil, fmt.Errorf("writing mandate: %w", err)
	}
	return append(doc, '\n'), nil
}

// Digest identifies the file: SHA-256 over its canonical form, without the line feed. Each further time stamp makes
// another file. Its errors are those of Marshal.
func (f *File) Digest() (evidence.Digest, error) {
	doc, err := f.Marshal()
	if err != nil {
		return evidence.Digest{}, err
	}
	return evidence.DigestOf(bytes.TrimSuffix(doc, []byte("\n"))), nil
}

// Imprint is the SHA-256 that time stamps of the mandate are over: that of the signature as it is written.
func (f *File) Imprint() [sha256.Size]byte { return sha256.Sum256([]byte(f.signature)) }

// Input returns what the seal's key has to sign, for a key that something else holds: a seal service, for instance.
// It refuses a mandate that is not valid, a missing certificate, and a key that cannot sign records.
func Input(m Mandate, chain []*x509.Certificate) ([]byte, error) {
	protected, payload, err := prepare(m, chain)
	if err != nil {
		return nil, fmt.Errorf("preparing mandate: %w", err)
	}
	return jws.Input(protected, payload), nil
}

func prepare(m Mandate, chain []*x509.Certificate) (protected string, payload []byte, err error) {
	if payload, err = m.Canonical(); err != nil {
		return "", nil, err
	}
	if len(chain) == 0 {
		return "", nil, errors.New("the seal's certificate is missing")
	}
	key, err := sealKey(chain[0])
	if err != nil {
		return "", nil, err
	}
	algorithm, err := evidence.AlgorithmOf(key)
	if err != nil {
		return "", nil, err
	}
	h := jws.Header{Type: "JOSE", Thumbprint: thumbprint(chain[0].Raw)}
	if h.Algorithm, err = jws.NameOf(algorithm); err != nil {
		return "", nil, err
	}
	for _, c := range chain {
		h.Certificates = append(h.Certificates, c.Raw)
	}
	protected, err = h.Protected()
	return protected, payload, err
}

// sealKey returns the key of a seal's certificate. Only kinds of keys that sign records are known here.
func sealKey(c *x509.Certificate) (crypto.PublicKey, error) {
	key, err := evidence.ParsePublicKey(c.RawSubjectPublicKeyInfo)
	if err != nil {
		return nil, fmt.Errorf("the seal's certificate: %w", err)
	}
	return key, nil
}

// Sign signs a mandate with the key of a seal, whose certificate and those above it are the chain. Its errors are
// those of Input and of the key.
func Sign(m Mandate, chain []*x509.Certificate, key evidence.Signer) (*File, error) {
	protected, payload, err := prepare(m, chain)
	if err != nil {
		return nil, fmt.Errorf("signing mandate: %w", err)
	}
	made, err := key.Sign(jws.Input(protected, payload))
	if err != nil {
		return nil, fmt.Errorf("signing mandate: %w", err)
	}
	return assemble(m, chain, made)
}

// Assemble puts a signature to a mandate that something else made over what Input returned: of ES256 in DER, as OpenSSL writes it. It refuses a
// signature that is not by the key of the chain's first certificate.
func Assemble(m Mandate, chain []*x509.Certificate, signature []byte) (*File, error) {
	return assemble(m, chain, signature)
}

func assemble(m Mandate, chain []*x509.Certificate, made []byte) (*File, error) {
	protected, payload, err := prepare(m, chain)
	if err != nil {
		return nil, fmt.Errorf("signing mandate: %w", err)
	}
	key, err := sealKey(chain[0])
	if err != nil {
		return nil, fmt.Errorf("signing mandate: %w", err)
	}
	algorithm, err := evidence.AlgorithmOf(key)
	if err != nil {
		return nil, fmt.Errorf("signing mandate: %w", err)
	}
	value, err := jws.FromDER(algorithm, made)
	if err != nil {
		return nil, fmt.Errorf("signing mandate: %w", err)
	}
	f := &File{protected: protected, payload: payload, signature: jws.Base64.EncodeToString(value)}
	doc, err := f.Marshal()
	if err != nil {
		return nil, err
	}
	if f, err = Parse(doc); err != nil {
		return nil, err
	}
	if err := f.signed(); err != nil {
		return nil, fmt.Errorf("signing mandate: the key is not that of the first certificate: %w", err)
	}
	return f, nil
}

// signed returns an error unless the key of the first certificate made the signature.
func (f *File) signed() error {
	key, err := sealKey(f.Certificates[0])
	if err != nil {
		return err
	}
	value, err := jws.Base64.DecodeString(f.signature)
	if err != nil {
		return err
	}
	return jws.Check(f.header.Algorithm, key, jws.Input(f.protected, f.payload), value)
}

// String shows the mandate itself, for people.
func (f *File) String() string {
	value := jsontext.Value(bytes.Clone(f.payload))
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return base64.StdEncoding.EncodeToString(f.payload)
	}
	return string(value)
}
