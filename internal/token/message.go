package token

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/operator"
)

const version = 1

// Verbs of requests.
const (
	verbKeys       = "keys"       // lists the keys
	verbGenerate   = "generate"   // makes a key
	verbPublic     = "public"     // says a key's algorithm and public half
	verbSign       = "sign"       // signs
	verbAttributes = "attributes" // says how a key is protected
)

// Errors that a helper tells apart. Each has a code on the wire.
var (
	ErrNotFound    = errors.New("there is no such key")
	ErrExists      = errors.New("there is such a key already")
	ErrRefused     = errors.New("the helper refuses")
	ErrPIN         = errors.New("the PIN is wrong, missing or locked")
	ErrUnavailable = errors.New("the token cannot be reached")
	ErrUnsupported = errors.New("unsupported")
	errRequest     = errors.New("the request breaks the protocol")
	errFailed      = errors.New("the helper failed")
)

// codes are the errors as they travel. The first that fits is sent.
var codes = []struct {
	code string
	err  error
}{{"not_found", ErrNotFound}, {"exists", ErrExists}, {"refused", ErrRefused}, {"pin", ErrPIN}, {"unavailable", ErrUnavailable},
	{"unsupported", ErrUnsupported}, {"bad_request", errRequest}, {"failed", errFailed}}

// A request asks the helper for one thing. The members of all messages stand here in canonical order: see encode.
type request struct {
	Algorithm evidence.Algorithm `json:"alg,omitzero"`  // of generate
	Data      []byte             `json:"data,omitzero"` // of sign
	ID        uint32             `json:"id"`
	URI       string             `json:"uri,omitzero"` // of all verbs but keys
	Version   int                `json:"v"`
	Verb      string             `json:"verb"`
}

// An answer has the id of its request, and the member that the verb asks for, or an error.
type answer struct {
	Problem    *wireProblem `json:"error,omitzero"`
	ID         uint32       `json:"id"`
	Key        *wireKey     `json:"key,omitzero"`
	Keys       []wireKey    `json:"keys,omitzero"`
	Protection *Protection  `json:"protection,omitzero"`
	Signature  []byte       `json:"signature,omitzero"`
	Version    int          `json:"v"`
}

type wireKey struct {
	Algorithm evidence.Algorithm `json:"alg"`
	Public    []byte             `json:"public"` // DER SubjectPublicKeyInfo
	URI       string             `json:"uri"`
}

type wireProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Protection is what a helper says of how a key is kept. It is the helper's word.
type Protection = operator.Protection

// A Key is one that a helper keeps.
type Key struct {
	URI        string
	Algorithm  evidence.Algorithm
	Public     crypto.PublicKey
	Protection Protection // of Client.Keys and Client.Generate: empty
}

const (
	maxText = 1024 // bytes of a URI, a message and any other text
	maxKeys = 1000
)

// CheckURI refuses what cannot be the name of a key: no URI, a long one, or one that has a PIN in it.
func CheckURI(uri string) error {
	scheme, rest, ok := strings.Cut(uri, ":")
	printable := !strings.ContainsFunc(uri, func(c rune) bool { return c <= ' ' || c > '~' })
	switch {
	case !ok || scheme == "" || rest == "" || !printable || len(uri) > maxText:
		return fmt.Errorf("%q is no URI of a key, such as pkcs11:token=LABEL;object=LABEL", clip(uri))
	case strings.Contains(strings.ToLower(uri), "pin-"):
		return errors.New("the URI has a PIN in it, or says where one is; only the helper knows the PIN")
	}
	return nil
}

func clip(text string) string {
	if len(text) > maxText {
		return text[:maxText] + "..."
	}
	return text
}

// encode writes a message in its one form. That form is canonical without a second pass, because the types declare their members in
// canonical order, and their only numbers are integers. FuzzMessage compares it with evidence.Canonical.
func encode(message any) ([]byte, error) { return json.Marshal(message) }

// decode reads a message, which must be in its one form.
func decode(frame []byte, message any) error {
	if err := json.Unmarshal(frame, message, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%w: %w", errRequest, err)
	}
	again, err := encode(message)
	if err != nil {
		return fmt.Errorf("%w: %w", errRequest, err)
	}
	if !bytes.Equal(again, frame) {
		return fmt.Errorf("%w: the message is not canonical JSON", errRequest)
	}
	return nil
}

func (r *request) check() error {
	switch {
	case r.Version != version:
		return fmt.Errorf("%w: version %d is not supported: want %d", errRequest, r.Version, version)
	case (r.Verb == verbKeys) != (r.URI == ""), (r.Verb == verbSign) != (r.Data != nil), (r.Verb == verbGenerate) != (r.Algorithm != ""):
		return fmt.Errorf("%w: %q has members that the verb does not have, or lacks one", errRequest, clip(r.Verb))
	case r.URI != "":
		if err := CheckURI(r.URI); err != nil {
			return fmt.Errorf("%w: %w", errRequest, err)
		}
	}
	return nil
}

func wired(k Key) (wireKey, error) {
	der, err := evidence.MarshalPublicKey(k.Public)
	return wireKey{k.Algorithm, der, k.URI}, err
}

// key reads a key that a helper told of.
func (w wireKey) key() (Key, error) {
	if err := CheckURI(w.URI); err != nil {
		return Key{}, err
	}
	public, err := evidence.ParsePublicKey(w.Public)
	if err != nil {
		return Key{}, err
	}
	if algorithm, err := evidence.AlgorithmOf(public); err != nil || algorithm != w.Algorithm {
		return Key{}, fmt.Errorf("the helper says that its key signs with %q, which it does not", clip(string(w.Algorithm)))
	}
	return Key{URI: w.URI, Algorithm: w.Algorithm, Public: public}, nil
}

func problemOf(err error) *wireProblem {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return &wireProblem{c.code, clip(strings.ToValidUTF8(err.Error(), "?"))}
		}
	}
	return &wireProblem{"failed", clip(strings.ToValidUTF8(err.Error(), "?"))}
}

// error is what a helper's problem means. A code that is not known is a failure.
func (p *wireProblem) error() error {
	for _, c := range codes {
		if c.code == p.Code {
			return &helperError{c.err, clip(p.Message)}
		}
	}
	return &helperError{errFailed, clip(p.Message)}
}

// A helperError is a problem in the helper's own words, quoted where control characters are in them.
type helperError struct {
	kind    error
	message string
}

func (e *helperError) Unwrap() error { return e.kind }

func (e *helperError) Error() string {
	if strings.ContainsFunc(e.message, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) {
		return fmt.Sprintf("helper: %q", e.message)
	}
	return "helper: " + e.message
}
