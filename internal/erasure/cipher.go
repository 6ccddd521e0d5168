package erasure

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"

	"jurat/evidence"
)

const saltSize = 32

// seal encrypts salt and value at the beginning of a buffer, which has room for sealedLength of it. The key encrypts nothing else.
func seal(into, key []byte, at place, d *evidence.Disclosure) ([]byte, error) {
	if len(d.Salt) != saltSize {
		return nil, errors.New("a salt has 32 bytes")
	}
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	plain := append(append(into[:0], d.Salt...), d.Value...)
	return aead.Seal(plain[:0], nil, plain, at.bound()), nil // in place: a value may be long
}

// sealedLength is how long a value is with its salt, a nonce and a tag.
func sealedLength(d *evidence.Disclosure) int {
	const nonce, tag = 12, 16
	return nonce + len(d.Salt) + len(d.Value) + tag
}

func open(key []byte, at place, ciphertext []byte) (evidence.Disclosure, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return evidence.Disclosure{}, err
	}
	plain, err := aead.Open(nil, nil, ciphertext, at.bound())
	if err != nil {
		return evidence.Disclosure{}, errors.New("the value does not open with its key")
	}
	if len(plain) <= saltSize {
		return evidence.Disclosure{}, errors.New("there is no value in it")
	}
	return evidence.Disclosure{Pointer: at.pointer, Salt: plain[:saltSize:saltSize], Value: plain[saltSize:]}, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// bound returns the additional data that binds a value to its place. A value that is copied to another member or record does not open.
func (at place) bound() []byte {
	return []byte("jurat/apart/v1\x00" + at.record.String() + "\x00" + at.pointer)
}
