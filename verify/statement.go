package verify

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/scitt"
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

// Receipted says what came of a receipt.
type Receipted struct {
	Issuer string `json:"issuer,omitzero"` // the claim iss
	Status Status `json:"status"`
	Size   int64  `json:"size,omitzero"` // of a proved one: entries of the log
	Index  int64  `json:"index"`         // of a proved one: the place in the log, from 0
	Reason string `json:"reason"`
}

// ofStatement are the guarantees that are asked of a statement without a record. No one vouches for its time, and nobody
// knows who holds its key, so these are asked to be answered with that.
var ofStatement = []Guarantee{Content, Authentication, NonRepudiation, Time, Order, Before}

// statementFile checks a SCITT statement: one of jurat's with the record in it, or one of others.
func statementFile(file []byte, o Options) (*Report, error) {
	s, err := scitt.Parse(file)
	switch {
	case err != nil && bytes.Contains(file, []byte(scitt.ContentType)):
		return unopened(OneRecord, o, err), nil
	case err != nil: // others' programs may write what is not read here, so it is not said to be false
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	case !s.Own():
		return statement(s, o), nil
	}
	r, err := s.Record()
	if err != nil {
		return unopened(OneRecord, o, err), nil
	}
	o.envelope = &ownStatement{s, r}
	return record(r, o), nil
}

// shown returns what a statement states, without its receipts.
func shown(s *scitt.Statement) *Statement {
	return &Statement{Issuer: evidence.Abbreviate(s.Issuer), Subject: evidence.Abbreviate(s.Subject), ContentType: evidence.Abbreviate(s.ContentType), Digest: s.Hash}
}

// An ownStatement is a statement of jurat's, and the record that it was made of.
type ownStatement struct {
	*scitt.Statement
	record *evidence.Record
}

// check checks who exported the record, and what the receipts prove.
func (s *ownStatement) check(c *check) {
	c.statement = shown(s.Statement)
	s.exporter(c)
	for i := range s.Receipts {
		got := c.receipt(&s.Receipts[i], s.Statement, s.record)
		c.statement.Receipts = append(c.statement.Receipts, got)
		if got.Status == Refuted {
			c.refute(Envelope, "receipt", nil, "receipt %d: %s", i, got.Reason)
		}
	}
}

// exporter checks the signature of the statement. The operator or the record's actor may have made it.
func (s *ownStatement) exporter(c *check) {
	i := slices.IndexFunc(c.Trust.Keys, func(k trust.Key) bool { return string(k.KeyID[:]) == string(s.KeyID) })
	if i < 0 {
		c.doubt(Envelope, "unknown-key", nil, "no key of the trust file signed the statement")
		return
	}
	key := &c.Trust.Keys[i]
	switch err := s.Check(key.Public()); {
	case errors.Is(err, scitt.ErrUnsupported):
		c.doubt(Envelope, "unsupported", nil, "the statement: %v", err)
		return
	case err != nil:
		c.refute(Envelope, "signature", nil, "the statement was not signed with the key that it names: %v", err)
		return
	}
	p := &s.record.Payload
	switch {
	case s.Issuer != scitt.Issuer(key.Role, key.Name):
		c.refute(Envelope, "actor", nil, "the statement names the issuer %q, and is signed with the key of %s %q", evidence.Abbreviate(s.Issuer), key.Role, key.Name)
	case key.Role != evidence.RoleOperator && (key.Role != p.Role() || key.Name != p.Actor()):
		c.refute(Envelope, "actor", nil, "the operator or the record's actor signs its statement, and this one is signed with the key of %s %q", key.Role, key.Name)
	}
	c.notes[Envelope] = fmt.Sprintf("%s %q signed the statement; only the record's own signatures show who said what", key.Role, key.Name)
	c.exporterKey(key)
	if len(key.With) > 0 {
		c.doubt(Envelope, "second-signature", nil, "the key %s must sign, too, and a COSE_Sign1 has one signature", key.With[0])
	}
}

// statement checks a statement that has no record.
func statement(s *scitt.Statement, o Options) *Report {
	c := newCheck(o, SignedStatement)
	c.statement = shown(s)
	c.issued(s)
	c.registered(s)
	c.doubt(Time, "no-time", nil, "no authority vouches for the time of a statement")
	if c.applies(Before) {
		c.doubt(Before, "no-time", nil, "no authority vouches for the time of a statement")
	}
	c.doubt(NonRepudiation, "holder", nil, "nothing shows who can sign with the issuer's key")
	r := c.report()
	r.NotShown = append(slices.Clone(notShown), "that anything that the statement says is so: it is its issuer's word")
	if s.Hash {
		r.NotShown = append(r.NotShown, "what the payload is the digest of: that is not in the statement")
	}
	return r
}

// issued checks who signed the statement. A certificate that it brings along proves nothing: anyone can bring one.
func (c *check) issued(s *scitt.Statement) {
	keys := c.Trust.StatementKeys(trust.IssuesStatements, s.Issuer)
	named := false
	var unsupported error
	for _, key := range keys {
		err := s.Check(key.Public())
		switch {
		case err == nil:
			c.notes[Content] = fmt.Sprintf("signed with the key of %q", key.Name)
			c.notes[Authentication] = fmt.Sprintf("the trust file says that the key is one of the issuer %q", key.Issuer)
			if !key.Revoked.IsZero() {
				c.doubt(Authentication, "revoked", nil, "the key of %q is revoked from %s on, and nothing shows when the statement was signed", key.Name, utc(key.Revoked))
			}
			return
		case !errors.Is(err, evidence.ErrSignature):
			unsupported = err
		}
		named = named || key.Named(s.KeyID)
	}
	for _, g := range []Guarantee{Content, Authentication} {
		switch {
		case unsupported != nil:
			c.doubt(g, "unsupported", nil, "the signature: %v", unsupported)
		case named:
			c.refute(g, "signature", nil, "the statement was not signed with the key that it names")
		default:
			c.doubt(g, "unknown-key", nil, "%s", noIssuerKey(s, len(keys)))
		}
	}
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

// registered checks what the receipts prove. One that is proved is enough.
func (c *check) registered(s *scitt.Statement) {
	if len(s.Receipts) == 0 {
		c.doubt(Order, "no-receipt", nil, "it has no receipt, so nothing shows that a transparency service has it")
		return
	}
	var worst *Receipted
	proved := false
	for i := range s.Receipts {
		got := c.receipt(&s.Receipts[i], s, nil)
		c.statement.Receipts = append(c.statement.Receipts, got)
		if got.Status == Proved {
			proved = true
			c.notes[Order] = got.Reason
		}
		if worst == nil || got.Status.Worse(worst.Status) {
			worst = &got
		}
	}
	switch {
	case worst.Status == Refuted:
		c.refute(Order, "receipt", nil, "%s", worst.Reason)
	case !proved:
		c.doubt(Order, "receipt", nil, "%s", worst.Reason)
	}
}

// receipt checks one receipt. r is the record of a statement of jurat's; nil: there is none.
func (c *check) receipt(rc *scitt.Receipt, s *scitt.Statement, r *evidence.Record) Receipted {
	got := Receipted{Issuer: evidence.Abbreviate(rc.Issuer), Status: NotProved}
	if _, err := rc.Proof(); err != nil {
		if !errors.Is(err, scitt.ErrUnsupported) {
			got.Status = Refuted
		}
		got.Reason = fmt.Sprintf("not checked: %v", err)
		if got.Status == Refuted {
			got.Reason = err.Error()
		}
		return got
	}
	if origin, public := c.Trust.LogKey(rc.KeyID); public != nil && r != nil {
		return c.logReceipt(got, rc, r, origin, public)
	}
	keys := c.Trust.StatementKeys(trust.IssuesReceipts, rc.Issuer)
	if len(keys) == 0 {
		got.Reason = fmt.Sprintf("not checked: the trust file has no SCITT key of the transparency service %q", got.Issuer)
		return got
	}
	for _, key := range keys {
		for _, entry := range s.Entries() {
			proof, _, err := rc.Check(key.Public(), entry)
			if errors.Is(err, scitt.ErrUnsupported) {
				got.Reason = fmt.Sprintf("not checked: %v", err)
				return got
			}
			if err != nil {
				continue
			}
			if !key.Revoked.IsZero() {
				got.Reason = fmt.Sprintf("the key of %q is revoked from %s on, and nothing shows when the receipt was signed", key.Name, utc(key.Revoked))
				return got
			}
			return Receipted{Issuer: got.Issuer, Status: Proved, Size: proof.Size, Index: proof.Index,
				Reason: fmt.Sprintf("the transparency service %q has it as entry %d of %d", key.Name, proof.Index, proof.Size)}
		}
	}
	// Services choose what they hash. So a signature over another root does not show that the receipt is false.
	got.Reason = fmt.Sprintf("no key that the trust file has of %q signed a root that follows from this statement, as it is hashed here", got.Issuer)
	return got
}

// logReceipt checks a receipt by a log of the trust file for a record's entry. What that is, the format says.
func (c *check) logReceipt(got Receipted, rc *scitt.Receipt, r *evidence.Record, origin string, public crypto.PublicKey) Receipted {
	wrong := func(format string, args ...any) Receipted {
		got.Status, got.Reason = Refuted, fmt.Sprintf(format, args...)
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
	c.sameHistory(origin, proof.Size, root)
	return Receipted{Issuer: got.Issuer, Status: Proved, Size: proof.Size, Index: proof.Index,
		Reason: fmt.Sprintf("the log %s has the record as entry %d of %d", origin, proof.Index, proof.Size)}
}

// sameHistory refutes the order if the log signed two roots for one size.
func (c *check) sameHistory(origin string, size int64, root tlog.Hash) {
	if c.log != nil && c.log.Origin == origin && c.log.Size == size && c.log.Root != root {
		c.refute(Order, "history", nil, "the log %s signed two roots for %d entries, one in the checkpoint and one in the receipt", origin, size)
	}
}
