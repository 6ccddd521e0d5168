package filestore

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	keySize = 32
	// maxKeys is how many keys a file may have. It has two while one replaces the other.
	maxKeys = 8
)

var (
	// ErrOtherKey means that a file is wrapped under a key that is not among the given ones.
	ErrOtherKey = errors.New("it is wrapped under another wrapping key")
	// ErrDamaged means that the stored bytes are not what was wrapped, or were wrapped for another name.
	ErrDamaged = errors.New("it is damaged, or was wrapped under another name")
)

// An ID identifies a wrapping key without revealing it.
type ID string

// Keys are one or more wrapping keys. The first one wraps. They are safe for concurrent use.
type Keys struct{ list []key }

type key struct {
	id   ID
	aead cipher.AEAD
}

// Generate returns the text of a key file with one new key.
func Generate() []byte {
	secret := make([]byte, keySize)
	rand.Read(secret) // never fails
	return fmt.Appendf(nil, "# jurat wrapping key %s: without it the secrets in the database are lost\n%s\n",
		idOf(secret), base64.StdEncoding.EncodeToString(secret))
}

// Parse reads the text of a key file. Its errors contain nothing of that text.
func Parse(text []byte) (*Keys, error) {
	keys := new(Keys)
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		secret, err := base64.StdEncoding.Strict().DecodeString(string(line))
		if err != nil || len(secret) != keySize {
			return nil, fmt.Errorf("line %d: want a key of %d bytes in base64, or a comment that begins with #", n, keySize)
		}
		if err := keys.add(secret); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if len(keys.list) == 0 {
		return nil, errors.New("it contains no wrapping key")
	}
	return keys, nil
}

func (k *Keys) add(secret []byte) error {
	id := idOf(secret)
	if k.find(id) != nil {
		return fmt.Errorf("the key %s occurs twice", id)
	}
	if len(k.list) == maxKeys {
		return fmt.Errorf("more than %d keys", maxKeys)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	k.list = append(k.list, key{id, aead})
	return err
}

func idOf(secret []byte) ID {
	sum := sha256.Sum256(append([]byte("jurat/wrapping-key/v1\x00"), secret...))
	return ID(hex.EncodeToString(sum[:8]))
}

// IDs returns the IDs of the keys, the wrapping one first.
func (k *Keys) IDs() []ID {
	ids := make([]ID, len(k.list))
	for n := range k.list {
		ids[n] = k.list[n].id
	}
	return ids
}

// Wrap encrypts the content of a file under the first key, and returns the key's ID.
func (k *Keys) Wrap(name string, secret []byte) (ID, []byte) {
	first := &k.list[0]
	return first.id, first.aead.Seal(nil, nil, secret, bound(name))
}

// Unwrap decrypts what Wrap has encrypted for this name. Errors wrap ErrOtherKey or ErrDamaged.
func (k *Keys) Unwrap(name string, id ID, wrapped []byte) ([]byte, error) {
	key := k.find(id)
	if key == nil {
		return nil, fmt.Errorf("%w: %s; the given keys are %s", ErrOtherKey, id, k)
	}
	secret, err := key.aead.Open(nil, nil, wrapped, bound(name))
	if err != nil {
		return nil, ErrDamaged
	}
	return secret, nil
}

// Has reports whether Keys contains a key.
func (k *Keys) Has(id ID) bool { return k.find(id) != nil }

func (k *Keys) find(id ID) *key {
	i := slices.IndexFunc(k.list, func(key key) bool { return key.id == id })
	if i < 0 {
		return nil
	}
	return &k.list[i]
}

// String returns the IDs, so that printing Keys does not reveal them.
func (k *Keys) String() string {
	var names []string
	for _, id := range k.IDs() {
		names = append(names, string(id))
	}
	return strings.Join(names, ", ")
}

func bound(name string) []byte { return []byte("jurat/wrapped/v1\x00" + name) }
