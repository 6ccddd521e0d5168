package pkcs11

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/internal/token"
)

// Generate has the token make a key pair with the label that a URI names. What the token says of the key is read back: a key
// that could be exported is destroyed again, and refused. The key's id is the first 20 bytes of jurat's key id.
func (t *Token) Generate(ctx context.Context, uri string, algorithm evidence.Algorithm) (key token.Key, err error) {
	if err := t.Open(ctx); err != nil { // a URI is of this token only if there is one
		return key, err
	}
	u, err := t.own(uri)
	if err != nil {
		return key, err
	}
	if u.Object == "" || u.ID != nil {
		return key, fmt.Errorf("%w: a new key has object=LABEL and gets its id from the key", token.ErrRefused)
	}
	if err := t.enter(ctx); err != nil {
		return key, err
	}
	defer t.leave()
	s, err := t.take(flagSerial | flagRW)
	if err != nil {
		return key, err
	}
	t.calls.RLock()
	defer t.calls.RUnlock()
	key, err = t.generate(s, u, algorithm)
	return key, t.drop(s, err)
}

func (t *Token) generate(s *session, u URI, algorithm evidence.Algorithm) (token.Key, error) {
	there, err := t.private(s, u)
	if err != nil {
		return token.Key{}, err
	}
	if len(there) > 0 {
		return token.Key{}, fmt.Errorf("%w: %s", token.ErrExists, u)
	}
	id := make([]byte, 20)
	rand.Read(id) // never fails; it stays the id only where the token does not let it be changed
	public, private, err := s.makePair(u.Object, id, algorithm)
	if err != nil {
		return token.Key{}, err
	}
	k, err := t.checked(s, public, private)
	if err != nil {
		destroyed := errors.Join(s.call(fnDestroyObject, private), s.call(fnDestroyObject, public))
		return token.Key{}, errors.Join(fmt.Errorf("the token's new key: %w", err), destroyed)
	}
	return k.Key, nil
}

// checked reads a new key back, names it by its key id, and reads it again.
func (t *Token) checked(s *session, public, private word) (*found, error) {
	k, err := t.read(s, private)
	if err != nil {
		return nil, err
	}
	if !k.Protection.NeverExtractable || !k.Protection.Local {
		return nil, fmt.Errorf("%w: the token does not say that it made the key, and that the key can never be exported", token.ErrRefused)
	}
	id, err := evidence.KeyIDOf(k.Public)
	if err != nil {
		return nil, err
	}
	for _, object := range []word{public, private} {
		err := s.set(object, text(attrID, id[:20]))
		if errors.Is(err, errAttributeReadOnly) || errors.Is(err, errActionProhibited) {
			return k, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return t.read(s, private)
}

func (s *session) set(object word, a attribute) error {
	var p pinned
	defer p.Unpin()
	if err := s.call(fnSetAttributeValue, object, p.words(template{a}.raw(&p)), 1); err != nil {
		return fmt.Errorf("naming the key: %w", err)
	}
	return nil
}

// makePair makes a key pair that stays on the token and does nothing but sign.
func (s *session) makePair(label string, id []byte, algorithm evidence.Algorithm) (public, private word, err error) {
	mechanism, size, err := pairOf(algorithm)
	if err != nil {
		return 0, 0, err
	}
	named := template{text(attrLabel, []byte(label)), text(attrID, id), is(attrToken, true)}
	publicly := append(append(template{}, named...), append(size, is(attrPrivate, false), is(attrVerify, true), is(attrVerifyRecover, false), is(attrEncrypt, false), is(attrWrap, false))...)
	privately := append(append(template{}, named...), is(attrPrivate, true), is(attrSensitive, true), is(attrExtractable, false),
		is(attrSign, true), is(attrSignRecover, false), is(attrDecrypt, false), is(attrUnwrap, false), is(attrDerive, false))
	var p pinned
	defer p.Unpin()
	handles := pin(&p, new([2]word))
	err = s.call(fnGenerateKeyPair, p.words([]word{mechanism, 0, 0}), p.words(publicly.raw(&p)), word(len(publicly)),
		p.words(privately.raw(&p)), word(len(privately)), address(&handles[0]), address(&handles[1]))
	if errors.Is(err, errMechanism) {
		err = fmt.Errorf("%w: the token makes no keys for %s", token.ErrUnsupported, algorithm)
	}
	return handles[0], handles[1], err
}

// pairOf says by which mechanism keys are made, and what decides their size.
func pairOf(algorithm evidence.Algorithm) (mechanism word, size template, err error) {
	switch algorithm {
	case evidence.ES256:
		return mechanismECKeyPair, template{text(attrECParams, curveP256)}, nil
	case evidence.Ed25519:
		return mechanismEdwardsKeyPair, template{text(attrECParams, nameEdwards)}, nil
	case evidence.RS256:
		const bits = 3072 // 128-bit strength, as P-256 and Ed25519 have
		return mechanismRSAKeyPair, template{number(attrModulusBits, bits), text(attrPublicExponent, []byte{1, 0, 1})}, nil
	}
	return 0, nil, fmt.Errorf("%w: %s", token.ErrUnsupported, algorithm)
}
