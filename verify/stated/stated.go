// Package stated says what a SCITT statement states, and checks by a trust file who signed it and what its receipts prove.
package stated

import (
	"crypto"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/scitt"
	"jurat/verify/assurance"
	"jurat/verify/trust"
)

// A Statement says what a SCITT statement states. Only what the guarantees say is proved of it.
type Statement struct {
	Issuer      string      `json:"issuer,omitzero"`       // the claim iss
	Subject     string      `json:"subject,omitzero"`      // the claim sub
	ContentType string      `json:"content_type,omitzero"` // of the payload, or of what it is the digest of
	Digest      bool        `json:"digest,omitzero"`       // the payload is the digest of what is meant (RFC 9995)
	Receipts    []Receipted `json:"receipts,omitempty"`
}

// Of returns what a statement states, without its receipts.
func Of(s *scitt.Statement) *Statement {
	return &Statement{Issuer: evidence.Abbreviate(s.Issuer), Subject: evidence.Abbreviate(s.Subject), ContentType: evidence.Abbreviate(s.ContentType), Digest: s.Hash}
}

// Unsigned says why no key of a trust file is found to have signed a statement.
type Unsigned struct {
	Status assurance.Status
	Rule   string
	Reason string
}

// Signer returns the issuer's key that signed a statement, or why there is none. A certificate that the statement brings
// along proves nothing: anyone can bring one.
func Signer(t *trust.Trust, s *scitt.Statement) (*trust.StatementKey, Unsigned) {
	keys := t.StatementKeys(trust.IssuesStatements, s.Issuer)
	named := false
	var unsupported error
	for _, key := range keys {
		err := s.Check(key.Public())
		switch {
		case err == nil:
			return key, Unsigned{}
		case !errors.Is(err, evidence.ErrSignature):
			unsupported = err
		}
		named = named || key.Named(s.KeyID)
	}
	switch {
	case unsupported != nil:
		return nil, Unsigned{assurance.NotProved, "unsupported", fmt.Sprintf("the signature: %v", unsupported)}
	case named:
		return nil, Unsigned{assurance.Refuted, "signature", "the statement was not signed with the key that it names"}
	}
	return nil, Unsigned{assurance.NotProved, "unknown-key", noIssuerKey(s, len(keys))}
}

func noIssuerKey(s *scitt.Statement, keys int) string {
	reason := fmt.Sprintf("the trust file has no SCITT key of the issuer %q", evidence.Abbreviate(s.Issuer))
	switch {
	case s.Issuer == "":
		reason = "it names no issuer (CWT claim 1 in the protected header)"
	case keys > 0:
		reason = fmt.Sprintf("none of the keys that the trust file has of the issuer %q made its signature", evidence.Abbreviate(s.Issuer))
	}
	if s.Certified {
		reason += "; the certificate that it brings along proves nothing by itself"
	}
	return reason
}

// Receipted says what came of a receipt.
type Receipted struct {
	Issuer string           `json:"issuer,omitzero"` // the claim iss
	Status assurance.Status `json:"status"`
	Size   int64            `json:"size,omitzero"` // of a proved one: entries of the log
	Index  int64            `json:"index"`         // of a proved one: the place in the log, from 0
	Reason string           `json:"reason"`
}

// Check checks one receipt of a statement by the reader's trust. r is the record of a statement of jurat's; nil: there is
// none. Of a proved receipt by a log of the trust file, it also returns what the log signed.
func Check(t *trust.Trust, rc *scitt.Receipt, s *scitt.Statement, r *evidence.Record) (Receipted, *operator.Checkpoint) {
	got := Receipted{Issuer: evidence.Abbreviate(rc.Issuer), Status: assurance.NotProved}
	if _, err := rc.Proof(); err != nil {
		if !errors.Is(err, scitt.ErrUnsupported) {
			got.Status = assurance.Refuted
		}
		got.Reason = fmt.Sprintf("not checked: %v", err)
		if got.Status == assurance.Refuted {
			got.Reason = err.Error()
		}
		return got, nil
	}
	if origin, public := t.LogKey(rc.KeyID); public != nil && r != nil {
		return byLog(got, rc, r, origin, public)
	}
	keys := t.StatementKeys(trust.IssuesReceipts, rc.Issuer)
	if len(keys) == 0 {
		got.Reason = fmt.Sprintf("not checked: the trust file has no SCITT key of the transparency service %q", got.Issuer)
		return got, nil
	}
	for _, key := range keys {
		for _, leaf := range s.Leaves() {
			proof, _, err := rc.CheckLeaf(key.Public(), leaf)
			if errors.Is(err, scitt.ErrUnsupported) {
				got.Reason = fmt.Sprintf("not checked: %v", err)
				return got, nil
			}
			if err != nil {
				continue
			}
			if !key.Revoked.IsZero() {
				got.Reason = fmt.Sprintf("the key of %q is revoked from %s on, and nothing shows when the receipt was signed", key.Name, key.Revoked.UTC().Format(time.RFC3339Nano))
				return got, nil
			}
			return Receipted{Issuer: got.Issuer, Status: assurance.Proved, Size: proof.Size, Index: proof.Index,
				Reason: fmt.Sprintf("the transparency service %q has it as entry %d of %d", key.Name, proof.Index, proof.Size)}, nil
		}
	}
	// Services choose what they hash. So a signature over another root does not show that the receipt is false.
	got.Reason = fmt.Sprintf("no key that the trust file has of %q signed a root that follows from this statement, as it is hashed here", got.Issuer)
	return got, nil
}

// byLog checks a receipt by a log of the trust file for a record's entry. What that is, the format says.
func byLog(got Receipted, rc *scitt.Receipt, r *evidence.Record, origin string, public crypto.PublicKey) (Receipted, *operator.Checkpoint) {
	wrong := func(format string, args ...any) (Receipted, *operator.Checkpoint) {
		got.Status, got.Reason = assurance.Refuted, fmt.Sprintf(format, args...)
		return got, nil
	}
	entry, err := evidence.ParseEntry(rc.Entry)
	switch {
	case err != nil:
		return wrong("the entry beside its proof: %v", err)
	case entry.Payload != r.Digest || !slices.EqualFunc(entry.Signatures, r.Signatures, slices.Equal[[]byte]):
		return wrong("the entry beside its proof is that of another record")
	case r.Log != nil && string(r.LogEntry(r.Log.LogCounts)) != string(rc.Entry):
		return wrong("the entry beside its proof has other counts than the record")
	case rc.Issuer != scitt.LogIssuer(origin):
		return wrong("it names the issuer %q, and the key that it names is that of the log %s", got.Issuer, origin)
	}
	proof, root, err := rc.Check(public, rc.Entry)
	switch {
	case errors.Is(err, scitt.ErrUnsupported):
		got.Reason = fmt.Sprintf("not checked: %v", err)
		return got, nil
	case err != nil:
		return wrong("the log %s did not sign the root that follows from the entry: %v", origin, err)
	}
	return Receipted{Issuer: got.Issuer, Status: assurance.Proved, Size: proof.Size, Index: proof.Index,
		Reason: fmt.Sprintf("the log %s has the record as entry %d of %d", origin, proof.Index, proof.Size)}, &operator.Checkpoint{Origin: origin, Size: proof.Size, Root: root}
}
