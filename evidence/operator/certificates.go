package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
)

// CertificatesChain is the chain of the operator's acts on certificates: which a CA issued and revoked, and which evidence of revocation it
// published.
const CertificatesChain = evidence.OperatorPrefix + "certificates"

// CertificateChange is what a CA did to a certificate.
type CertificateChange string

const (
	CertificateIssued  CertificateChange = "issued"
	CertificateRevoked CertificateChange = "revoked"
)

// MaxCertificate is the size in bytes of the largest certificate in an act.
const MaxCertificate = 64 << 10

// CertificateEventBody is the response of a certificate_event.
type CertificateEventBody struct {
	By          string            `json:"by"`
	CA          evidence.KeyID    `json:"ca"`                    // of the key that signed the certificate
	Cause       string            `json:"cause,omitzero"`        // of revoked: one of Causes
	Certificate []byte            `json:"certificate,omitempty"` // of issued: DER
	Event       CertificateChange `json:"event"`
	From        string            `json:"from,omitzero"`         // of revoked: RFC 3339, the revocationDate
	InvalidFrom string            `json:"invalid_from,omitzero"` // of revoked: RFC 3339, the invalidityDate; "": none is stated
	Reason      string            `json:"reason"`
	Serial      string            `json:"serial,omitzero"` // of revoked: as FormatSerial writes it
}

// Causes are the reasons for which a CA revokes a certificate, in the words of RFC 5280, section 5.3.1. removeFromCRL is not among them:
// it revokes nothing.
func Causes() []string {
	return []string{"unspecified", "keyCompromise", "cACompromise", "affiliationChanged", "superseded", "cessationOfOperation",
		"certificateHold", "privilegeWithdrawn", "aACompromise"}
}

// isSerial reports whether a text is a serial number: up to 20 bytes (RFC 5280, section 4.1.2.2), in hexadecimal digits.
func isSerial(text string) bool {
	return len(text) >= 1 && len(text) <= 40 && text[0] != '0' && strings.Trim(text, "0123456789abcdef") == ""
}

// CheckSerial returns an error unless a text is a serial number as acts have it: 1 to 40 hexadecimal digits in lower case, the first not 0.
func CheckSerial(serial string) error {
	if !isSerial(serial) {
		return fmt.Errorf("serial: %q is not 1 to 40 hexadecimal digits in lower case, the first of them not 0", evidence.Abbreviate(serial))
	}
	return nil
}

// ReadCertificateEvent reads a certificate_event. It returns an error if the act stands in another chain or breaks a rule of its event. It
// does not read the certificate.
func ReadCertificateEvent(p *evidence.Payload) (*CertificateEventBody, error) {
	body, err := readOnCertificates[CertificateEventBody](p, evidence.CertificateEvent)
	if err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	return body, nil
}

func readOnCertificates[B Body](p *evidence.Payload, action evidence.ActionType) (*B, error) {
	if p.ActionType != action || p.ChainID != CertificatesChain {
		return nil, fmt.Errorf("%s in chain %q is not a %s of chain %q", p.ActionType, p.ChainID, action, CertificatesChain)
	}
	return Read[B](p)
}

func (b *CertificateEventBody) check() error {
	switch {
	case b.By == "" || b.Reason == "":
		return errors.New("by or reason is empty")
	case b.CA.IsZero():
		return errors.New("ca is missing")
	case b.Event == CertificateIssued:
		return b.checkIssued()
	case b.Event == CertificateRevoked:
		return b.checkRevoked()
	}
	return fmt.Errorf("unknown event %q", b.Event)
}

func (b *CertificateEventBody) checkIssued() error {
	if b.Serial != "" || b.From != "" || b.InvalidFrom != "" || b.Cause != "" {
		return fmt.Errorf("%s must not have serial, from, invalid_from and cause", b.Event)
	}
	if n := len(b.Certificate); n == 0 || n > MaxCertificate {
		return fmt.Errorf("certificate: %d bytes, want 1 to %d", n, MaxCertificate)
	}
	return nil
}

func (b *CertificateEventBody) checkRevoked() error {
	if b.Certificate != nil {
		return fmt.Errorf("%s must not have a certificate", b.Event)
	}
	if err := CheckSerial(b.Serial); err != nil {
		return err
	}
	if !slices.Contains(Causes(), b.Cause) {
		return fmt.Errorf("unknown cause %q", evidence.Abbreviate(b.Cause))
	}
	from, err := evidence.ParseTime(b.From)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if b.InvalidFrom == "" {
		return nil
	}
	switch invalid, err := evidence.ParseTime(b.InvalidFrom); {
	case err != nil:
		return fmt.Errorf("invalid_from: %w", err)
	case invalid.After(from):
		return errors.New("invalid_from is after from")
	}
	return nil
}

// EvidenceKind is the kind of a document in which a CA says what is revoked.
type EvidenceKind string

const (
	KindCRL  EvidenceKind = "crl"  // RFC 5280, section 5
	KindOCSP EvidenceKind = "ocsp" // RFC 6960
)

// RevocationEvidenceBody is the response of a revocation_evidence. The installation keeps the document itself.
type RevocationEvidenceBody struct {
	By         string          `json:"by"`
	CA         evidence.KeyID  `json:"ca"`     // of the key of the CA that the document is about
	Digest     evidence.Digest `json:"digest"` // of the document in DER
	Kind       EvidenceKind    `json:"kind"`
	NextUpdate string          `json:"next_update"`     // RFC 3339
	Number     string          `json:"number,omitzero"` // of a CRL: its number, in decimal
	Reason     string          `json:"reason"`
	Serial     string          `json:"serial,omitzero"` // of an OCSP response: of the certificate that it is about
	ThisUpdate string          `json:"this_update"`     // RFC 3339
}

// ReadRevocationEvidence reads a revocation_evidence. It returns an error if the act stands in another chain or breaks a rule of its kind.
func ReadRevocationEvidence(p *evidence.Payload) (*RevocationEvidenceBody, error) {
	body, err := readOnCertificates[RevocationEvidenceBody](p, evidence.RevocationEvidence)
	if err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	return body, nil
}

// isNumber reports whether a text is the number of a CRL: up to 20 bytes (RFC 5280, section 5.2.3), in decimal.
func isNumber(text string) bool {
	return len(text) >= 1 && len(text) <= 49 && (text[0] != '0' || text == "0") && strings.Trim(text, "0123456789") == ""
}

func (b *RevocationEvidenceBody) check() error {
	switch {
	case b.By == "" || b.Reason == "":
		return errors.New("by or reason is empty")
	case b.CA.IsZero() || b.Digest.IsZero():
		return errors.New("ca or digest is missing")
	case b.Kind == KindCRL:
		if b.Serial != "" || !isNumber(b.Number) {
			return errors.New("a crl has a number of 1 to 49 digits, and no serial")
		}
	case b.Kind == KindOCSP:
		if b.Number != "" {
			return errors.New("ocsp must not have a number")
		}
		if err := CheckSerial(b.Serial); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown kind %q", evidence.Abbreviate(string(b.Kind)))
	}
	return b.checkTimes()
}

func (b *RevocationEvidenceBody) checkTimes() error {
	var times [2]time.Time
	for i, at := range []struct{ name, text string }{{"this_update", b.ThisUpdate}, {"next_update", b.NextUpdate}} {
		parsed, err := evidence.ParseTime(at.text)
		if err != nil {
			return fmt.Errorf("%s: %w", at.name, err)
		}
		times[i] = parsed
	}
	if times[1].Before(times[0]) {
		return errors.New("next_update is before this_update")
	}
	return nil
}
