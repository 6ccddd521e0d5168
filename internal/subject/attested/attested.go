// Package attested reads what another party signed as a SCITT statement and a submitter brings as an exhibit.
//
// The jury reads the payload as text. The statement itself stays beside it, so that anyone who has the issuer's key can verify it again; what the submitter found is
// the submitter's word, as of sealed records. A refuted statement is no exhibit.
package attested

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"jurat/evidence"
	"jurat/scitt"
	"jurat/verify"
)

// A Statement is a SCITT statement of another party, as the jury gets it. Everything but Verification follows from File, and is there so
// that readers need no CBOR. Its members are in canonical order.
type Statement struct {
	ContentType  string          `json:"contentType,omitempty"` // of the payload, by the issuer's word
	Digest       evidence.Digest `json:"digest"`                // of File
	File         []byte          `json:"file"`                  // the statement with its receipts
	Issuer       string          `json:"issuer,omitempty"`
	Subject      string          `json:"subject,omitempty"`
	Text         string          `json:"text"` // the payload
	Verification Verification    `json:"verification"`
}

// A Verification is what the submitter found when verifying a statement, by the submitter's trust.
type Verification struct {
	Receipt         string `json:"receipt"` // Proved or NotProved
	ReceiptReason   string `json:"receiptReason"`
	Signature       string `json:"signature"` // Proved or NotProved; a refuted statement cannot be evidence
	SignatureReason string `json:"signatureReason"`
	Trust           string `json:"trust,omitempty"` // fingerprint of the trust file; "": no trust file was given
}

// Outcomes of a verification.
const (
	Proved    = "proved"
	NotProved = "not proved"
)

// ErrRefuted says that a statement is not what its issuer signed.
var ErrRefuted = errors.New("refuted, and so no evidence")

// ErrOwnRecord says that a file is a record of jurat's and no statement of another party.
var ErrOwnRecord = errors.New("it is a record of jurat's, and no statement of another party")

// Read verifies a SCITT statement of another party. It returns ErrRefuted for one that its issuer did not sign, ErrOwnRecord for a statement
// of a record, and an error for another file.
func Read(file []byte, o verify.Options) (*Statement, error) {
	if !scitt.Is(file) {
		return nil, errors.New("it is no SCITT statement (a COSE_Sign1 with the tag 18)")
	}
	parsed, err := scitt.Parse(file)
	if err != nil {
		return nil, err
	}
	if parsed.Own() {
		return nil, ErrOwnRecord
	}
	report, err := verify.File(file, o)
	if err != nil {
		return nil, err
	}
	if report.Outcome == verify.Refuted {
		return nil, fmt.Errorf("%w: %s", ErrRefuted, whyRefuted(report))
	}
	s := describe(file, parsed)
	signature, receipt := report.Of(verify.Authentication), report.Of(verify.Order)
	s.Verification = Verification{Signature: string(signature.Status), SignatureReason: signature.Reason, Receipt: string(receipt.Status), ReceiptReason: receipt.Reason, Trust: report.Trust}
	return &s, nil
}

func whyRefuted(r *verify.Report) string {
	for _, f := range r.Guarantees {
		if f.Status == verify.Refuted {
			return fmt.Sprintf("%s: %s", f.Guarantee, f.Reason)
		}
	}
	return "the verification says so"
}

// describe returns what follows from the file.
func describe(file []byte, s *scitt.Statement) Statement {
	return Statement{ContentType: strings.ToValidUTF8(s.ContentType, "\ufffd"), Digest: evidence.DigestOf(file), File: file, Issuer: s.Issuer, Subject: s.Subject, Text: textOf(s)}
}

// textOf returns the payload as the jury reads it.
func textOf(s *scitt.Statement) string {
	control := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) }
	switch {
	case s.Hash:
		return fmt.Sprintf("[a digest of what is meant, which is not in the evidence: %x]", s.Payload)
	case !utf8.Valid(s.Payload) || strings.ContainsFunc(string(s.Payload), control):
		return fmt.Sprintf("[%d bytes that are no text: %s]", len(s.Payload), evidence.DigestOf(s.Payload))
	}
	return string(s.Payload)
}

// Check returns an error unless the statement says what its file says, and is none of those before.
func (s *Statement) Check(before []Statement) error {
	parsed, err := scitt.Parse(s.File)
	if err != nil {
		return err
	}
	is := describe(s.File, parsed)
	is.Verification = s.Verification
	switch {
	case parsed.Own():
		return ErrOwnRecord
	case is.Digest != s.Digest || is.Text != s.Text || is.Issuer != s.Issuer || is.Subject != s.Subject || is.ContentType != s.ContentType:
		return errors.New("it says something else than its file")
	case slices.ContainsFunc(before, func(b Statement) bool { return bytes.Equal(b.File, s.File) }):
		return fmt.Errorf("duplicate statement %s", s.Digest)
	}
	for _, status := range []string{s.Verification.Signature, s.Verification.Receipt} {
		if status != Proved && status != NotProved {
			return fmt.Errorf("unknown outcome of verification %q: expected %q or %q", evidence.Abbreviate(status), Proved, NotProved)
		}
	}
	return nil
}

// Head describes the statement.
func (s *Statement) Head() string {
	v := &s.Verification
	text := fmt.Sprintf("a signed statement of another party (SCITT), %s: it names the issuer %q and the subject %q, and says that it is of the type %q. ", s.Digest, s.Issuer, s.Subject, s.ContentType)
	if v.Signature == Proved {
		text += "The submitter's trust file has the key that signed it as the issuer's: " + v.SignatureReason
	} else {
		text += "Not verified: that the issuer signed it is not proved: " + v.SignatureReason
	}
	return text + fmt.Sprintf(". Receipt of a transparency service: %s: %s. What it says is its issuer's word", v.Receipt, v.ReceiptReason)
}
