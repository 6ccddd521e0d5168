package card

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"

	"github.com/go-json-experiment/json"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/evidence"
)

// maxSignatures bounds how many signatures of a card are read.
const maxSignatures = 16

// algorithms has what JWS (RFC 7518, RFC 8037, RFC 9864) calls the algorithms that are checked here. Any other, a MAC or `none`
// above all, checks nothing.
var algorithms = map[string]evidence.Algorithm{
	"ES256": evidence.ES256, "RS256": evidence.RS256, "EdDSA": evidence.Ed25519, "Ed25519": evidence.Ed25519,
}

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

type header struct {
	Algorithm string   `json:"alg"`
	KeyID     string   `json:"kid"`
	JKU       string   `json:"jku"`
	Type      string   `json:"typ"`
	Critical  []string `json:"crit"`
}

// readSignature reads one element of a card's signatures. Its errors begin with a JSON pointer below that element.
func readSignature(value any) (*Signature, error) {
	object, _ := value.(map[string]any)
	protected, ok1 := object["protected"].(string)
	signature, ok2 := object["signature"].(string)
	if !ok1 || !ok2 {
		return nil, errors.New(": want an object with the texts \"protected\" and \"signature\"")
	}
	doc, err := base64url.DecodeString(protected)
	if err != nil {
		return nil, errors.New("/protected: not base64url without padding")
	}
	var h header
	if err := json.Unmarshal(doc, &h); err != nil {
		return nil, errors.New("/protected: not the JSON object of a JWS header")
	}
	if len(h.Critical) > 0 {
		return nil, fmt.Errorf("/protected: crit names %q, which is unknown here", h.Critical)
	}
	raw, err := base64url.DecodeString(signature)
	if err != nil {
		return nil, errors.New("/signature: not base64url without padding")
	}
	return &Signature{Algorithm: h.Algorithm, KeyID: h.KeyID, JKU: h.JKU, Type: h.Type, protected: protected, value: raw}, nil
}

var base64url = base64.RawURLEncoding.Strict()

// Check says over which form of the card a key made a signature. It returns ErrNotThisKey if over none, and another error if the
// algorithm is unknown here or not the key's.
func (c *Card) Check(s *Signature, key crypto.PublicKey) (Form, error) {
	algorithm, known := algorithms[s.Algorithm]
	if !known {
		return "", fmt.Errorf("unknown algorithm %q", s.Algorithm)
	}
	id, err := evidence.KeyIDOf(key)
	if err != nil {
		return "", err
	}
	if keys, err := evidence.AlgorithmOf(key); err != nil || keys != algorithm {
		return "", fmt.Errorf("the signature is by %s, and the key is not", s.Algorithm)
	}
	value, err := fromJWS(algorithm, s.value)
	if err != nil {
		return "", err
	}
	for _, form := range Forms() {
		payload, err := c.Canonical(form)
		if err != nil {
			continue // the card does not fit the schema of this form, so that nobody signed it in this form
		}
		if evidence.CheckSignature(key, evidence.SignerInfo{Algorithm: algorithm, KeyID: id}, signed(s.protected, payload), value) == nil {
			return form, nil
		}
	}
	return "", ErrNotThisKey
}

// signed is what a JWS signature is over (RFC 7515, section 5.1).
func signed(protected string, payload []byte) []byte {
	return base64url.AppendEncode([]byte(protected+"."), payload)
}

func sign(key evidence.Signer, kid string, payload []byte) (map[string]any, error) {
	name := map[evidence.Algorithm]string{evidence.ES256: "ES256", evidence.RS256: "RS256", evidence.Ed25519: "EdDSA"}[key.Info().Algorithm]
	if name == "" {
		return nil, fmt.Errorf("JWS has no name for %s here: take a key of ES256, RS256 or Ed25519", key.Info().Algorithm)
	}
	if kid == "" {
		kid = key.Info().KeyID.String()
	}
	doc, err := json.Marshal(map[string]string{"alg": name, "kid": kid, "typ": "JOSE"}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	protected := base64url.EncodeToString(doc)
	made, err := key.Sign(signed(protected, payload))
	if err != nil {
		return nil, err
	}
	value, err := toJWS(key.Info().Algorithm, made)
	if err != nil {
		return nil, err
	}
	return map[string]any{"protected": protected, "signature": base64url.EncodeToString(value)}, nil
}

// half is the size of each of the two numbers of a P-256 signature. JWS puts them side by side (RFC 7518, section 3.4), records
// have them in DER.
const half = 32

func fromJWS(algorithm evidence.Algorithm, value []byte) ([]byte, error) {
	if algorithm != evidence.ES256 {
		return value, nil
	}
	if len(value) != 2*half {
		return nil, fmt.Errorf("an ES256 signature of %d bytes: want %d", len(value), 2*half)
	}
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1BigInt(new(big.Int).SetBytes(value[:half]))
		b.AddASN1BigInt(new(big.Int).SetBytes(value[half:]))
	})
	der, err := b.Bytes()
	if err != nil {
		return nil, err
	}
	return evidence.NormalSignature(algorithm, der)
}

func toJWS(algorithm evidence.Algorithm, value []byte) ([]byte, error) {
	if algorithm != evidence.ES256 {
		return value, nil
	}
	input, inner := cryptobyte.String(value), cryptobyte.String(nil)
	r, s := new(big.Int), new(big.Int)
	if !input.ReadASN1(&inner, asn1.SEQUENCE) || !inner.ReadASN1Integer(r) || !inner.ReadASN1Integer(s) {
		return nil, errors.New("the key made no ECDSA signature")
	}
	return bytes.Join([][]byte{r.FillBytes(make([]byte, half)), s.FillBytes(make([]byte, half))}, nil), nil
}
