// Package client is for those who use an installation from elsewhere.
//
// Whoever holds their keys themselves, the owner of an agent or a reviewer, completes a payload with it,
// signs it where the key is, and checks what an installation of jurat made of it. The private key goes nowhere.
//
//	signer, err := client.ParseKey(pem)         // PKCS #8, as openssl writes it
//	signed, err := client.Sign(payload, signer) // for the operator of the installation
//	…
//	report, err := client.Check(signed, sealed, trust)
//
// Whoever signs with something else than Go calls Prepare for the bytes that are signed, and Assemble with the signatures.
//
// The installation must have been told of the key before (`jurat keys register`).
//
// A Client asks a server (`jurat serve`) over HTTP: also for those whose keys the installation keeps, and for those who only
// read. See docs/api.md.
package client

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/verify"
	"jurat/verify/trust"
)

// ErrOther says that what came back is not what was signed.
var ErrOther = errors.New("this is not what was signed")

// Sign completes a payload, as docs/format.md has it under "As actors send it", and signs it: with a record id of its own,
// and with the present time where the action type allows the timestamp to be left out. The record has no time stamp yet.
func Sign(payload []byte, signers ...evidence.Signer) (*evidence.Record, error) {
	r, err := sign(payload, signers)
	if err != nil {
		return nil, fmt.Errorf("signing payload: %w", err)
	}
	return r, nil
}

func sign(payload []byte, signers []evidence.Signer) (*evidence.Record, error) {
	draft, sealing, err := begin(payload)
	if err != nil {
		return nil, err
	}
	sealing.Signers = signers
	return draft.Seal(sealing)
}

// Prepare completes a payload as Sign does, and returns the canonical bytes that the holders of these keys have to sign, in
// this order. The bytes must be kept as they are: a second call makes others.
func Prepare(payload []byte, keys ...crypto.PublicKey) ([]byte, error) {
	canonical, err := prepare(payload, keys)
	if err != nil {
		return nil, fmt.Errorf("preparing payload: %w", err)
	}
	return canonical, nil
}

func prepare(payload []byte, keys []crypto.PublicKey) ([]byte, error) {
	draft, sealing, err := begin(payload)
	if err != nil {
		return nil, err
	}
	infos := make([]evidence.SignerInfo, len(keys))
	for i, key := range keys {
		if infos[i].Algorithm, err = evidence.AlgorithmOf(key); err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if infos[i].KeyID, err = evidence.KeyIDOf(key); err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
	}
	return draft.Prepare(infos, sealing)
}

func begin(payload []byte) (*evidence.Draft, evidence.Sealing, error) {
	draft, err := evidence.ParseDraft(payload)
	if err != nil {
		return nil, evidence.Sealing{}, err
	}
	if role := draft.Role(); role != evidence.RoleAgent && role != evidence.RoleReviewer {
		return nil, evidence.Sealing{}, &evidence.FieldError{Field: "action_type",
			Reason: fmt.Sprintf("%s is an act of the %s, whose key is held by the installation", draft.ActionType, role)}
	}
	now := time.Now()
	id, err := evidence.NewRecordID(now, rand.Reader)
	return draft, evidence.Sealing{Time: now, RecordID: id}, err
}

// Assemble makes a record of the bytes that Prepare returned and the signatures over them, in the order of the keys.
func Assemble(canonical []byte, signatures ...[]byte) (*evidence.Record, error) {
	p, err := evidence.ParsePayload(canonical)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	if len(signatures) != len(p.Signers) {
		return nil, fmt.Errorf("the payload names %d signers, but there are %d signatures", len(p.Signers), len(signatures))
	}
	normal := make([][]byte, len(signatures))
	for i, signature := range signatures {
		if normal[i], err = evidence.NormalSignature(p.Signers[i].Algorithm, signature); err != nil {
			return nil, fmt.Errorf("signature %d: %w", i+1, err)
		}
	}
	return evidence.OpenParts(canonical, normal, nil)
}

// Check compares what came back with what was signed: the same payload with the same signatures. If it is, it verifies the
// rest by a trust file, which must not come from the record's own file: time stamps and the place in the log. What the
// outcome is, the report says.
func Check(signed, sealed *evidence.Record, trusted *trust.Trust) (*verify.Report, error) {
	if !bytes.Equal(signed.Canonical(), sealed.Canonical()) {
		return nil, fmt.Errorf("%w: the payload is another, with the digest %s instead of %s", ErrOther, sealed.Digest, signed.Digest)
	}
	own, err := Assemble(signed.Canonical(), signed.Signatures...)
	if err != nil {
		return nil, err
	}
	for i, signature := range own.Signatures {
		if i >= len(sealed.Signatures) || !bytes.Equal(signature, sealed.Signatures[i]) {
			return nil, fmt.Errorf("%w: signature %d is another", ErrOther, i+1)
		}
	}
	return verify.Record(sealed, verify.Options{Trust: trusted}), nil
}

// ParseKey reads a private key in PEM, PKCS #8, as `openssl genpkey` writes it: RSA, P-256, Ed25519 or the seed of ML-DSA-65.
func ParseKey(text []byte) (evidence.Signer, error) {
	der, err := decode(text, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	private, err := evidence.ParsePrivateKey(der)
	if err != nil {
		return nil, err
	}
	return evidence.NewSigner(private, rand.Reader)
}

// ParsePublicKey reads a public key in PEM, as `openssl pkey -pubout` writes it.
func ParsePublicKey(text []byte) (crypto.PublicKey, error) {
	der, err := decode(text, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	return evidence.ParsePublicKey(der)
}

// decode reads one PEM block, around which may stand comments but no other block.
func decode(text []byte, kind string) ([]byte, error) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, fmt.Errorf("want one PEM block of type %q, found none", kind)
	case block.Type != kind:
		return nil, fmt.Errorf("want one PEM block of type %q, found %q%s", kind, block.Type, advice(block.Type))
	}
	if second, _ := pem.Decode(rest); second != nil {
		return nil, fmt.Errorf("want one PEM block of type %q, found another after it", kind)
	}
	return block.Bytes, nil
}

// advice says how a key in an older form becomes one that is read here.
func advice(kind string) string {
	switch kind {
	case "ENCRYPTED PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "EC PARAMETERS":
		return ": 'openssl pkcs8 -topk8 -nocrypt -in FILE' writes it as it is read here"
	case "PRIVATE KEY":
		return ": 'openssl pkey -pubout -in FILE' writes the public half"
	}
	return ""
}
