// Package keyring keeps the private keys of an installation: one key pair per actor and role, made when the actor
// first signs, and beside it, where that is wanted, a second one that withstands quantum computers (ML-DSA-65). Each is
// in a file of its own that only the operator's account can read.
//
// What became of keys since stands in the log (see keyhistory), which the ring asks before it hands out a signer. The
// files follow: a key that is to replace another is in a file before the log says so, and one that has ended is
// destroyed after the log says so. So a crash between the two leaves nothing that Tidy does not bring up to date.
//
// A key file is a line of JSON that says whose key it is, followed by the key as PKCS #8 in PEM, so that
// `openssl pkey -in FILE` reads it too (ML-DSA-65 since OpenSSL 3.5).
package keyring

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/keyhistory"
)

// Config is what a Ring is made of.
type Config struct {
	Dir         string             // folder of the key files; made when it is missing
	Algorithm   evidence.Algorithm // of first keys made on first use; not ML-DSA-65; "": ES256
	PostQuantum bool               // every actor signs twice: second keys are made on first use, too. false: only who has one
	Now         func() time.Time   // nil: time.Now

	// History is what the log says of keys now. nil: nothing.
	History func() (*keyhistory.History, error)

	// NewKey makes a private key. nil: a random one. Tests give keys that they know.
	NewKey func(role evidence.Role, name string, algorithm evidence.Algorithm) (crypto.Signer, error)
	// Random is used in signatures. nil makes ECDSA (RFC 6979) and ML-DSA (FIPS 204) deterministic, which is repeatable.
	Random io.Reader
}

// A Ring finds and makes keys. It is safe for concurrent use, also by several processes on one folder.
type Ring struct {
	config Config
	mu     sync.Mutex // held while a key is looked up or made
	loaded map[place]*Key
}

// A place is where a key belongs. An actor has at most two: its first key, and its second, of ML-DSA-65.
type place struct {
	role   evidence.Role
	name   string
	second bool
}

func placeOf(role evidence.Role, name string, algorithm evidence.Algorithm) place {
	return place{role, name, algorithm.PostQuantum()}
}

// algorithm is one whose keys belong in the place.
func (p place) algorithm() evidence.Algorithm {
	if p.second {
		return evidence.MLDSA65
	}
	return evidence.ES256
}

// A Key is one actor's key pair.
type Key struct {
	Name      string
	Role      evidence.Role
	Algorithm evidence.Algorithm
	KeyID     evidence.KeyID
	PublicKey []byte // DER SubjectPublicKeyInfo
	Created   time.Time
	With      evidence.KeyID // of a first key: the actor's second, if it was there before, so that this one never signs alone
	File      string

	signer evidence.Signer
}

// ErrExists says that an actor has a key already.
var ErrExists = errors.New("there is a key already")

// ErrOwner says that an actor holds its keys itself, so that nobody signs for it here.
var ErrOwner = errors.New("the owner holds the key")

// ErrNoKey says that an actor's keys were retired or revoked, and that it has no others.
var ErrNoKey = errors.New("its keys were retired or revoked, and it has no others")

// ErrLost says that the private key that the log names as an actor's is in no file.
var ErrLost = errors.New("the private key is missing")

// ErrSecondKey says that an actor's second key is not the one that its first key was made to sign with.
var ErrSecondKey = errors.New("the second key, without which the first does not sign, is missing or another")

// New makes a Ring. It reads no key yet.
func New(config Config) (*Ring, error) {
	if config.Dir == "" {
		return nil, errors.New("opening keyring: no folder")
	}
	if config.Algorithm == "" {
		config.Algorithm = evidence.ES256
	}
	if first := firstAlgorithms(); !slices.Contains(first, config.Algorithm) {
		return nil, fmt.Errorf("opening keyring: algorithm %q is none of %v", config.Algorithm, first)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.NewKey == nil {
		config.NewKey = randomKey
	}
	if config.History == nil {
		config.History = func() (*keyhistory.History, error) { return keyhistory.New(), nil }
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening keyring: %w", err)
	}
	return &Ring{config: config, loaded: map[place]*Key{}}, nil
}

// firstAlgorithms are those of first keys.
func firstAlgorithms() []evidence.Algorithm {
	return slices.DeleteFunc(evidence.Algorithms(), evidence.Algorithm.PostQuantum)
}

func randomKey(_ evidence.Role, _ string, algorithm evidence.Algorithm) (crypto.Signer, error) {
	switch algorithm {
	case evidence.RS256:
		const bits = 3072 // 128-bit strength, as P-256 and Ed25519 have
		return rsa.GenerateKey(rand.Reader, bits)
	case evidence.Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case evidence.MLDSA65:
		var seed [32]byte
		rand.Read(seed[:]) // never fails
		return evidence.NewMLDSA65(&seed), nil
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// Signers returns what signs for an actor: its first key, which is made if there is none, and its second, if it has one
// or Config.PostQuantum asks for it.
func (r *Ring) Signers(role evidence.Role, name string) ([]evidence.Signer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	signers, err := r.signers(role, name)
	if err != nil {
		return nil, fmt.Errorf("key of %s %q: %w", role, name, err)
	}
	return signers, nil
}

func (r *Ring) signers(role evidence.Role, name string) ([]evidence.Signer, error) {
	if err := r.maySign(role, name); err != nil {
		return nil, err
	}
	if r.config.PostQuantum { // the second key is made first, so that the first knows of it and never signs alone
		if _, err := r.findOrCreate(role, name, evidence.MLDSA65); err != nil {
			return nil, err
		}
	}
	first, err := r.findOrCreate(role, name, r.config.Algorithm)
	if err != nil {
		return nil, err
	}
	// Looked up last: another process may have made it, and whatever the first key knows of is there by now.
	second, err := r.find(place{role, name, true})
	switch {
	case errors.Is(err, fs.ErrNotExist) && first.With.IsZero():
		return []evidence.Signer{first.signer}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s", ErrSecondKey, first.With)
	case err != nil:
		return nil, err
	case !first.With.IsZero() && first.With != second.KeyID:
		return nil, fmt.Errorf("%w: it is %s instead of %s", ErrSecondKey, second.KeyID, first.With)
	}
	return []evidence.Signer{first.signer, second.signer}, nil
}

// maySign says why nobody signs for an actor here.
func (r *Ring) maySign(role evidence.Role, name string) error {
	history, err := r.config.History()
	if err != nil {
		return err
	}
	latest := history.Latest(role, name)
	if len(latest) == 0 {
		return nil
	}
	// Where all have ended, the one of those that was the owner's says that the next one is.
	if slices.ContainsFunc(latest, func(k *keyhistory.Key) bool { return k.Custody == evidence.CustodyOwner }) {
		return ErrOwner
	}
	if len(history.Active(role, name, r.config.Now())) == 0 {
		return ErrNoKey
	}
	return nil
}

// findOrCreate returns the key in the place of an algorithm. The lock is held.
func (r *Ring) findOrCreate(role evidence.Role, name string, algorithm evidence.Algorithm) (*Key, error) {
	key, err := r.find(placeOf(role, name, algorithm))
	if errors.Is(err, fs.ErrNotExist) {
		key, err = r.create(role, name, algorithm)
		if errors.Is(err, ErrExists) { // another process was faster: its key is the actor's
			key, err = r.find(placeOf(role, name, algorithm))
		}
	}
	return key, err
}

// Create makes an actor's key, of ML-DSA-65 its second, and fails with ErrExists if there is one.
func (r *Ring) Create(role evidence.Role, name string, algorithm evidence.Algorithm) (*Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.maySign(role, name)
	var key *Key
	if err == nil {
		key, err = r.create(role, name, algorithm)
	}
	if err != nil {
		return nil, fmt.Errorf("key of %s %q: %w", role, name, err)
	}
	return key, nil
}

// Keys lists every key, by role and name, an actor's first key before its second.
func (r *Ring) Keys() ([]*Key, error) {
	files, err := filepath.Glob(filepath.Join(r.config.Dir, "*", "*"+extension))
	if err != nil {
		return nil, fmt.Errorf("listing keys: %w", err)
	}
	keys := make([]*Key, 0, len(files))
	for _, file := range files {
		if isNext(file) {
			continue // it is nobody's key yet
		}
		key, err := r.load(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just been destroyed
		}
		if err != nil {
			return nil, fmt.Errorf("listing keys: %w", err)
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b *Key) int {
		return strings.Compare(a.sortKey(), b.sortKey())
	})
	return keys, nil
}

func (k *Key) sortKey() string {
	return fmt.Sprintf("%s\x00%s\x00%t", k.Role, k.Name, k.Algorithm.PostQuantum())
}

// find returns the key in a place, or an error with fs.ErrNotExist in its chain if none has been made for it. The lock is held.
func (r *Ring) find(at place) (*Key, error) {
	history, err := r.config.History()
	if err != nil {
		return nil, err
	}
	if current := history.Current(at.role, at.name, at.algorithm()); current != nil {
		return r.private(at, current)
	}
	if key := r.loaded[at]; key != nil {
		return key, nil
	}
	return r.take(at, r.file(at))
}

// private returns the key that the log names as the one in a place.
func (r *Ring) private(at place, current *keyhistory.Key) (*Key, error) {
	if current.Ended(r.config.Now()) {
		return nil, fmt.Errorf("%w: %s is %s", keyhistory.ErrEnded, current.KeyID, current.State(r.config.Now()))
	}
	if key := r.loaded[at]; key != nil && key.KeyID == current.KeyID {
		return key, nil
	}
	for _, file := range []string{r.rotatedFile(at, current.KeyID), r.file(at), r.nextFile(at, current.Algorithm)} {
		key, err := r.take(at, file)
		if err == nil && key.KeyID == current.KeyID {
			return key, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrLost, current.KeyID)
}

// take loads a key that must belong in a place.
func (r *Ring) take(at place, file string) (*Key, error) {
	key, err := r.load(file)
	if err != nil {
		return nil, err
	}
	if is := placeOf(key.Role, key.Name, key.Algorithm); is != at {
		return nil, fmt.Errorf("%s is the %s key of %s %q", key.File, key.Algorithm, key.Role, key.Name)
	}
	r.loaded[at] = key
	return key, nil
}

// create makes the first key in a place, and its file. The lock is held.
func (r *Ring) create(role evidence.Role, name string, algorithm evidence.Algorithm) (*Key, error) {
	at := placeOf(role, name, algorithm)
	var with evidence.KeyID
	if !at.second {
		var err error
		if with, err = r.secondOf(role, name); err != nil {
			return nil, err
		}
	}
	if history, err := r.config.History(); err != nil {
		return nil, err
	} else if history.Current(role, name, algorithm) != nil {
		return nil, ErrExists
	}
	if err := r.make(r.file(at), role, name, algorithm, with); err != nil {
		return nil, err
	}
	delete(r.loaded, at)
	return r.find(at) // what is used is what was written
}

// make makes a key in a new file.
func (r *Ring) make(file string, role evidence.Role, name string, algorithm evidence.Algorithm, with evidence.KeyID) error {
	if !slices.Contains(evidence.Roles(), role) {
		return fmt.Errorf("role %q is none of %v", role, evidence.Roles())
	}
	if err := evidence.CheckName(name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if !slices.Contains(evidence.Algorithms(), algorithm) {
		return fmt.Errorf("algorithm %q is none of %v", algorithm, evidence.Algorithms())
	}
	private, err := r.config.NewKey(role, name, algorithm)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	head := header{Name: name, Role: role, Created: r.config.Now().UTC().Truncate(time.Second), With: with}
	return writeKey(file, head, private)
}

// secondOf is the id of an actor's second key, and zero if there is none yet. The lock is held.
func (r *Ring) secondOf(role evidence.Role, name string) (evidence.KeyID, error) {
	second, err := r.find(place{role, name, true})
	if errors.Is(err, fs.ErrNotExist) {
		return evidence.KeyID{}, nil
	}
	if err != nil {
		return evidence.KeyID{}, err
	}
	return second.KeyID, nil
}
