// Package dsse hands sealed records to tools that speak DSSE v1 and in-toto: an envelope, signed by the exporter,
// around a Statement v1 whose subjects are the records' payloads and whose predicate holds the records themselves.
//
// The envelope vouches for the hand-over and for nothing else. Who said what is shown by the signatures inside the
// records, which are over the payloads and are no DSSE signatures; package verify checks both.
//
// # An envelope is signed by the sender
//
// The audit model signs payloads, not DSSE's encoding of them, so an agent's signature can be no DSSE signature. The envelope is the
// operator's, says so inside itself, and its predicate holds the sealed records whole, so that nothing is lost and everything can be
// checked as ever. Its `predicateType` is a `urn:` of our own, as the project owns no domain that could hold a page.
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

// PayloadType is what DSSE envelopes say that hold an in-toto statement.
const PayloadType = "application/vnd.in-toto+json"

const maxSignatures = 16

// An Envelope is an opened envelope. Its signatures are claims until CheckSignature has held them against a key that the
// caller trusts.
type Envelope struct {
	Signatures []Signature

	statement []byte
}

// A Signature is one over PAE.
type Signature struct {
	KeyID     string // a hint, which nothing protects; package evidence's id of the key if jurat wrote it
	Signature []byte
}

// envelopeForm is an envelope as it is written, its members in canonical order.
type envelopeForm struct {
	Payload     string          `json:"payload"`
	PayloadType string          `json:"payloadType"`
	Signatures  []signatureForm `json:"signatures"`
}

type signatureForm struct {
	KeyID string `json:"keyid,omitzero"`
	Sig   string `json:"sig"`
}

// Is recognises an envelope around an in-toto statement, also one that is damaged after it has said what it is: a JSON
// object whose own member payloadType says so. Records have a payload and signatures, too, and may speak about envelopes.
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

// PAE is the pre-authentication encoding: what the signatures are over.
func PAE(payloadType string, payload []byte) []byte {
	return append(fmt.Appendf(nil, "DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload)), payload...)
}

// Sign puts a statement into an envelope, with a signature by each signer.
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

// Marshal writes the envelope as a file: canonical JSON and a line feed.
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

// Parse reads an envelope in any spelling of its JSON, as other tools may have written it anew.
func Parse(file []byte) (*Envelope, error) {
	e, err := parse(file)
	if err != nil {
		return nil, fmt.Errorf("opening envelope: %w", err)
	}
	return e, nil
}

func parse(file []byte) (*Envelope, error) {
	var form envelopeForm
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

// readBase64 takes both alphabets, as DSSE demands of readers, and nothing else that encoding/base64 lets pass.
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

// Signed returns what the signatures are over.
func (e *Envelope) Signed() []byte { return PAE(PayloadType, e.statement) }
