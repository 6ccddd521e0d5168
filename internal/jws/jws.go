// Package jws makes and checks JWS signatures (RFC 7515) by the algorithms that jurat's keys have. It knows neither what is signed nor whose
// key it is: the caller brings both.
package jws

import (
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/ecdsasig"
)

// Base64 is base64url without padding, in its only spelling.
var Base64 = base64.RawURLEncoding.Strict()

// algorithms has what JWS (RFC 7518, RFC 8037, RFC 9864) calls the algorithms that are checked here. Any other, a MAC or `none`
// above all, checks nothing.
var algorithms = map[string]evidence.Algorithm{
	"ES256": evidence.ES256, "RS256": evidence.RS256, "EdDSA": evidence.Ed25519, "Ed25519": evidence.Ed25519,
}

// ErrAlgorithm says that an algorithm is unknown here, or is not the key's.
var ErrAlgorithm = errors.New("the algorithm is unknown here, or is not the key's")

// Algorithm returns what the format calls an algorithm of JWS, and false for one that checks nothing here.
func Algorithm(name string) (evidence.Algorithm, bool) {
	algorithm, known := algorithms[name]
	return algorithm, known
}

// A Header is what the signer says of a signature, and what that signature covers, too.
type Header struct {
	Algorithm    string   `json:"alg"`
	KeyID        string   `json:"kid,omitempty"`
	JKU          string   `json:"jku,omitempty"`
	Type         string   `json:"typ,omitempty"`
	Certificates [][]byte `json:"x5c,omitempty"`      // DER: the key's, then those above it
	Thumbprint   string   `json:"x5t#S256,omitempty"` // base64url of the first certificate's SHA-256
	Critical     []string `json:"crit,omitempty"`     // members that the reader must know
}

// ParseHeader reads a protected header. It refuses one that names members as critical which are not among known. Its errors say what is wrong
// with the header, beginning with a colon.
func ParseHeader(protected string, known ...string) (*Header, error) {
	doc, err := Base64.DecodeString(protected)
	if err != nil {
		return nil, errors.New(": not base64url without padding")
	}
	h := new(Header)
	if err := json.Unmarshal(doc, h); err != nil {
		return nil, errors.New(": not the JSON object of a JWS header")
	}
	for _, name := range h.Critical {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf(": crit names %q, which is unknown here", h.Critical)
		}
	}
	return h, nil
}

// Input is what a signature is over (RFC 7515, section 5.1).
func Input(protected string, payload []byte) []byte {
	return Base64.AppendEncode([]byte(protected+"."), payload)
}

// Check returns an error unless a key made a signature over an input: ErrAlgorithm if it cannot have, as its algorithm is another.
func Check(algorithm string, key crypto.PublicKey, input, value []byte) error {
	wanted, known := algorithms[algorithm]
	if !known {
		return fmt.Errorf("%w: %q", ErrAlgorithm, algorithm)
	}
	id, err := evidence.KeyIDOf(key)
	if err != nil {
		return err
	}
	if keys, err := evidence.AlgorithmOf(key); err != nil || keys != wanted {
		return fmt.Errorf("%w: the signature is by %s", ErrAlgorithm, algorithm)
	}
	if value, err = fromJWS(wanted, value); err != nil {
		return err
	}
	return evidence.CheckSignature(key, evidence.SignerInfo{Algorithm: wanted, KeyID: id}, input, value)
}

// NameOf returns what JWS calls an algorithm. It returns an error for ML-DSA-65.
func NameOf(algorithm evidence.Algorithm) (string, error) {
	name := map[evidence.Algorithm]string{evidence.ES256: "ES256", evidence.RS256: "RS256", evidence.Ed25519: "EdDSA"}[algorithm]
	if name == "" {
		return "", fmt.Errorf("JWS has no name for %s here: take a key of ES256, RS256 or Ed25519", algorithm)
	}
	return name, nil
}

// Protected writes a header in the form in which it is signed. It refuses text that is not valid UTF-8.
func (h *Header) Protected() (string, error) {
	doc, err := json.Marshal(h)
	if err != nil {
		return "", err
	}
	if doc, err = evidence.Canonical(doc); err != nil {
		return "", err
	}
	return Base64.EncodeToString(doc), nil
}

// Sign signs a payload under a header, whose algorithm must be the key's. It returns the header and the signature as
// they are written. Its errors are those of Protected, of the key and of FromDER.
func (h *Header) Sign(key evidence.Signer, payload []byte) (protected, signature string, err error) {
	if protected, err = h.Protected(); err != nil {
		return "", "", err
	}
	made, err := key.Sign(Input(protected, payload))
	if err != nil {
		return "", "", err
	}
	value, err := FromDER(key.Info().Algorithm, made)
	if err != nil {
		return "", "", err
	}
	return protected, Base64.EncodeToString(value), nil
}

// fromJWS returns the form that records have of a signature: JWS puts the numbers of ECDSA side by side.
func fromJWS(algorithm evidence.Algorithm, value []byte) ([]byte, error) {
	if algorithm != evidence.ES256 {
		return value, nil
	}
	return ecdsasig.FromRaw(value)
}

// FromDER returns a signature as JWS has it, from the form that keys, OpenSSL and records have. It refuses an ES256
// signature that is not ECDSA in DER.
func FromDER(algorithm evidence.Algorithm, value []byte) ([]byte, error) {
	if algorithm != evidence.ES256 {
		return value, nil
	}
	value, err := evidence.NormalSignature(algorithm, value)
	if err != nil {
		return nil, err
	}
	return ecdsasig.Raw(value)
}
