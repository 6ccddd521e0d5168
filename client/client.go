// Package client is for programs that use an installation of jurat from elsewhere.
//
// The owner of an agent, or a reviewer, may hold the private key themselves. With this package they complete a
// payload, sign it where the key is, and check what the installation made of it. The private key stays where it is.
//
//	signer, err := client.ParseKey(pem)         // PKCS #8, as openssl writes it
//	signed, err := client.Sign(payload, signer) // for the operator of the installation
//	…
//	report, err := client.Check(signed, sealed, trust)
//
// A program that signs without Go calls Prepare for the bytes to sign, and Assemble with the signatures.
//
// The installation must know the public key first (`jurat keys new`).
//
// A Client sends requests to a server (`jurat serve`) over HTTP. It also serves callers whose keys the installation
// keeps, and callers that only read. See docs/api.md.
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
	"jurat/evidence/property"
	"jurat/verify"
	"jurat/verify/trust"
)

// ErrOther says that the returned record is not the one that was signed.
var ErrOther = errors.New("this is not what was signed")

// Sign completes a payload (docs/format.md, "As actors send it") and signs it. It adds a new record id, and the
// present time if the action type allows a missing timestamp. The record has no time stamp yet. Its errors are those
// of Prepare and of the signers.
func Sign(payload []byte, signers ...evidence.Signer) (*evidence.Record, error) {
	return SignApart(payload, Apart{}, signers...)
}

// Apart lists members of a payload by JSON pointers: what the owner of a key seals apart before signing.
type Apart struct {
	Pointers []string                 // sealed apart
	Provable map[string]property.Kind // sealed apart, and committed to a second time, so that Prove can show properties of the values
}

// SignApart does what Sign does, and seals members apart. Their values are in Record.Disclosures of the record and in no other place, so the
// caller must keep them. Deposit does not send them. A value that is not of its kind gives an *evidence.FieldError.
func SignApart(payload []byte, apart Apart, signers ...evidence.Signer) (r *evidence.Record, err error) {
	draft, sealing, err := begin(payload)
	if err == nil {
		sealing.Signers = signers
		r, err = draft.SealingApart(apart.Provable, apart.Pointers...).Seal(sealing)
	}
	if err != nil {
		return nil, fmt.Errorf("signing payload: %w", err)
	}
	return r, nil
}

// Prepare completes a payload as Sign does, and returns the canonical bytes that the holders of these keys must sign,
// in this order. The caller must keep the bytes: a second call gives other bytes. Its errors include
// *evidence.SyntaxError and *evidence.FieldError.
func Prepare(payload []byte, keys ...crypto.PublicKey) (canonical []byte, err error) {
	draft, sealing, err := begin(payload)
	infos := make([]evidence.SignerInfo, len(keys))
	for i := 0; err == nil && i < len(keys); i++ {
		if infos[i].Algorithm, err = evidence.AlgorithmOf(keys[i]); err == nil {
			infos[i].KeyID, err = evidence.KeyIDOf(keys[i])
		}
		if err != nil {
			err = fmt.Errorf("key %d: %w", i+1, err)
		}
	}
	if err == nil {
		canonical, err = draft.Prepare(infos, sealing)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing payload: %w", err)
	}
	return canonical, nil
}

func begin(payload []byte) (*evidence.Draft, evidence.Sealing, error) {
	draft, err := evidence.ParseDraft(payload)
	if err != nil {
		return nil, evidence.Sealing{}, err
	}
	if role := draft.Role(); role != evidence.RoleAgent && role != evidence.RoleReviewer {
		return nil, evidence.Sealing{}, &evidence.FieldError{Field: "action_type",
			Reason: fmt.Sprintf("%s is an act of the %s, and the installation holds its key", draft.ActionType, role)}
	}
	now := time.Now()
	id, err := evidence.NewRecordID(now, rand.Reader)
	return draft, evidence.Sealing{Time: now, RecordID: id}, err
}

// Assemble makes a record of the bytes from Prepare and the signatures over them, in the order of the keys. It
// returns an error if a signature is missing or malformed; it does not verify signatures.
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

// Check compares the returned record with the signed one: both must have the same payload and signatures. Otherwise
// it returns an error with ErrOther in its chain. Then it verifies the record, its time stamps and its place in the
// log with a trust file. The trust file must not come from the record's sender. The report has the outcome.
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

// ParseKey reads a private key in PEM, PKCS #8, as `openssl genpkey` writes it: RSA, P-256, Ed25519 or the seed of
// ML-DSA-65. It refuses text that is not one PEM block of type PRIVATE KEY, and other kinds of keys.
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

// ParsePublicKey reads a public key in PEM, as `openssl pkey -pubout` writes it. It refuses text that is not one PEM
// block of type PUBLIC KEY, and keys that cannot sign payloads.
func ParsePublicKey(text []byte) (crypto.PublicKey, error) {
	der, err := decode(text, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	return evidence.ParsePublicKey(der)
}

// decode reads one PEM block. Comments may be around it, but no other block.
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

// advice says how to convert a key in another form.
func advice(kind string) string {
	switch kind {
	case "ENCRYPTED PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "EC PARAMETERS":
		return ": convert it with 'openssl pkcs8 -topk8 -nocrypt -in FILE'"
	case "PRIVATE KEY":
		return ": 'openssl pkey -pubout -in FILE' writes the public half"
	}
	return ""
}

// Prove proves a statement about a member of a record that discloses its value, and adds the proof to the record. Nothing leaves the
// machine, and the disclosure stays where it is: withhold it ('evidence.Withhold') before you give the record away. The statement
// needs its form and what belongs to that; format, kind and members are filled in. evidence.ParseProperty reads what people write.
//
// The errors include evidence.ErrUnprovable, evidence.ErrWithheld, property.ErrFalse and evidence.ErrDisclosure.
func Prove(s property.Statement, m evidence.Member) error {
	proof, err := m.Prove(s, rand.Reader)
	if err == nil {
		err = m.Record.AddProof(proof)
	}
	if err != nil {
		return fmt.Errorf("proving a property: %w", err)
	}
	return nil
}

// Disclose adds to a record that came back from a server the values that its owner kept. It returns an error, and changes nothing, if they are
// not those of this record.
func Disclose(sealed, kept *evidence.Record) error {
	with := *sealed
	with.Disclosures = kept.Disclosures
	if err := with.CheckDisclosures(); err != nil {
		return err
	}
	sealed.Disclosures = kept.Disclosures
	return nil
}
