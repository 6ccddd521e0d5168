package pkcs11

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/evidence"
	"jurat/internal/token"
)

// found is a key on the token, with the handle that this login knows it by.
type found struct {
	token.Key
	id     []byte
	handle word
}

// Keys lists the keys that may sign. It leaves out all others. It returns token.ErrUnavailable, wrapped, if the token
// is gone, token.ErrPIN if it refuses the PIN, an Error of the library, and the context's error.
func (t *Token) Keys(ctx context.Context) (keys []token.Key, err error) {
	err = t.with(ctx, func(s *session) error {
		keys = nil
		handles, err := t.private(s, URI{})
		if err != nil {
			return err
		}
		for _, handle := range handles {
			k, err := t.read(s, handle)
			if errors.Is(err, token.ErrRefused) || errors.Is(err, token.ErrUnsupported) {
				continue
			}
			if err != nil {
				return err
			}
			keys = append(keys, k.Key)
		}
		return nil
	})
	return keys, err
}

// Key returns the key that a URI names. It asks the token, whatever is remembered. It returns token.ErrNotFound,
// wrapped, if there is no such key, token.ErrRefused or token.ErrUnsupported for a key that may not sign, and the
// errors of Keys.
func (t *Token) Key(ctx context.Context, uri string) (key token.Key, err error) {
	err = t.with(ctx, func(s *session) error {
		t.mu.Lock()
		delete(t.keys, uri)
		t.mu.Unlock()
		k, err := t.find(s, uri)
		if err == nil {
			key = k.Key
		}
		return err
	})
	return key, err
}

// find looks a key up, and remembers it for as long as the login lasts.
func (t *Token) find(s *session, uri string) (*found, error) {
	t.mu.Lock()
	known := t.keys[uri]
	t.mu.Unlock()
	if known != nil {
		return known, nil
	}
	u, err := t.own(uri)
	if err != nil {
		return nil, err
	}
	handles, err := t.private(s, u)
	if err != nil {
		return nil, err
	}
	if len(handles) != 1 {
		return nil, fmt.Errorf("%w: %s names %d private keys", token.ErrNotFound, u, len(handles))
	}
	k, err := t.read(s, handles[0])
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.generation == t.generation && len(t.keys) < 1000 { // a caller may write one key's name in many ways
		t.keys[uri] = k
	}
	return k, nil
}

// own reads a URI, which must name a key on this token.
func (t *Token) own(uri string) (URI, error) {
	u, err := ParseURI(uri)
	if err != nil {
		return u, fmt.Errorf("%w: %w", token.ErrRefused, err)
	}
	if u.Object == "" && u.ID == nil {
		return u, fmt.Errorf("%w: %s names no key: it lacks object=LABEL or id=HEX", token.ErrRefused, uri)
	}
	if !u.fits(t.info) {
		return u, fmt.Errorf("%w: %s is on another token", token.ErrNotFound, uri)
	}
	return u, nil
}

// private finds the private keys that a URI names. None means that the token has none, and not that it is gone.
func (t *Token) private(s *session, u URI) ([]word, error) {
	handles, err := s.find(u.template(classPrivateKey))
	if err == nil && len(handles) == 0 {
		err = t.checkLogin(s)
	}
	return handles, err
}

// checkLogin returns an error if the token is gone, or has no user logged in. Sessions of some libraries outlive the token.
func (t *Token) checkLogin(s *session) error {
	const readOnlyUser, readWriteUser = 1, 3
	var p pinned
	defer p.Unpin()
	state := pin(&p, new([4]word)) // CK_SESSION_INFO: slot, state, flags, device error
	if err := s.call(fnGetSessionInfo, address(state)); err != nil {
		return err
	}
	if state[1] != readOnlyUser && state[1] != readWriteUser {
		return errUserNotLoggedIn
	}
	info, err := t.config.Module.tokenInfo(t.info.Slot)
	if err == nil && info.Serial != t.info.Serial {
		err = errTokenNotPresent
	}
	return err
}

func (u URI) template(class word) template {
	t := template{number(attrClass, class)}
	if u.Object != "" {
		t = append(t, text(attrLabel, []byte(u.Object)))
	}
	if u.ID != nil {
		t = append(t, text(attrID, u.ID))
	}
	return t
}

// read reads what jurat has to know of a private key, and refuses keys that must not sign.
func (t *Token) read(s *session, handle word) (*found, error) {
	label, err := s.attribute(handle, attrLabel)
	if err != nil {
		return nil, err
	}
	id, err := s.attribute(handle, attrID)
	if err != nil {
		return nil, err
	}
	protection, err := t.protection(s, handle)
	if err != nil {
		return nil, err
	}
	public, err := s.public(handle, id)
	if err != nil {
		return nil, err
	}
	algorithm, err := evidence.AlgorithmOf(public)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", token.ErrUnsupported, err)
	}
	uri := URI{Token: t.info.Label, Object: string(label), ID: id}
	return &found{token.Key{URI: uri.String(), Algorithm: algorithm, Public: public, Protection: protection}, id, handle}, nil
}

// protection reads what the token says of how it keeps a key.
func (t *Token) protection(s *session, handle word) (token.Protection, error) {
	flags := map[word]bool{attrSensitive: false, attrExtractable: false, attrAlwaysSensitive: false, attrNeverExtractable: false, attrLocal: false,
		attrAlwaysAuthenticate: false}
	for flag := range flags {
		set, err := s.truth(handle, flag)
		if err != nil {
			return token.Protection{}, err
		}
		flags[flag] = set
	}
	never := flags[attrAlwaysSensitive] && flags[attrNeverExtractable]
	var why string
	switch {
	case flags[attrExtractable] || !flags[attrSensitive]:
		why = "it can be exported"
	case !t.config.AllowImported && !(never && flags[attrLocal]):
		why = "the token does not say that it made the key, and that the key could never be exported"
	case flags[attrAlwaysAuthenticate]:
		why = "the token wants the PIN for each signature"
	}
	if why != "" {
		return token.Protection{}, fmt.Errorf("%w: the key is not used: %s", token.ErrRefused, why)
	}
	return token.Protection{Kind: "pkcs11", Manufacturer: t.info.Manufacturer, Model: t.info.Model, Serial: t.info.Serial,
		NeverExtractable: never, Local: flags[attrLocal]}, nil
}

// public reads the public half of a private key: from the key itself, or from the public object with its id.
func (s *session) public(private word, id []byte) (crypto.PublicKey, error) {
	kind, err := s.attribute(private, attrKeyType)
	if err != nil {
		return nil, err
	}
	holder, err := s.publicObject(private, id)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.Equal(kind, number(0, keyRSA).value):
		return s.publicRSA(holder)
	case bytes.Equal(kind, number(0, keyEC).value), bytes.Equal(kind, number(0, keyEdwards).value):
		return s.publicCurve(holder)
	}
	return nil, fmt.Errorf("%w: a key of type %x", token.ErrUnsupported, kind)
}

func (s *session) publicObject(private word, id []byte) (word, error) {
	if len(id) == 0 {
		return private, nil
	}
	handles, err := s.find(template{number(attrClass, classPublicKey), text(attrID, id)})
	if err != nil || len(handles) != 1 {
		return private, err
	}
	return handles[0], nil
}

func (s *session) publicRSA(holder word) (crypto.PublicKey, error) {
	modulus, err := s.attribute(holder, attrModulus)
	if err != nil {
		return nil, err
	}
	exponent, err := s.attribute(holder, attrPublicExponent)
	if err != nil {
		return nil, err
	}
	e := new(big.Int).SetBytes(exponent)
	if e.BitLen() > 31 {
		return nil, fmt.Errorf("%w: an RSA key whose exponent is too large", token.ErrUnsupported)
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(modulus), E: int(e.Int64())}, nil
}

// Curves as tokens write them in CKA_EC_PARAMS: an object identifier, or a name.
var (
	curveP256    = []byte("\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07")
	curveEdwards = []byte("\x06\x03\x2b\x65\x70")
	nameEdwards  = []byte("\x13\x0cedwards25519")
)

func (s *session) publicCurve(holder word) (crypto.PublicKey, error) {
	curve, err := s.attribute(holder, attrECParams)
	if err != nil {
		return nil, err
	}
	point, err := s.attribute(holder, attrECPoint)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.Equal(curve, curveP256):
		return publicP256(point)
	case bytes.Equal(curve, curveEdwards), bytes.Equal(curve, nameEdwards):
		if point = unwrapped(point, ed25519.PublicKeySize); len(point) == ed25519.PublicKeySize {
			return ed25519.PublicKey(point), nil
		}
	}
	return nil, fmt.Errorf("%w: a key on curve %x: want P-256 or Ed25519", token.ErrUnsupported, curve)
}

func publicP256(point []byte) (crypto.PublicKey, error) {
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), unwrapped(point, 65))
	if err != nil {
		return nil, fmt.Errorf("%w: the token's P-256 point is none: %w", token.ErrUnsupported, err)
	}
	return key, nil
}

// unwrapped takes a point out of the DER OCTET STRING that the standard demands and some tokens leave out.
func unwrapped(point []byte, size int) []byte {
	input, inner := cryptobyte.String(point), cryptobyte.String(nil)
	if len(point) != size && input.ReadASN1(&inner, asn1.OCTET_STRING) && input.Empty() {
		return inner
	}
	return point
}
