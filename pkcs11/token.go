package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/ThalesGroup/crypto11"
	"github.com/miekg/pkcs11"
)

// A token is one that the user is logged in to.
type token struct {
	ctx      *crypto11.Context
	library  *pkcs11.Ctx // the same library: crypto11 does not say whether the token is still there
	slot     uint
	info     pkcs11.TokenInfo
	imported bool

	mu   sync.Mutex
	keys map[string]*key // by the URI that the caller wrote
}

type key struct {
	keyInfo
	signer crypto11.Signer
}

// Errors that travel as codes.
var (
	errNotFound    = errors.New("there is no such key")
	errExists      = errors.New("there is such a key already")
	errRefused     = errors.New("the helper refuses")
	errUnsupported = errors.New("unsupported")
)

var codes = map[error]string{errNotFound: "not_found", errExists: "exists", errRefused: "refused", errUnsupported: "unsupported"}

// open finds the token that is named, and logs in.
func open(o options) (*token, error) {
	want := uri{token: o.token}
	if len(o.token) > len(scheme) && o.token[:len(scheme)] == scheme {
		var err error
		if want, err = parseURI(o.token); err != nil {
			return nil, fmt.Errorf("--token: %w", err)
		}
	}
	pin, err := o.pin()
	if err != nil {
		return nil, err
	}
	t := &token{imported: o.imported, keys: map[string]*key{}}
	if t.library = pkcs11.New(o.module); t.library == nil {
		return nil, fmt.Errorf("loading PKCS #11 library %s: it is missing, or not such a library", o.module)
	}
	if err := t.library.Initialize(); err != nil {
		return nil, fmt.Errorf("starting PKCS #11 library %s: %w", o.module, err)
	}
	err = errors.Join(t.choose(want), t.library.Finalize()) // crypto11 initialises it again
	if err == nil {
		err = mayTry(t.info, o.again)
	}
	if err != nil {
		return nil, err
	}
	t.ctx, err = crypto11.Configure(&crypto11.Config{Path: o.module, TokenSerial: t.info.SerialNumber, Pin: pin, MaxSessions: o.sessions + 1})
	if e := pkcs11.Error(0); errors.As(err, &e) && e >= pkcs11.CKR_PIN_INCORRECT && e <= pkcs11.CKR_PIN_LOCKED {
		return nil, fmt.Errorf("%w: token %q refuses the PIN: %w", errPIN, t.info.Label, err)
	}
	if err != nil {
		return nil, fmt.Errorf("logging in to token %q: %w", t.info.Label, err)
	}
	return t, nil
}

// choose finds the only token that fits.
func (t *token) choose(want uri) error {
	slots, err := t.library.GetSlotList(true)
	if err != nil {
		return fmt.Errorf("listing tokens: %w", err)
	}
	found := 0
	for _, slot := range slots {
		info, err := t.library.GetTokenInfo(slot)
		if err != nil || info.Flags&pkcs11.CKF_TOKEN_INITIALIZED == 0 || !want.fits(info) {
			continue
		}
		found++
		t.slot, t.info = slot, info
	}
	if found != 1 {
		return fmt.Errorf("%d tokens are present that fit %s: name one by its serial number", found, want)
	}
	return nil
}

func (u uri) fits(i pkcs11.TokenInfo) bool {
	fit := func(want, is string) bool { return want == "" || want == is }
	return fit(u.token, i.Label) && fit(u.manufacturer, i.ManufacturerID) && fit(u.model, i.Model) && fit(u.serial, i.SerialNumber)
}

// mayTry refuses to try a PIN that may be wrong, or may be the last try.
func mayTry(info pkcs11.TokenInfo, again bool) error {
	switch {
	case info.Flags&pkcs11.CKF_USER_PIN_LOCKED != 0:
		return fmt.Errorf("%w: the PIN of token %q is locked", errPIN, info.Label)
	case info.Flags&(pkcs11.CKF_USER_PIN_FINAL_TRY|pkcs11.CKF_USER_PIN_COUNT_LOW) != 0 && !again:
		return fmt.Errorf("%w: a wrong PIN of token %q was tried since the last right one, so this one is not tried", errPIN, info.Label)
	}
	return nil
}

// do answers a request. If the token is gone, it ends the program.
func (t *token) do(r request) answer {
	var k *key
	a := answer{ID: r.ID}
	u, err := t.own(r.URI)
	switch {
	case err != nil:
	case r.Do == "key":
		k, err = t.find(u)
	case r.Do == "generate":
		k, err = t.generate(u, r.Algorithm)
	case r.Do == "sign":
		a.Signature, err = t.sign(u, r.URI, r.Digest)
	default:
		err = fmt.Errorf("%w: %q is unknown: want key, generate or sign", errRefused, r.Do)
	}
	if lost(err) {
		die(fmt.Errorf("the token is gone: %w", err))
	}
	if k != nil {
		a.Key = &k.keyInfo
	}
	if err != nil {
		a.Error = &problem{"failed", err.Error()}
		for kind, code := range codes {
			if errors.Is(err, kind) {
				a.Error.Code = code
			}
		}
	}
	return a
}

// lost says that the session, the token or an object of it is gone, so that all must be looked up again.
func lost(err error) bool {
	e := pkcs11.Error(0)
	return errors.As(err, &e) && slices.Contains([]pkcs11.Error{pkcs11.CKR_GENERAL_ERROR, pkcs11.CKR_FUNCTION_FAILED, pkcs11.CKR_DEVICE_ERROR,
		pkcs11.CKR_DEVICE_REMOVED, pkcs11.CKR_KEY_HANDLE_INVALID, pkcs11.CKR_OBJECT_HANDLE_INVALID, pkcs11.CKR_SESSION_CLOSED, pkcs11.CKR_SESSION_HANDLE_INVALID,
		pkcs11.CKR_TOKEN_NOT_PRESENT, pkcs11.CKR_TOKEN_NOT_RECOGNIZED, pkcs11.CKR_USER_NOT_LOGGED_IN, pkcs11.CKR_CRYPTOKI_NOT_INITIALIZED}, e)
}

// own reads a URI, which must name a key on this token.
func (t *token) own(text string) (uri, error) {
	u, err := parseURI(text)
	switch {
	case err != nil:
		return u, fmt.Errorf("%w: %s: %w", errRefused, text, err)
	case u.object == "" && u.id == "":
		return u, fmt.Errorf("%w: %s names no key: it lacks object=LABEL or id=HEX", errRefused, text)
	case !u.fits(t.info):
		return u, fmt.Errorf("%w: %s is on another token", errNotFound, text)
	}
	return u, nil
}

// pairs finds the key pairs that a URI names. None means that the token has none, and not that it is gone.
func (t *token) pairs(u uri) ([]crypto11.Signer, error) {
	found, err := t.ctx.FindKeyPairs([]byte(u.id), []byte(u.object))
	if e := pkcs11.Error(0); err != nil && !errors.As(err, &e) {
		return nil, fmt.Errorf("%w: %s: %w: want a P-256 or RSA key", errUnsupported, u, err)
	}
	if err == nil && len(found) == 0 {
		err = t.present()
	}
	return found, err
}

// present returns an error if the token is gone, or has no user logged in. Sessions of some libraries outlive the token.
func (t *token) present() error {
	if info, err := t.library.GetTokenInfo(t.slot); err != nil || info.SerialNumber != t.info.SerialNumber {
		return errors.Join(err, pkcs11.Error(pkcs11.CKR_TOKEN_NOT_PRESENT))
	}
	session, err := t.library.OpenSession(t.slot, pkcs11.CKF_SERIAL_SESSION)
	if err != nil {
		return err
	}
	defer t.library.CloseSession(session)
	info, err := t.library.GetSessionInfo(session)
	if err == nil && info.State != pkcs11.CKS_RO_USER_FUNCTIONS {
		err = pkcs11.Error(pkcs11.CKR_USER_NOT_LOGGED_IN)
	}
	return err
}

func (t *token) find(u uri) (*key, error) {
	found, err := t.pairs(u)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%w: %s names %d key pairs", errNotFound, u, len(found))
	}
	return t.read(found[0])
}

// read reads what jurat has to know of a key, and refuses keys that must not sign.
func (t *token) read(signer crypto11.Signer) (*key, error) {
	algorithm := ""
	switch public := signer.Public().(type) {
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P256() {
			algorithm = "ES256"
		}
	case *rsa.PublicKey:
		algorithm = "RS256"
	}
	if algorithm == "" {
		return nil, fmt.Errorf("%w: the key is neither a P-256 nor an RSA key", errUnsupported)
	}
	der, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsupported, err)
	}
	kept, err := t.protection(signer)
	if err != nil {
		return nil, err
	}
	label, labelErr := t.attribute(signer, crypto11.CkaLabel)
	id, idErr := t.attribute(signer, crypto11.CkaId)
	name := uri{token: t.info.Label, object: string(label), id: string(id)}
	return &key{keyInfo{name.String(), algorithm, der, kept}, signer}, errors.Join(labelErr, idErr)
}

func (t *token) protection(signer crypto11.Signer) (protection, error) {
	is := map[crypto11.AttributeType]bool{crypto11.CkaSensitive: false, crypto11.CkaExtractable: false, crypto11.CkaAlwaysSensitive: false,
		crypto11.CkaNeverExtractable: false, crypto11.CkaLocal: false, crypto11.CkaAlwaysAuthenticate: false}
	for kind := range is {
		value, err := t.attribute(signer, kind)
		if err != nil {
			return protection{}, err
		}
		is[kind] = len(value) == 1 && value[0] == 1
	}
	never := is[crypto11.CkaAlwaysSensitive] && is[crypto11.CkaNeverExtractable]
	why := ""
	switch {
	case is[crypto11.CkaExtractable] || !is[crypto11.CkaSensitive]:
		why = "it can be exported"
	case !t.imported && !(never && is[crypto11.CkaLocal]):
		why = "the token does not say that it made the key, and that the key could never be exported"
	case is[crypto11.CkaAlwaysAuthenticate]:
		why = "the token wants the PIN for each signature"
	}
	if why != "" {
		return protection{}, fmt.Errorf("%w: the key is not used: %s", errRefused, why)
	}
	return protection{"pkcs11", t.info.ManufacturerID, t.info.Model, t.info.SerialNumber, never, is[crypto11.CkaLocal]}, nil
}

// attribute reads one attribute of a private key. It returns nil if the key lacks it or does not show it.
func (t *token) attribute(signer crypto11.Signer, kind crypto11.AttributeType) ([]byte, error) {
	a, err := t.ctx.GetAttribute(signer, kind)
	if e := pkcs11.Error(0); errors.As(err, &e) && (e == pkcs11.CKR_ATTRIBUTE_TYPE_INVALID || e == pkcs11.CKR_ATTRIBUTE_SENSITIVE) || err == nil && a == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return a.Value, nil
}

// generate makes a key pair that stays on the token and does nothing but sign. A key that could be exported, as the token says, is destroyed again.
func (t *token) generate(u uri, algorithm string) (*key, error) {
	if algorithm != "ES256" && algorithm != "RS256" {
		return nil, fmt.Errorf("%w: keys on tokens are for ES256 or RS256; the library of this helper, crypto11, makes none for %s", errUnsupported, algorithm)
	}
	if u.object == "" || u.id != "" {
		return nil, fmt.Errorf("%w: name a new key by object=LABEL; its id is drawn", errRefused)
	}
	there, err := t.pairs(u)
	if err != nil {
		return nil, err
	}
	if len(there) > 0 {
		return nil, fmt.Errorf("%w: %s", errExists, u)
	}
	id := make([]byte, 20)
	rand.Read(id) // never fails
	public, err := crypto11.NewAttributeSetWithIDAndLabel(id, []byte(u.object))
	if err != nil {
		return nil, err
	}
	private := public.Copy()
	err = errors.Join(set(public, false, crypto11.CkaPrivate, crypto11.CkaVerifyRecover, crypto11.CkaEncrypt, crypto11.CkaWrap),
		set(private, true, crypto11.CkaPrivate), set(private, false, crypto11.CkaSignRecover, crypto11.CkaDecrypt, crypto11.CkaUnwrap, crypto11.CkaDerive))
	if err != nil {
		return nil, err
	}
	var signer crypto11.Signer
	if algorithm == "ES256" {
		signer, err = t.ctx.GenerateECDSAKeyPairWithAttributes(public, private, elliptic.P256())
	} else {
		signer, err = t.ctx.GenerateRSAKeyPairWithAttributes(public, private, 3072) // 128-bit strength, as P-256 has
	}
	if err != nil {
		return nil, err
	}
	k, err := t.read(signer)
	if err == nil && !(k.Protection.NeverExtractable && k.Protection.Local) { // an imported key may be otherwise, a new one not
		err = fmt.Errorf("%w: the token does not say that it made the key, and that the key can never be exported", errRefused)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the token's new key: %w", err), signer.Delete())
	}
	return k, nil
}

func set(a crypto11.AttributeSet, value bool, kinds ...crypto11.AttributeType) error {
	var err error
	for _, kind := range kinds {
		err = errors.Join(err, a.Set(kind, value))
	}
	return err
}

// sign signs a SHA-256 digest. Keys are remembered as long as the program runs: the token refuses the handle of one that was deleted.
func (t *token) sign(u uri, text string, digest []byte) ([]byte, error) {
	if len(digest) != sha256.Size {
		return nil, fmt.Errorf("%w: a SHA-256 digest is signed, and not %d bytes", errRefused, len(digest))
	}
	t.mu.Lock()
	k := t.keys[text]
	t.mu.Unlock()
	if k == nil {
		var err error
		if k, err = t.find(u); err != nil {
			return nil, err
		}
		t.mu.Lock()
		if len(t.keys) < 1000 { // a caller may write one key's name in many ways
			t.keys[text] = k
		}
		t.mu.Unlock()
	}
	return k.signer.Sign(nil, digest, crypto.SHA256)
}

// A uri names a token or a key on it, as RFC 7512 writes it: pkcs11:token=LABEL;object=LABEL;id=%01;type=private. An empty field fits everything.
type uri struct {
	token, manufacturer, model, serial string
	object, id                         string
}

const scheme = "pkcs11:"

// parseURI refuses attributes that name a PIN, and all that it does not know.
func parseURI(text string) (u uri, err error) {
	path, ok := strings.CutPrefix(text, scheme)
	if !ok || len(text) > 1024 {
		return u, fmt.Errorf("want pkcs11:token=...;object=..., at most 1024 bytes (RFC 7512)")
	}
	fields := map[string]*string{"token": &u.token, "manufacturer": &u.manufacturer, "model": &u.model, "serial": &u.serial, "object": &u.object, "id": &u.id, "type": new(string)}
	for part := range strings.SplitSeq(path, ";") {
		name, value, ok := strings.Cut(part, "=")
		field := fields[name]
		if !ok || field == nil || *field != "" {
			return u, fmt.Errorf("%q is unknown or repeated: known are token, manufacturer, model, serial, object, id and type=private", part)
		}
		plain, err := url.PathUnescape(value)
		if err != nil || plain == "" || strings.ContainsAny(value, "?&") {
			return u, fmt.Errorf("the value of %q is empty or not percent-encoded, or a query follows it: a PIN and a library are not part of a key's name", name)
		}
		*field = plain
	}
	if kind := *fields["type"]; kind != "" && kind != "private" {
		return u, fmt.Errorf("type=%s: want type=private", kind)
	}
	return u, nil
}

// String writes the attributes in a fixed order, and all bytes of an id percent-encoded.
func (u uri) String() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+"="+strings.ReplaceAll(url.QueryEscape(value), "+", "%20"))
		}
	}
	add("token", u.token)
	add("manufacturer", u.manufacturer)
	add("model", u.model)
	add("serial", u.serial)
	add("object", u.object)
	if u.id != "" {
		id := ""
		for _, c := range []byte(u.id) {
			id += fmt.Sprintf("%%%02X", c)
		}
		parts = append(parts, "id="+id)
	}
	return scheme + strings.Join(append(parts, "type=private"), ";")
}
