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
// along proves nothing: anyone can bring one. But one that it names as its signer's, and is not, contradicts it.
func Signer(t *trust.Trust, s *scitt.Statement) (*trust.StatementKey, Unsigned) {
	keys := t.StatementKeys(trust.IssuesStatements, s.Issuer)
	named := false
	var unsupported error
	for _, key := range keys {
		err := s.Check(key.Public())
		switch {
		case err == nil:
			if why := Certificate(s, key.Public()); why != nil {
				return nil, *why
			}
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
	if why := Certificate(s, nil); why != nil {
		return nil, *why
	}
	return nil, Unsigned{assurance.NotProved, "unknown-key", noIssuerKey(s, len(keys))}
}

// Certificate says what speaks against a statement whose protected header names its signer's certificate; nil: nothing. public is the key of the trust file that
// signed it; nil: none did, and then the key of the certificate is to have.
func Certificate(s *scitt.Statement, public crypto.PublicKey) *Unsigned {
	if public != nil {
		switch err := s.CheckCertificate(public); {
		case errors.Is(err, scitt.ErrCertificate):
			return &Unsigned{assurance.Refuted, "signature", fmt.Sprintf("the statement contradicts itself: %v", err)}
		case err != nil:
			return &Unsigned{assurance.NotProved, "unsupported", fmt.Sprintf("the certificate that it names: %v", err)}
		}
		return nil
	}
	named := s.Certificate()
	if named == nil {
		return nil
	}
	key, err := evidence.ParsePublicKey(named.RawSubjectPublicKeyInfo)
	if err != nil {
		return nil // a kind of key that is not known here
	}
	if err := s.Check(key); errors.Is(err, evidence.ErrSignature) {
		return &Unsigned{assurance.Refuted, "signature", "the statement contradicts itself: it was not signed with the key of the certificate that it names"}
	} else if err != nil {
		return nil
	}
	if err := s.CheckCertificate(key); errors.Is(err, scitt.ErrCertificate) {
		return &Unsigned{assurance.Refuted, "signature", fmt.Sprintf("the statement contradicts itself: %v", err)}
	}
	return nil
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
		reason += "; the certificate that it brings along proves nothing by itself, as nothing shows when it was signed"
	}
	return reason
}

// Receipted says what came of a receipt.
type Receipted struct {
	Issuer string           `json:"issuer,omitzero"` // the claim iss
	Status assurance.Status `json:"status"`
	Reason string           `json:"reason"`

	signed *signed // of a proved one
}

// signed is a root that a key signed.
type signed struct {
	by   crypto.PublicKey
	tree operator.Checkpoint
}

// Receipts checks the receipts of a statement: those of inclusion, and then those of consistency, by the roots that the first ones show to be signed. r is the record
// of a statement of jurat's; nil: it is another's. The sizes and places in a receipt are in no signature. So a receipt that holds shows no number, and one that does not hold
// shows nothing: anybody can have put it there, or have changed it.
func Receipts(t *trust.Trust, s *scitt.Statement, r *evidence.Record) []Receipted {
	list := make([]Receipted, len(s.Receipts))
	var roots []signed
	take := func(i int, got Receipted) {
		if list[i] = got; got.signed != nil {
			roots = append(roots, *got.signed)
		}
	}
	for i := range s.Receipts {
		if !s.Receipts[i].IsConsistency() {
			take(i, included(t, &s.Receipts[i], s, r))
		}
	}
	for i := range s.Receipts {
		if s.Receipts[i].IsConsistency() {
			take(i, grown(&s.Receipts[i], roots))
		}
	}
	return list
}

// unchecked is the answer about a receipt that cannot be read or checked.
func unchecked(rc *scitt.Receipt, err error) Receipted {
	return Receipted{Issuer: evidence.Abbreviate(rc.Issuer), Status: assurance.NotProved, Reason: fmt.Sprintf("not checked: %v", err)}
}

// grown checks a receipt of consistency: the log whose root another receipt of the statement has is the beginning of a longer one.
func grown(rc *scitt.Receipt, roots []signed) Receipted {
	g, err := rc.Growth()
	if err != nil {
		return unchecked(rc, err)
	}
	got := Receipted{Issuer: evidence.Abbreviate(rc.Issuer), Status: assurance.NotProved}
	got.Reason = fmt.Sprintf("not checked: no other receipt of this statement that is proved has a root of %d entries by %q", g.From, got.Issuer)
	for _, before := range roots {
		if before.tree.Size != g.From || before.tree.Origin != rc.Issuer {
			continue
		}
		_, root, err := rc.CheckGrowth(before.by, before.tree.Root)
		switch {
		case err == nil:
			tree := operator.Checkpoint{Origin: before.tree.Origin, Size: g.To, Root: root}
			return Receipted{Issuer: got.Issuer, Status: assurance.Proved, signed: &signed{before.by, tree},
				Reason: fmt.Sprintf("a tree of %q that has it is the beginning of a later one", got.Issuer)}
		case errors.Is(err, scitt.ErrUnsupported):
			got.Reason = fmt.Sprintf("not checked: %v", err)
		default:
			got.Reason = fmt.Sprintf("%q did not sign what follows from it: %v", got.Issuer, err)
		}
	}
	return got
}

// included checks a receipt of inclusion.
func included(t *trust.Trust, rc *scitt.Receipt, s *scitt.Statement, r *evidence.Record) Receipted {
	if _, err := rc.Proof(); err != nil {
		return unchecked(rc, err)
	}
	got := Receipted{Issuer: evidence.Abbreviate(rc.Issuer), Status: assurance.NotProved}
	if origin, public := t.LogKey(rc.KeyID); public != nil && r != nil {
		return byLog(got, rc, r, origin, public)
	}
	keys := t.StatementKeys(trust.IssuesReceipts, rc.Issuer)
	if len(keys) == 0 {
		got.Reason = fmt.Sprintf("not checked: the trust file has no SCITT key of the transparency service %q", got.Issuer)
		return got
	}
	for _, key := range keys {
		for _, leaf := range s.Leaves() {
			proof, root, err := rc.CheckLeaf(key.Public(), leaf)
			if errors.Is(err, scitt.ErrUnsupported) {
				got.Reason = fmt.Sprintf("not checked: %v", err)
				return got
			}
			if err != nil {
				continue
			}
			if !key.Revoked.IsZero() {
				got.Reason = fmt.Sprintf("the key of %q is revoked from %s on, and nothing shows when the receipt was signed", key.Name, key.Revoked.UTC().Format(time.RFC3339Nano))
				return got
			}
			return Receipted{Issuer: got.Issuer, Status: assurance.Proved, signed: &signed{key.Public(), operator.Checkpoint{Origin: rc.Issuer, Size: proof.Size, Root: root}},
				Reason: fmt.Sprintf("the transparency service %q has it", key.Name)}
		}
	}
	// Services choose what they hash. So a signature over another root does not show that the receipt is false.
	got.Reason = fmt.Sprintf("no key that the trust file has of %q signed a root that follows from this statement, as it is hashed here", got.Issuer)
	return got
}

// byLog checks a receipt by a log of the trust file for a record's entry. What that is, the format says.
func byLog(got Receipted, rc *scitt.Receipt, r *evidence.Record, origin string, public crypto.PublicKey) Receipted {
	wrong := func(format string, args ...any) Receipted {
		got.Reason = fmt.Sprintf(format, args...)
		return got
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
		return got
	case err != nil:
		return wrong("the log %s did not sign the root that follows from the entry: %v", origin, err)
	}
	return Receipted{Issuer: got.Issuer, Status: assurance.Proved, signed: &signed{public, operator.Checkpoint{Origin: rc.Issuer, Size: proof.Size, Root: root}},
		Reason: fmt.Sprintf("the log %s has the record", origin)}
}
