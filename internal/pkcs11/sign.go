package pkcs11

import (
	"context"
	"crypto"
	"crypto/sha256"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/ecdsasig"
	"jurat/internal/token"
)

// Sign signs with the key that a URI names: a SHA-256 digest with ES256 and RS256, the message itself with Ed25519.
// Its errors are those of Key, and token.ErrRefused, wrapped, for data that is not a digest where one is signed.
func (t *Token) Sign(ctx context.Context, uri string, data []byte) (public crypto.PublicKey, signature []byte, err error) {
	err = t.with(ctx, func(s *session) error {
		k, err := t.find(s, uri)
		if err != nil {
			return err
		}
		public = k.Public
		signature, err = s.sign(k, data)
		return err
	})
	return public, signature, err
}

func (s *session) sign(k *found, data []byte) ([]byte, error) {
	if k.Algorithm != evidence.Ed25519 && len(data) != sha256.Size {
		return nil, fmt.Errorf("%w: %s signs a SHA-256 digest, and not %d bytes", token.ErrRefused, k.Algorithm, len(data))
	}
	switch k.Algorithm {
	case evidence.ES256:
		raw, err := s.signRaw(mechanismECDSA, k.handle, data)
		if err != nil {
			return nil, err
		}
		return ecdsasig.FromRaw(raw)
	case evidence.Ed25519:
		return s.signRaw(mechanismEdDSA, k.handle, data)
	case evidence.RS256:
		return s.signRaw(mechanismRSA, k.handle, slices.Concat(digestInfoSHA256, data))
	}
	return nil, fmt.Errorf("%w: %s", token.ErrUnsupported, k.Algorithm)
}

// digestInfoSHA256 is what comes before a SHA-256 digest (RFC 8017, section 9.2, note 1).
var digestInfoSHA256 = []byte("\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20")

func (s *session) signRaw(mechanism, key word, data []byte) ([]byte, error) {
	const most = 1024 // bytes of a signature: RSA of 8192 bits
	var p pinned
	defer p.Unpin()
	if err := s.call(fnSignInit, p.words([]word{mechanism, 0, 0}), key); err != nil {
		return nil, fmt.Errorf("C_SignInit: %w", err)
	}
	signature, count := make([]byte, most), pin(&p, new(word))
	*count = most
	if err := s.call(fnSign, p.bytes(data), word(len(data)), p.bytes(signature), address(count)); err != nil {
		return nil, fmt.Errorf("C_Sign: %w", err)
	}
	return signature[:min(*count, most)], nil
}
