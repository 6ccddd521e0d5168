package scitt

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/cbor"
	"jurat/internal/sigkey"
)

// Header parameters (RFC 9052, RFC 9360, RFC 9597, RFC 9942).
const (
	labelAlg         = int64(1)
	labelCrit        = int64(2)
	labelContentType = int64(3)
	labelKeyID       = int64(4)
	labelClaims      = int64(15)
	labelChain       = int64(33)
	labelThumbprint  = int64(34)
	labelReceipts    = int64(394)
	labelStructure   = int64(395)
	labelProofs      = int64(396)
)

// understood are the parameters that may be critical, because this package does what they ask.
var understood = []any{labelAlg, labelContentType, labelKeyID, labelClaims, labelStructure}

// Numbers of the algorithms (RFC 9053). -8 also stands for Ed448, whose keys are refused elsewhere.
const (
	numberES256 = int64(-7)
	numberEdDSA = int64(-8)
)

const (
	tagSign1 = 18
	context1 = "Signature1"
)

// ErrUnsupported says that a signature or a receipt cannot be checked here. It says nothing about whether it is valid.
var ErrUnsupported = errors.New("it cannot be checked")

// A sign1 is an opened COSE_Sign1. Nothing in it is verified. Of the unprotected header, which anybody can change, only receipts, the record, proofs and
// the entry are looked at, and none of them contradicts what is signed.
type sign1 struct {
	protected, unprotected cbor.Map

	header    []byte // the protected header, as it was signed
	payload   []byte
	detached  bool // the payload is not there
	signature []byte
}

// parseSign1 reads a tagged COSE_Sign1.
func parseSign1(doc []byte) (*sign1, error) {
	value, err := cbor.Decode(doc)
	if err != nil {
		return nil, err
	}
	tag, ok := value.(cbor.Tag)
	if !ok || tag.Number != tagSign1 {
		return nil, errors.New("want a COSE_Sign1 with the tag 18")
	}
	parts, ok := tag.Content.([]any)
	if !ok || len(parts) != 4 {
		return nil, errors.New("COSE_Sign1: want an array of four: protected header, unprotected header, payload, signature")
	}
	m := new(sign1)
	if m.header, ok = parts[0].([]byte); !ok {
		return nil, errors.New("COSE_Sign1: the protected header is not a byte string")
	}
	if len(m.header) > 0 {
		if m.protected, err = cbor.DecodeMap(m.header); err != nil {
			return nil, fmt.Errorf("COSE_Sign1: protected header: %w", err)
		}
	}
	if m.unprotected, ok = parts[1].(cbor.Map); !ok {
		return nil, errors.New("COSE_Sign1: the unprotected header is not a map")
	}
	if m.payload, ok = parts[2].([]byte); !ok {
		if parts[2] != nil {
			return nil, errors.New("COSE_Sign1: the payload is neither a byte string nor null")
		}
		m.detached = true
	}
	if m.signature, ok = parts[3].([]byte); !ok {
		return nil, errors.New("COSE_Sign1: the signature is not a byte string")
	}
	return m, nil
}

// critical returns an error unless everything that must be understood is.
func (m *sign1) critical() error {
	value, there := m.protected.Get(labelCrit)
	if !there {
		return nil
	}
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return errors.New("crit (2) is not an array of header parameters")
	}
	for _, label := range list {
		switch label.(type) {
		case int64, string:
		default:
			return errors.New("crit (2) is not an array of header parameters")
		}
		if _, there := m.protected.Get(label); !there {
			return fmt.Errorf("crit (2) names the header parameter %v, which is missing", label)
		}
		if !slices.Contains(understood, label) {
			return fmt.Errorf("%w: the header parameter %v is critical, and not known here", ErrUnsupported, label)
		}
	}
	return nil
}

// algorithm returns the algorithm that the protected header names.
func (m *sign1) algorithm() (evidence.Algorithm, error) {
	value, there := m.protected.Get(labelAlg)
	if !there {
		return "", errors.New("the protected header names no algorithm")
	}
	number, ok := value.(int64)
	if !ok {
		return "", fmt.Errorf("%w: the algorithm is not a number", ErrUnsupported)
	}
	switch number {
	case numberES256:
		return evidence.ES256, nil
	case numberEdDSA:
		return evidence.Ed25519, nil
	}
	return "", fmt.Errorf("%w: the algorithm %d: ES256 (-7) and Ed25519 (-8) are checked here", ErrUnsupported, number)
}

// check verifies the signature over a payload. Its error has evidence.ErrSignature in its chain if the key did not make
// it, and ErrUnsupported if that cannot be known.
func (m *sign1) check(public crypto.PublicKey, payload []byte) error {
	if err := m.critical(); err != nil {
		return err
	}
	algorithm, err := m.algorithm()
	if err != nil {
		return err
	}
	if is, err := evidence.AlgorithmOf(public); err != nil || is != algorithm {
		return fmt.Errorf("%w: the signature is by %s, and the key is another kind of key", evidence.ErrSignature, algorithm)
	}
	id, err := evidence.KeyIDOf(public)
	if err != nil {
		return err
	}
	signature := m.signature
	if algorithm == evidence.ES256 {
		if signature, err = sigkey.ECDSAFromRaw(m.signature); err != nil {
			return fmt.Errorf("%w: %w", evidence.ErrSignature, err)
		}
	}
	signed, err := toBeSigned(m.header, payload)
	if err != nil {
		return err
	}
	return evidence.CheckSignature(public, evidence.SignerInfo{Algorithm: algorithm, KeyID: id}, signed, signature)
}

// keyID returns the hint about the key; nil if there is none. One that is not protected is not looked at: anybody can put it there.
func (m *sign1) keyID() []byte {
	value, _ := m.protected.Get(labelKeyID)
	id, _ := value.([]byte)
	return id
}

// toBeSigned returns the Sig_structure of RFC 9052, section 4.4, without external data.
func toBeSigned(header, payload []byte) ([]byte, error) {
	return cbor.Encode([]any{context1, header, []byte{}, payload})
}

// A signing makes a COSE_Sign1.
type signing struct {
	protected, unprotected cbor.Map
	payload                []byte
	detached               bool
}

// by returns the COSE_Sign1. sign gets the bytes to be signed, and returns the signature as COSE has it.
func (s signing) by(sign func([]byte) ([]byte, error)) ([]byte, error) {
	header, err := cbor.Encode(s.protected)
	if err != nil {
		return nil, err
	}
	signed, err := toBeSigned(header, s.payload)
	if err != nil {
		return nil, err
	}
	signature, err := sign(signed)
	if err != nil {
		return nil, err
	}
	var payload any = s.payload
	if s.detached {
		payload = nil
	}
	return cbor.Encode(cbor.Tag{Number: tagSign1, Content: []any{header, s.unprotected, payload, signature}})
}

// Is recognises a tagged COSE_Sign1 by its first bytes, which begin no text and no archive. The rest may be damaged.
func Is(file []byte) bool { return bytes.HasPrefix(file, []byte{0xd2, 0x84}) }
