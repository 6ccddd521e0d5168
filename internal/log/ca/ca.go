// Package ca is a CA for keys of agents and reviewers, in a folder of its own: its key and certificate, each certificate that it issued, and what it
// revoked. The folder may be on a machine without network, and knows no log. What readers make of certificates and lists is for package verify to say.
//
// # What a certificate says
//
// A certificate has one name, the URI urn:jurat:ROLE:NAME, one purpose, the signing of documents (RFC 9336), and a serial number of
// random bits. It begins keys.Skew before it was made, as a key does, because the clock of a time-stamping authority may be behind. It
// never ends after the CA's own.
//
// # Lists
//
// A list names every certificate that was ever revoked, also after it expired, and says so (expiredCertsOnCRL): records are verified years
// later. Its number and its time are later than those of the list before.
package ca

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/log/filestore"
	"jurat/internal/log/keys"
	"jurat/internal/log/lock"
	"jurat/internal/log/names"
	"jurat/internal/log/token"
	"jurat/verify/trust"
)

// The files of a CA. Certificate is written last: with it the CA exists.
const (
	Certificate  = "ca.pem"
	keyFile      = "ca.key"
	stateFile    = "revoked.json"
	issuedFolder = "certificates"
)

var (
	// ErrNone says that a folder holds no CA.
	ErrNone = errors.New("there is no CA here")
	// ErrExists says that a folder holds a CA already.
	ErrExists = errors.New("there is a CA here already")
	// ErrExpired says that the CA's own certificate has ended.
	ErrExpired = errors.New("the CA's own certificate has ended")
	// ErrTaken says that another key has a certificate for the name.
	ErrTaken = errors.New("the name has a certificate for another key")
	// ErrAlike says that readers could take a name for another one.
	ErrAlike = errors.New("the name looks like another")
	// ErrUnknown says that the CA did not issue such a certificate.
	ErrUnknown = errors.New("the CA has issued no such certificate")
	// ErrRevoked says that a certificate is revoked already.
	ErrRevoked = errors.New("the certificate is revoked already")
)

var (
	oidDocumentSigning = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 36} // id-kp-documentSigning, RFC 9336
	oidInvalidityDate  = asn1.ObjectIdentifier{2, 5, 29, 24}
	oidExpiredCerts    = asn1.ObjectIdentifier{2, 5, 29, 60} // expiredCertsOnCRL, X.509
)

// Config says where a CA is.
type Config struct {
	Dir    string           // its folder
	Helper *token.Helper    // signs with keys on tokens
	Now    func() time.Time // nil: time.Now
}

// A CA is open. Several processes may act on one folder: of two acts at once one is refused with lock.ErrTaken.
type CA struct {
	Certificate *x509.Certificate

	config Config
	files  *filestore.Folder
}

// state is what the CA has to remember beside its certificates.
type state struct {
	Number  int64        `json:"number"`          // of the last list
	Listed  time.Time    `json:"listed,omitzero"` // when that was made
	Revoked []Revocation `json:"revoked"`
}

// A Revocation says since when a certificate is revoked.
type Revocation struct {
	Serial      string    `json:"serial"` // in hexadecimal digits
	Cause       Cause     `json:"cause"`
	From        time.Time `json:"from"`                  // when the CA revoked it
	InvalidFrom time.Time `json:"invalid_from,omitzero"` // since when others may have had the key; zero: it is not stated
}

// since is since when nothing that the key signed counts.
func (r *Revocation) since() time.Time {
	if r.InvalidFrom.IsZero() {
		return r.From
	}
	return r.InvalidFrom
}

// Cause is why a certificate is revoked, as RFC 5280, section 5.3.1 names it. Nothing is put on hold: nobody could tell later what was signed then.
type Cause string

// causes are those for which a CA revokes, by their CRLReason.
var causes = map[Cause]int{"unspecified": 0, "keyCompromise": 1, "affiliationChanged": 3, "superseded": 4, "cessationOfOperation": 5, "privilegeWithdrawn": 9}

// A Plan says how a CA is made.
type Plan struct {
	Name  string           // the common name of its certificate
	On    *token.Reference // its key on a token; nil: a new key for ES256 in a file
	Years int              // how long it lasts, 1 to 30
}

// maxCommonName is ub-common-name of RFC 5280, appendix A, in characters.
const maxCommonName = 64

// Create makes a CA: its key and its certificate. It returns ErrExists if there is one, and goes on with the key of an interrupted attempt.
func Create(ctx context.Context, c Config, p Plan) (*CA, error) {
	a := at(c)
	return a, a.exclusively(ctx, "making CA "+c.Dir, func() error { return a.create(ctx, p) })
}

func at(c Config) *CA {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &CA{config: c, files: filestore.NewFolder(c.Dir)}
}

func (a *CA) create(ctx context.Context, p Plan) error {
	if err := names.Check(p.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if utf8.RuneCountInString(p.Name) > maxCommonName || p.Years < 1 || p.Years > 30 {
		return fmt.Errorf("a CA for %d years, with a name of %d characters: want 1 to 30, and at most %d", p.Years, utf8.RuneCountInString(p.Name), maxCommonName)
	}
	if _, err := a.files.Read(ctx, Certificate); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, ErrExists)
	}
	key, err := a.makeKey(ctx, p.On)
	if err != nil {
		return err
	}
	from := a.now().Add(-keys.Skew)
	template := &x509.Certificate{SerialNumber: newSerial(), Subject: pkix.Name{CommonName: p.Name}, NotBefore: from,
		NotAfter: from.AddDate(p.Years, 0, 0).Add(-time.Second), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		UnknownExtKeyUsage: []asn1.ObjectIdentifier{oidDocumentSigning}, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true}
	if a.Certificate, err = certify(template, template, key.Public(), key); err != nil {
		return err
	}
	if err := a.write(ctx, &state{Revoked: []Revocation{}}); err != nil {
		return err
	}
	return a.files.Create(ctx, Certificate, PEM(a.Certificate))
}

// makeKey writes the key, or the reference to the one on a token, unless an attempt before this one did.
func (a *CA) makeKey(ctx context.Context, on *token.Reference) (crypto.Signer, error) {
	text, err := keys.Text(evidence.ES256, on)
	if err != nil {
		return nil, err
	}
	if err := a.files.Create(ctx, keyFile, text); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	key, err := a.loadKey(ctx)
	if err != nil {
		return nil, err
	}
	if on != nil && !on.Public.(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Public()) {
		return nil, fmt.Errorf("%s is of an earlier attempt, and not the key on the token; remove it if it is of no use", a.files.Where(keyFile))
	}
	return key, nil
}

func (a *CA) loadKey(ctx context.Context) (crypto.Signer, error) {
	text, err := a.files.Read(ctx, keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA's key: %w", err)
	}
	key, _, _, err := a.config.Helper.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", a.files.Where(keyFile), err)
	}
	return key, nil
}

// Open opens a CA. The error has ErrNone in its chain if the folder has none.
func Open(ctx context.Context, c Config) (*CA, error) {
	a := at(c)
	text, err := a.files.Read(ctx, Certificate)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNone
	}
	if err == nil {
		a.Certificate, err = parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("opening CA %s: %w", c.Dir, err)
	}
	return a, nil
}

// exclusively does something while no other process acts on the folder. Its errors say what was being done.
func (a *CA) exclusively(ctx context.Context, what string, do func() error) error {
	_, release, err := lock.NewFolder(filepath.Join(a.config.Dir, "locks")).Lock(ctx, "ca")
	if err == nil {
		defer release()
		err = do()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// now is in whole seconds, as certificates have them.
func (a *CA) now() time.Time { return a.config.Now().UTC().Truncate(time.Second) }

// signer returns the CA's key. What it signs after the CA's own certificate has ended is worth nothing.
func (a *CA) signer(ctx context.Context) (crypto.Signer, error) {
	if a.now().After(a.Certificate.NotAfter) {
		return nil, fmt.Errorf("%w: at %s", ErrExpired, a.Certificate.NotAfter.Format(time.RFC3339))
	}
	key, err := a.loadKey(ctx)
	if err != nil {
		return nil, err
	}
	public, err := evidence.MarshalPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(public, a.Certificate.RawSubjectPublicKeyInfo) {
		return nil, fmt.Errorf("%s is not the key of the CA's certificate", a.files.Where(keyFile))
	}
	return key, nil
}

func (a *CA) read(ctx context.Context) (*state, error) {
	s := new(state)
	if err := filestore.ReadJSON(ctx, a.files, stateFile, s); err != nil {
		return nil, fmt.Errorf("reading what is revoked: %w", err)
	}
	return s, nil
}

func (a *CA) write(ctx context.Context, s *state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return a.files.Replace(ctx, stateFile, text)
}

// revocation returns what is known of a certificate; nil: it is not revoked.
func (s *state) revocation(serial string) *Revocation {
	if i := slices.IndexFunc(s.Revoked, func(r Revocation) bool { return r.Serial == serial }); i >= 0 {
		return &s.Revoked[i]
	}
	return nil
}

// issued returns every certificate that the CA issued.
func (a *CA) issued(ctx context.Context) (list []*x509.Certificate, err error) {
	err = a.files.List(ctx, issuedFolder, func(file string) error {
		text, err := a.files.Read(ctx, file)
		if err != nil {
			return err
		}
		c, err := parse(text)
		if err != nil {
			return fmt.Errorf("reading %s: %w", a.files.Where(file), err)
		}
		list = append(list, c)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return list, err
}

// Revoke revokes a certificate of the CA. invalidFrom is since when others may have had its key; zero: it is not stated. A certificate that is
// revoked already may get an earlier invalidFrom. The errors include ErrUnknown and ErrRevoked.
func (a *CA) Revoke(ctx context.Context, c *x509.Certificate, cause Cause, invalidFrom time.Time) error {
	return a.exclusively(ctx, "revoking", func() error {
		return a.revoke(ctx, c, Revocation{serialOf(c), cause, a.now(), invalidFrom.UTC().Truncate(time.Second)})
	})
}

func (a *CA) revoke(ctx context.Context, c *x509.Certificate, r Revocation) error {
	if _, known := causes[r.Cause]; !known {
		return fmt.Errorf("cause %q is none for which a CA revokes", r.Cause)
	}
	if r.InvalidFrom.After(r.From) {
		return errors.New("a revocation cannot begin in the future")
	}
	text, err := a.files.Read(ctx, fileOf(c))
	if own, failed := parse(text); err != nil || failed != nil || !own.Equal(c) {
		return fmt.Errorf("%w: serial number %s", ErrUnknown, r.Serial)
	}
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	if known := s.revocation(r.Serial); known == nil {
		s.Revoked = append(s.Revoked, r)
	} else if r.InvalidFrom.IsZero() || !r.InvalidFrom.Before(known.since()) {
		return fmt.Errorf("%w: serial number %s, from %s on", ErrRevoked, r.Serial, known.since().Format(time.RFC3339))
	} else {
		known.Cause, known.InvalidFrom = r.Cause, r.InvalidFrom
	}
	return a.write(ctx, s)
}

// ListLife is how long a list is good.
const ListLife = 7 * 24 * time.Hour

// List makes a revocation list, in DER. A crash may skip a number, and never gives one twice.
func (a *CA) List(ctx context.Context) (der []byte, err error) {
	err = a.exclusively(ctx, "making a revocation list", func() error {
		der, err = a.list(ctx)
		return err
	})
	return der, err
}

func (a *CA) list(ctx context.Context) ([]byte, error) {
	key, err := a.signer(ctx)
	if err != nil {
		return nil, err
	}
	s, err := a.read(ctx)
	if err != nil {
		return nil, err
	}
	if s.Listed.After(a.now().Add(24 * time.Hour)) {
		return nil, fmt.Errorf("the clock shows %s, the last list is of %s: readers refuse future lists", a.now().Format(time.RFC3339), s.Listed.Format(time.RFC3339))
	}
	// Readers take the list with the latest thisUpdate, and believe none before its time: the second list of a second waits for the next second.
	next := s.Listed.Add(time.Second)
	if wait := next.Sub(a.config.Now()); wait > 0 && wait <= time.Second {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.Listed = a.now(); s.Listed.Before(next) {
		s.Listed = next
	}
	s.Number++
	if err := a.write(ctx, s); err != nil {
		return nil, err
	}
	return sealList(a.Certificate, key, s)
}

func sealList(own *x509.Certificate, key crypto.Signer, s *state) ([]byte, error) {
	expired, err := generalized(oidExpiredCerts, own.NotBefore)
	if err != nil {
		return nil, err
	}
	list := &x509.RevocationList{Number: big.NewInt(s.Number), ThisUpdate: s.Listed, NextUpdate: s.Listed.Add(ListLife), ExtraExtensions: []pkix.Extension{expired}}
	for _, r := range s.Revoked {
		serial, valid := new(big.Int).SetString(r.Serial, 16)
		if !valid {
			return nil, fmt.Errorf("%q is no serial number", r.Serial)
		}
		entry := x509.RevocationListEntry{SerialNumber: serial, RevocationTime: r.From, ReasonCode: causes[r.Cause]}
		if !r.InvalidFrom.IsZero() {
			invalid, err := generalized(oidInvalidityDate, r.InvalidFrom)
			if err != nil {
				return nil, err
			}
			entry.ExtraExtensions = []pkix.Extension{invalid}
		}
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, entry)
	}
	return x509.CreateRevocationList(rand.Reader, list, own, key)
}

func generalized(id asn1.ObjectIdentifier, at time.Time) (pkix.Extension, error) {
	value, err := asn1.MarshalWithParams(at.UTC(), "generalized")
	return pkix.Extension{Id: id, Value: value}, err
}

// certify signs a certificate, and reads it as others will.
func certify(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key) // it verifies its signature
	if err != nil {
		return nil, fmt.Errorf("making certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// newSerial returns a positive number of 128 random bits, of which one is set.
func newSerial() *big.Int {
	var random [16]byte
	rand.Read(random[:])
	random[0] |= 1
	return new(big.Int).SetBytes(random[:])
}

func serialOf(c *x509.Certificate) string { return c.SerialNumber.Text(16) }

func fileOf(c *x509.Certificate) string { return issuedFolder + "/" + serialOf(c) + ".pem" }

// PEM writes a certificate.
func PEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func parse(text []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(text)
	if block == nil || strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("want one certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// MaxDays is the longest life of a certificate.
const MaxDays = 398

// A Request asks for a certificate for the key that signed it.
type Request struct {
	Role   evidence.Role
	Name   string
	Public crypto.PublicKey
}

// ParseRequest reads a certificate request (PKCS #10, RFC 2986), PEM or DER, and checks its signature. The request names one actor and asks for
// nothing else: what the CA does not give is refused, and not silently left out.
func ParseRequest(doc []byte) (*Request, error) {
	if block, rest := pem.Decode(doc); block != nil {
		if block.Type != "CERTIFICATE REQUEST" || strings.TrimSpace(string(rest)) != "" {
			return nil, fmt.Errorf("the PEM block is a %q, or there is more after it: want one certificate request", block.Type)
		}
		doc = block.Bytes
	}
	r, err := x509.ParseCertificateRequest(doc)
	if err != nil {
		return nil, fmt.Errorf("want a certificate request (PKCS #10), PEM or DER: %w", err)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("it is not signed with its key: %w", err)
	}
	for _, e := range r.Extensions {
		if !e.Id.Equal(oidSubjectAltName) {
			return nil, fmt.Errorf("it asks for the extension %s: want a subject alternative name alone", e.Id)
		}
	}
	if len(r.Extensions) != 1 || len(r.URIs) != 1 || len(r.DNSNames)+len(r.EmailAddresses)+len(r.IPAddresses) > 0 {
		return nil, errors.New("want one subject alternative name, the URI urn:jurat:ROLE:NAME")
	}
	public, err := evidence.ParsePublicKey(r.RawSubjectPublicKeyInfo)
	if err != nil {
		return nil, err
	}
	role, name, err := trust.Named(&x509.Certificate{Extensions: r.Extensions})
	if err == nil && !keys.MayOwn(role) {
		err = fmt.Errorf("the operator holds the key of the %s; only agents and reviewers have certificates here", role)
	}
	if err == nil {
		err = names.Check(name)
	}
	if err != nil {
		return nil, fmt.Errorf("its subject alternative name: %w", err)
	}
	return &Request{role, name, public}, nil
}

var oidSubjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

// Issue issues the certificate that a request asks for. The errors include ErrTaken, ErrAlike and ErrExpired.
func (a *CA) Issue(ctx context.Context, r *Request, days int) (made *x509.Certificate, err error) {
	if days < 1 || days > MaxDays {
		return nil, fmt.Errorf("issuing certificate: a life of %d days: want 1 to %d", days, MaxDays)
	}
	err = a.exclusively(ctx, "issuing certificate", func() error {
		if err := a.mayName(ctx, r); err != nil {
			return err
		}
		certificate, err := a.make(ctx, r, days)
		if err == nil {
			err = a.files.Create(ctx, fileOf(certificate), PEM(certificate))
		}
		if err == nil { // else it could not be revoked
			made = certificate
		}
		return err
	})
	return made, err
}

// make makes a certificate, and checks it as a verifier will.
func (a *CA) make(ctx context.Context, r *Request, days int) (*x509.Certificate, error) {
	key, err := a.signer(ctx)
	if err != nil {
		return nil, err
	}
	from := a.now().Add(-keys.Skew)
	if from.Before(a.Certificate.NotBefore) {
		from = a.Certificate.NotBefore
	}
	to := from.AddDate(0, 0, days).Add(-time.Second) // the last second is within (RFC 5280, section 4.1.2.5)
	if to.After(a.Certificate.NotAfter) {
		to = a.Certificate.NotAfter
	}
	identity := strings.TrimPrefix(trust.Identity(r.Role, r.Name), "urn:")
	shown := r.Name // to people: only the alternative name counts
	if utf8.RuneCountInString(shown) > maxCommonName {
		shown = string([]rune(shown)[:maxCommonName-1]) + "…"
	}
	template := &x509.Certificate{SerialNumber: newSerial(), Subject: pkix.Name{CommonName: shown}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature, UnknownExtKeyUsage: []asn1.ObjectIdentifier{oidDocumentSigning}, BasicConstraintsValid: true, URIs: []*url.URL{{Scheme: "urn", Opaque: identity}}}
	c, err := certify(template, a.Certificate, r.Public, key)
	if err != nil {
		return nil, err
	}
	if err := trust.CheckCertificate(c, r.Role, r.Name); err != nil {
		return nil, fmt.Errorf("the new certificate proves nothing: %w", err)
	}
	return c, nil
}

// mayName returns an error if a name is another key's, or looks like one that is.
func (a *CA) mayName(ctx context.Context, r *Request) error {
	public, err := evidence.MarshalPublicKey(r.Public)
	if err != nil {
		return err
	}
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	list, err := a.issued(ctx)
	if err != nil {
		return err
	}
	for _, c := range list {
		role, name, err := trust.Named(c)
		if err != nil {
			return err
		}
		if role != r.Role || !names.Same(name, r.Name) {
			continue
		}
		if name != r.Name {
			return fmt.Errorf("%w: %q, and %q has or had a certificate", ErrAlike, r.Name, name)
		}
		live := s.revocation(serialOf(c)) == nil && !a.now().After(c.NotAfter)
		if live && string(c.RawSubjectPublicKeyInfo) != string(public) {
			return fmt.Errorf("%w: %s, until %s", ErrTaken, a.files.Where(fileOf(c)), c.NotAfter.Format(time.RFC3339))
		}
	}
	return nil
}
