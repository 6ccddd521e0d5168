// Package keyring keeps the private keys of an installation: one key pair per actor and role, made when the actor
// first signs, each in a file of its own that only the operator's account can read.
//
// A key file is a line of JSON that says whose key it is, followed by the key as PKCS #8 in PEM, so that
// `openssl pkey -in FILE` reads it too.
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
)

// Config is what a Ring is made of.
type Config struct {
	Dir       string             // folder of the key files; made when it is missing
	Algorithm evidence.Algorithm // of keys made on first use; "": ES256
	Now       func() time.Time   // nil: time.Now

	// NewKey makes a private key. nil: a random one. Tests give keys that they know.
	NewKey func(role evidence.Role, name string, algorithm evidence.Algorithm) (crypto.Signer, error)
	// Random is used in signatures. nil makes ECDSA deterministic (RFC 6979), which is as safe, and repeatable.
	Random io.Reader
}

// A Ring finds and makes keys. It is safe for concurrent use, also by several processes on one folder.
type Ring struct {
	config Config
	mu     sync.Mutex // held while a key is looked up or made
	loaded map[actor]*Key
}

type actor struct {
	role evidence.Role
	name string
}

// A Key is one actor's key pair.
type Key struct {
	Name      string
	Role      evidence.Role
	Algorithm evidence.Algorithm
	KeyID     evidence.KeyID
	PublicKey []byte // DER SubjectPublicKeyInfo
	Created   time.Time
	File      string

	signer evidence.Signer
}

// ErrExists says that an actor has a key already.
var ErrExists = errors.New("there is a key already")

// New makes a Ring. It reads no key yet.
func New(config Config) (*Ring, error) {
	if config.Dir == "" {
		return nil, errors.New("opening keyring: no folder")
	}
	if config.Algorithm == "" {
		config.Algorithm = evidence.ES256
	}
	if !slices.Contains(evidence.Algorithms(), config.Algorithm) {
		return nil, fmt.Errorf("opening keyring: algorithm %q is none of %v", config.Algorithm, evidence.Algorithms())
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.NewKey == nil {
		config.NewKey = randomKey
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening keyring: %w", err)
	}
	return &Ring{config: config, loaded: map[actor]*Key{}}, nil
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

// Signer returns what signs for an actor, and makes the actor's key if there is none.
func (r *Ring) Signer(role evidence.Role, name string) (evidence.Signer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, err := r.find(role, name)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = r.create(role, name, r.config.Algorithm)
		if errors.Is(err, ErrExists) { // another process was faster: its key is the actor's
			key, err = r.find(role, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("key of %s %q: %w", role, name, err)
	}
	return key.signer, nil
}

// Create makes an actor's key, and fails with ErrExists if there is one.
func (r *Ring) Create(role evidence.Role, name string, algorithm evidence.Algorithm) (*Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, err := r.create(role, name, algorithm)
	if err != nil {
		return nil, fmt.Errorf("key of %s %q: %w", role, name, err)
	}
	return key, nil
}

// Keys lists every key, by role and name.
func (r *Ring) Keys() ([]*Key, error) {
	files, err := filepath.Glob(filepath.Join(r.config.Dir, "*", "*"+extension))
	if err != nil {
		return nil, fmt.Errorf("listing keys: %w", err)
	}
	keys := make([]*Key, 0, len(files))
	for _, file := range files {
		key, err := r.load(file)
		if err != nil {
			return nil, fmt.Errorf("listing keys: %w", err)
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b *Key) int {
		return strings.Compare(string(a.Role)+"\x00"+a.Name, string(b.Role)+"\x00"+b.Name)
	})
	return keys, nil
}

// find returns an actor's key, or an error with fs.ErrNotExist in its chain. The lock is held.
func (r *Ring) find(role evidence.Role, name string) (*Key, error) {
	if key := r.loaded[actor{role, name}]; key != nil {
		return key, nil
	}
	key, err := r.load(r.file(role, name))
	if err != nil {
		return nil, err
	}
	if key.Role != role || key.Name != name {
		return nil, fmt.Errorf("%s is the key of %s %q", key.File, key.Role, key.Name)
	}
	r.loaded[actor{role, name}] = key
	return key, nil
}

// create makes a key and its file. The lock is held.
func (r *Ring) create(role evidence.Role, name string, algorithm evidence.Algorithm) (*Key, error) {
	if !slices.Contains(evidence.Roles(), role) || name == "" {
		return nil, fmt.Errorf("want a name, and a role among %v", evidence.Roles())
	}
	if !slices.Contains(evidence.Algorithms(), algorithm) {
		return nil, fmt.Errorf("algorithm %q is none of %v", algorithm, evidence.Algorithms())
	}
	private, err := r.config.NewKey(role, name, algorithm)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	file := r.file(role, name)
	head := header{Name: name, Role: role, Created: r.config.Now().UTC().Truncate(time.Second)}
	if err := writeKey(file, head, private); err != nil {
		return nil, err
	}
	key, err := r.load(file) // what is used is what was written
	if err != nil {
		return nil, err
	}
	r.loaded[actor{role, name}] = key
	return key, nil
}
