package card

import (
	"crypto"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/internal/jws"
)

// maxSignatures bounds how many signatures of a card are read.
const maxSignatures = 16

// A Signature is a JWS signature of a card. Its header is what the signer says of itself.
type Signature struct {
	Algorithm string // `alg`, as it stands there
	KeyID     string // `kid`
	JKU       string // `jku`: where the signer says that its key is found; never fetched
	Type      string // `typ`

	protected string // base64url, as it was signed
	value     []byte
}

// ErrNotThisKey says that a signature is not the given key's over any form of the card.
var ErrNotThisKey = errors.New("the signature is not this key's over any form of the card")

// readSignature reads one element of a card's signatures. Its errors begin with a JSON pointer below that element.
func readSignature(value any) (*Signature, error) {
	object, _ := value.(map[string]any)
	protected, ok1 := object["protected"].(string)
	signature, ok2 := object["signature"].(string)
	if !ok1 || !ok2 {
		return nil, errors.New(": want an object with the texts \"protected\" and \"signature\"")
	}
	h, err := jws.ParseHeader(protected)
	if err != nil {
		return nil, fmt.Errorf("/protected%w", err)
	}
	raw, err := jws.Base64.DecodeString(signature)
	if err != nil {
		return nil, errors.New("/signature: not base64url without padding")
	}
	return &Signature{Algorithm: h.Algorithm, KeyID: h.KeyID, JKU: h.JKU, Type: h.Type, protected: protected, value: raw}, nil
}

// Check says over which form of the card a key made a signature. It returns ErrNotThisKey if over none, and another error if the
// algorithm is unknown here or not the key's.
func (c *Card) Check(s *Signature, key crypto.PublicKey) (Form, error) {
	if algorithm, known := jws.Algorithm(s.Algorithm); !known {
		return "", fmt.Errorf("%w: %q", jws.ErrAlgorithm, s.Algorithm)
	} else if keys, err := evidence.AlgorithmOf(key); err != nil || keys != algorithm {
		return "", fmt.Errorf("%w: the signature is by %s", jws.ErrAlgorithm, s.Algorithm)
	}
	for _, form := range Forms() {
		payload, err := c.Canonical(form)
		if err != nil {
			continue // the card does not fit the schema of this form, so it was not signed in this form
		}
		if jws.Check(s.Algorithm, key, jws.Input(s.protected, payload), s.value) == nil {
			return form, nil
		}
	}
	return "", ErrNotThisKey
}

func sign(key evidence.Signer, kid string, payload []byte) (map[string]any, error) {
	name, err := jws.NameOf(key.Info().Algorithm)
	if err != nil {
		return nil, err
	}
	if kid == "" {
		kid = key.Info().KeyID.String()
	}
	protected, signature, err := (&jws.Header{Algorithm: name, KeyID: kid, Type: "JOSE"}).Sign(key, payload)
	if err != nil {
		return nil, err
	}
	return map[string]any{"protected": protected, "signature": signature}, nil
}
