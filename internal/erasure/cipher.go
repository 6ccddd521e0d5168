package erasure

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"

	"jurat/evidence"
)

const saltSize = 32

// seal encrypts salt and value for a place. The key encrypts nothing else.
func seal(key, place []byte, d *evidence.Disclosure) ([]byte, error) {
	if len(d.Salt) != saltSize {
		return nil, errors.New("a salt has 32 bytes")
	}
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	plain := append(append(make([]byte, 0, len(d.Salt)+len(d.Value)+aead.Overhead()), d.Salt...), d.Value...)
	return aead.Seal(plain[:0], nil, plain, place), nil // in place: a value may be long
}

func open(key, place, ciphertext []byte) (d evidence.Disclosure, err error) {
	aead, err := newAEAD(key)
	if err != nil {
		return d, err
	}
	plain, err := aead.Open(nil, nil, ciphertext, place)
	if err != nil {
		return d, errors.New("the value does not open with its key")
	}
	if len(plain) <= saltSize {
		return d, errors.New("there is no value in it")
	}
	d.Salt, d.Value = plain[:saltSize:saltSize], plain[saltSize:]
	return d, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// bound returns the additional data that binds a value to its place. A value that is copied to another member or record does not open.
func bound(record evidence.Digest, pointer string) []byte {
	return []byte("jurat/apart/v1\x00" + record.String() + "\x00" + pointer)
}
