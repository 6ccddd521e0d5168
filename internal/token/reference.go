package token

import (
	"crypto"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/fault"
)

// A Reference stands where a private key would stand: it says which key signs.
type Reference struct {
	URI    string
	Public crypto.PublicKey

	Protection *Protection // the helper's word when the key was found; nil: none
}

// PEMType is of blocks that hold a reference: the public key, and in headers the URI and how the key is protected.
const PEMType = "TOKEN KEY"

const (
	headerURI        = "Uri"
	headerProtection = "Protection"
)

// PEM writes a reference as ParseReference reads it. It returns an error for a reference that ParseReference would refuse.
func (r Reference) PEM() (text []byte, err error) {
	defer fault.While(&err, "writing key reference")
	der, err := evidence.MarshalPublicKey(r.Public)
	if err != nil {
		return nil, err
	}
	block := &pem.Block{Type: PEMType, Headers: map[string]string{headerURI: r.URI}, Bytes: der}
	if r.Protection != nil {
		protection, err := json.Marshal(r.Protection)
		if err != nil {
			return nil, err
		}
		block.Headers[headerProtection] = string(protection)
	}
	if _, err := ParseReference(block); err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(block), nil
}

// ParseReference reads a block of type PEMType. It refuses a block of another type, a missing or further header, a URI that is not valid, and a key
// that no helper signs with.
func ParseReference(block *pem.Block) (Reference, error) {
	r := Reference{URI: block.Headers[headerURI]}
	var err error
	r.Public, err = evidence.ParsePublicKey(block.Bytes)
	headers := 1
	if text, ok := block.Headers[headerProtection]; ok && err == nil {
		headers, r.Protection = 2, new(Protection)
		err = json.Unmarshal([]byte(text), r.Protection, json.RejectUnknownMembers(true))
	}
	if block.Type != PEMType || len(block.Headers) != headers {
		err = errors.Join(err, fmt.Errorf("it is a block %q with %d headers", block.Type, len(block.Headers)))
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return Reference{}, fmt.Errorf("reading key reference: want a block %q with the headers %s and %s: %w", PEMType, headerURI, headerProtection, err)
	}
	return r, nil
}

func (r Reference) check() error {
	algorithm, err := evidence.AlgorithmOf(r.Public)
	if err == nil && algorithm != evidence.ES256 && algorithm != evidence.RS256 {
		err = fmt.Errorf("a key for %s cannot be on a token, only one for ES256 or RS256: %w", algorithm, ErrUnsupported)
	}
	if r.Protection != nil {
		err = errors.Join(err, r.Protection.Check())
	}
	return errors.Join(err, CheckURI(r.URI))
}

// Named names a key on the token that a URI names.
func Named(uri, name string) string {
	if strings.HasPrefix(uri, "pkcs11:") {
		return uri + ";object=" + name
	}
	return uri + "/" + name
}

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

// ParseKey reads a private key in PEM, or a reference to one on a token, as Signer takes it. rest is the text after it. Its errors are those of
// ParseReference, Signer and evidence.ParsePrivateKey.
func (h *Helper) ParseKey(text []byte) (key crypto.Signer, rest string, err error) {
	block, after := pem.Decode(text)
	switch {
	case block == nil:
		err = errors.New("want a private key in PEM")
	case block.Type == PEMType:
		var reference Reference
		if reference, err = ParseReference(block); err == nil {
			key, err = h.Signer(reference)
		}
	default:
		key, err = evidence.ParsePrivateKey(block.Bytes)
	}
	return key, string(after), err
}
