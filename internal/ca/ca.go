// Package ca is a certification authority for the keys of agents and reviewers. It issues certificates by which a reader who trusts the CA
// believes keys, renews and revokes them, and says what is revoked, in lists (RFC 5280) and OCSP responses (RFC 6960).
//
// # A CA is a folder
//
//	ca.key         the private key, or a reference to a key on a token
//	acts/N.json    what the CA did, in order, from 1: the first has its own certificate and its settings
//
// The state of a CA is what its acts say, so there is no second list that could contradict them. Each act is a file that is made whole or
// not at all, with everything that belongs together in it: a revocation and the list that names it are one act. A crash leaves the state
// before an act or after it. Making a file fails if it exists. So of two processes that act at once one is first; the other one reads what
// the first did, and decides again. No lock is needed, and a process that dies holds nothing up.
//
// The folder may be on a machine without network. It never reads a log. Package certlog carries the acts into one.
//
// # What a certificate says
//
// A certificate has one name, the URI urn:jurat:ROLE:NAME, one purpose, the signing of documents (RFC 9336), and a serial number of
// random bits. It begins keys.Skew before it was made, as a key does, because the clock of a time-stamping authority may be behind. It
// never ends after the CA's own. A short one, of at most seven days, has the extension noRevAvail (RFC 9608): it is not revoked, it ends.
//
// # Lists
//
// A list names every certificate that was ever revoked, also after it expired, and says so (expiredCertsOnCRL): records are verified years
// later. Its number is one more than that of the list before.
package ca

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/token"
)

// The files of a CA.
const (
	keyFile    = "ca.key"
	actsFolder = "acts"
)

var (
	// ErrNone says that a folder holds no CA.
	ErrNone = errors.New("there is no CA here")
	// ErrExists says that a folder holds a CA already.
	ErrExists = errors.New("there is a CA here already")
	// ErrExpired says that the CA's own certificate has ended, or ends too soon.
	ErrExpired = errors.New("the CA's own certificate has ended")
	// ErrClock says that the clock is far behind what the CA did last.
	ErrClock = errors.New("the clock is behind the CA's last act")
	// ErrTaken says that another key has a certificate for the name.
	ErrTaken = errors.New("the name has a certificate for another key")
	// ErrUnknown says that the CA did not issue such a certificate.
	ErrUnknown = errors.New("the CA has issued no such certificate")
	// ErrRevoked says that a certificate is revoked already.
	ErrRevoked = errors.New("the certificate is revoked already")
)

// Config says where a CA is.
type Config struct {
	Dir    string           // its folder
	Helper *token.Helper    // signs with keys on tokens. nil: only keys in files
	Now    func() time.Time // nil: time.Now
}

// A CA is open for reading and acting. It is safe for concurrent use, also by several processes on one folder.
type CA struct {
	Certificate *x509.Certificate
	ID          evidence.KeyID // of its key
	Settings    Settings

	config Config
	files  *filestore.Folder

	mu      sync.Mutex // held while acts are read and made
	key     crypto.Signer
	count   int64     // of acts
	last    time.Time // of the last act
	issued  []*Issued // in order
	serials map[string]*Issued
	list    List              // the latest
	answers map[string]answer // the latest OCSP response for each serial number
}

// Settings are what a CA was made with.
type Settings struct {
	CRL string `json:"crl,omitzero"` // URL at which its list can be fetched, for certificates that are not short; "": none is named
}

// Issued is a certificate of the CA, and what became of it. Callers must not change it.
type Issued struct {
	Certificate *x509.Certificate
	Serial      string // as operator.CheckSerial wants it
	Role        evidence.Role
	Name        string
	KeyID       evidence.KeyID
	At          time.Time
	By, Reason  string
	Short       bool        // it has noRevAvail
	Revoked     *Revocation // nil: it is not revoked
}

// A Revocation says since when a certificate is revoked.
type Revocation struct {
	Serial      string    `json:"serial"`
	Cause       string    `json:"cause"` // one of operator.Causes
	From        time.Time `json:"from"`  // when the CA revoked it
	InvalidFrom time.Time `json:"invalid_from,omitzero"`
}

// A List is a certificate revocation list.
type List struct {
	Number               *big.Int
	DER                  []byte
	ThisUpdate, NextTime time.Time
}

// An answer is an OCSP response.
type answer struct {
	der []byte
	at  time.Time
}

// Open opens a CA. The error has ErrNone in its chain if the folder has none.
func Open(ctx context.Context, c Config) (*CA, error) {
	a := prepare(c)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.open(ctx); err != nil {
		return nil, fmt.Errorf("opening CA %s: %w", c.Dir, err)
	}
	if a.Certificate == nil {
		return nil, fmt.Errorf("opening CA %s: %w", c.Dir, ErrNone)
	}
	return a, nil
}

func prepare(c Config) *CA {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Helper == nil {
		c.Helper = &token.Helper{}
	}
	return &CA{config: c, files: filestore.NewFolder(c.Dir), serials: map[string]*Issued{}, answers: map[string]answer{}}
}

// Where is the CA's folder, for messages.
func (a *CA) Where() string { return a.config.Dir }

// now is the time of the next act: whole seconds, as certificates have them, and never before the last act's. A clock that is behind by a
// day or less stands still until it has caught up. The caller holds the lock.
func (a *CA) now() (time.Time, error) {
	const most = 24 * time.Hour
	at := a.config.Now().UTC().Truncate(time.Second)
	if at.Add(most).Before(a.last) {
		return at, fmt.Errorf("%w: it shows %s, and the last act is of %s", ErrClock, at.Format(time.RFC3339), a.last.Format(time.RFC3339))
	}
	if at.Before(a.last) {
		return a.last, nil
	}
	return at, nil
}

// alive returns an error if the CA's own certificate is not valid: what it signs then is worth nothing.
func (a *CA) alive(at time.Time) error {
	if at.After(a.Certificate.NotAfter) {
		return fmt.Errorf("%w: at %s", ErrExpired, a.Certificate.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// signer returns the CA's key. The caller holds the lock.
func (a *CA) signer(ctx context.Context) (crypto.Signer, error) {
	if a.key != nil {
		return a.key, nil
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
	a.key = key
	return key, nil
}

func (a *CA) loadKey(ctx context.Context) (crypto.Signer, error) {
	text, err := a.files.Read(ctx, keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA's key: %w", err)
	}
	key, rest, err := a.config.Helper.ParseKey(text)
	if err == nil && len(bytes.TrimSpace([]byte(rest))) > 0 {
		err = errors.New("there is more after the key")
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", a.files.Where(keyFile), err)
	}
	return key, nil
}

// Issued returns every certificate that the CA issued, in order, its own not among them.
func (a *CA) Issued(ctx context.Context) ([]Issued, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.refresh(ctx); err != nil {
		return nil, err
	}
	list := make([]Issued, len(a.issued))
	for i, one := range a.issued {
		list[i] = *one
	}
	return list, nil
}

// Find returns the certificate with a serial number, or ErrUnknown, wrapped.
func (a *CA) Find(ctx context.Context, serial string) (*Issued, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.refresh(ctx); err != nil {
		return nil, err
	}
	return a.find(serial)
}

// find is Find. The caller holds the lock.
func (a *CA) find(serial string) (*Issued, error) {
	one := a.serials[serial]
	if one == nil {
		return nil, fmt.Errorf("%w: serial number %q", ErrUnknown, evidence.Abbreviate(serial))
	}
	return new(*one), nil
}

// isMissing reports whether a file is not there.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
