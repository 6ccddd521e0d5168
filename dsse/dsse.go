// Package dsse gives sealed records to tools that use DSSE v1 and in-toto. An envelope, signed by the exporter,
// surrounds a Statement v1. Its subjects are the records' payloads, and its predicate holds the records themselves.
//
// The envelope proves only who exported the records. Who said what is proved by the signatures inside the records.
// These are over the payloads and are not DSSE signatures. Package verify checks both.
//
// # An envelope is signed by the sender
//
// The audit model signs payloads, not DSSE's encoding of them, so an agent's signature cannot be a DSSE signature.
// The envelope is the operator's and says so inside itself. Its predicate holds the whole sealed records, so nothing
// is lost and everything can be checked. Its `predicateType` is a `urn:` of our own, because the project has no
// domain that could hold a page.
package dsse

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// PayloadType is the payloadType of DSSE envelopes that hold an in-toto statement.
const PayloadType = "application/vnd.in-toto+json"

const maxSignatures = 16

// An Envelope is an opened envelope. Its signatures are unverified until CheckSignature has checked them with a key
// that the caller trusts.
type Envelope struct {
	Signatures []Signature

	statement []byte
}

// A Signature is a signature over PAE.
type Signature struct {
	KeyID     string // a hint that no signature covers; package evidence's id of the key if jurat wrote it
	Signature []byte
}

// envelopeForm is an envelope as it is written, with its members in canonical order.
type envelopeForm struct {
	Payload     string          `json:"payload"`
	PayloadType string          `json:"payloadType"`
	Signatures  []signatureForm `json:"signatures"`
}

type signatureForm struct {
	KeyID string `json:"keyid,omitzero"`
	Sig   string `json:"sig"`
}

// Is recognises an envelope around an in-toto statement: a JSON object with that payloadType. The rest may be
// damaged. Records have a payload and signatures, too, and may mention envelopes.
func Is(file []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(file))
	if start, err := dec.ReadToken(); err != nil || start.Kind() != '{' {
		return false
	}
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			return false
		}
		if name.String() == "payloadType" {
			value, err := dec.ReadToken()
			return err == nil && value.Kind() == '"' && value.String() == PayloadType
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
}

// PAE returns the pre-authentication encoding, which the signatures cover.
func PAE(payloadType string, payload []byte) []byte {
	return append(fmt.Appendf(nil, "DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload)), payload...)
}

// Sign puts a statement into an envelope, with a signature by each signer. It returns the errors of the signers, and
// an error if there is none.
func Sign(statement []byte, signers []evidence.Signer) (*Envelope, error) {
	e := &Envelope{statement: statement}
	for _, s := range signers {
		signature, err := s.Sign(PAE(PayloadType, statement))
		if err != nil {
			return nil, fmt.Errorf("signing envelope: %w", err)
		}
		e.Signatures = append(e.Signatures, Signature{KeyID: s.Info().KeyID.String(), Signature: signature})
	}
	if len(e.Signatures) == 0 {
		return nil, errors.New("signing envelope: no signer was given")
	}
	return e, nil
}

// Marshal returns the envelope as a file: canonical JSON and a line feed. Its only error is a key id that is not
// valid UTF-8.
func (e *Envelope) Marshal() ([]byte, error) {
	form := envelopeForm{Payload: base64.StdEncoding.EncodeToString(e.statement), PayloadType: PayloadType}
	for _, s := range e.Signatures {
		form.Signatures = append(form.Signatures, signatureForm{s.KeyID, base64.StdEncoding.EncodeToString(s.Signature)})
	}
	doc, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("writing envelope: %w", err)
	}
	return append(doc, '\n'), nil
}

// Parse reads an envelope in any spelling of its JSON, because other tools may have rewritten it. It does not verify
// signatures. It refuses unknown members, another payload type, no or more than 16 signatures, and base64 that is not
// in one line.
func Parse(file []byte) (*Envelope, error) {
	e, err := parse(file)
	if err != nil {
		return nil, fmt.Errorf("opening envelope: %w", err)
	}
	return e, nil
}

func parse(file []byte) (*Envelope, error) {
	var form envelopeForm
	if err := evidence.CheckValues(file); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(file, &form, json.RejectUnknownMembers(true)); err != nil {
		return nil, evidence.Steady(err)
	}
	if form.PayloadType != PayloadType {
		return nil, fmt.Errorf("payloadType is %q, want %q", form.PayloadType, PayloadType)
	}
	if n := len(form.Signatures); n == 0 || n > maxSignatures {
		return nil, fmt.Errorf("%d signatures: want 1 to %d", n, maxSignatures)
	}
	e := new(Envelope)
	var err error
	if e.statement, err = readBase64(form.Payload); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	for i, s := range form.Signatures {
		signature, err := readBase64(s.Sig)
		if err != nil {
			return nil, fmt.Errorf("signatures/%d: %w", i, err)
		}
		e.Signatures = append(e.Signatures, Signature{KeyID: s.KeyID, Signature: signature})
	}
	return e, nil
}

// readBase64 accepts both alphabets, as DSSE demands of readers. It refuses everything else that encoding/base64
// accepts.
func readBase64(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("want base64 in one line")
	}
	if strings.ContainsAny(text, "-_") {
		return base64.URLEncoding.Strict().DecodeString(text)
	}
	return base64.StdEncoding.Strict().DecodeString(text)
}

// Statement returns the bytes of the statement. The caller must not change them.
func (e *Envelope) Statement() []byte { return e.statement }

// Signed returns the bytes that the signatures cover.
func (e *Envelope) Signed() []byte { return PAE(PayloadType, e.statement) }
