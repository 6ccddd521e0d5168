package verify

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/scitt"
	"jurat/verify/stated"
	"jurat/verify/trust"
)

// ofStatement are the guarantees that are asked of a statement without a record. No one vouches for its time, and nobody
// knows who holds its key, so these are asked to be answered with that.
var ofStatement = []Guarantee{Content, Authentication, NonRepudiation, Time, Order, Before}

// statementFile checks a SCITT statement: one of jurat's with the record in it, or one of others.
func statementFile(file []byte, o Options) (*Report, error) {
	s, err := scitt.Parse(file)
	switch {
	case err != nil && bytes.Contains(file, []byte(scitt.ContentType)): // it may be what stands unprotected that is not read here
		return unopened(o, NotProved, "form", err), nil
	case err != nil: // others' programs may write what is not read here, so it is not said to be false
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	case !s.Own():
		return statement(s, o), nil
	}
	r, err := s.Record()
	if errors.Is(err, scitt.ErrNoRecord) && !forged(s, o.Trust) {
		return unopened(o, NotProved, "no-record", err), nil
	}
	if err != nil {
		return unopened(o, Refuted, "form", err), nil
	}
	o.envelope = &ownStatement{s, r}
	return record(r, o), nil
}

// forged reports whether the statement was not signed with the key of the trust file that it names.
func forged(s *scitt.Statement, t *trust.Trust) bool {
	if t == nil {
		return false
	}
	prepared, err := t.Prepared()
	if err != nil {
		return false // no key counts
	}
	i := exporterKey(prepared, s)
	return i >= 0 && errors.Is(s.Check(prepared.Keys[i].Public()), evidence.ErrSignature)
}

// exporterKey returns the place of the key that the statement names; -1: the trust file does not have it.
func exporterKey(t *trust.Trust, s *scitt.Statement) int {
	return slices.IndexFunc(t.Keys, func(k trust.Key) bool { return string(k.KeyID[:]) == string(s.KeyID) })
}

// An ownStatement is a statement of jurat's, and the record that it was made of.
type ownStatement struct {
	*scitt.Statement
	record *evidence.Record
}

// check checks who exported the record, and what the receipts prove.
func (s *ownStatement) check(c *check) {
	c.statement = stated.Of(s.Statement)
	s.exporter(c)
	c.statement.Receipts = stated.Receipts(c.Trust, s.Statement, s.record)
}

// exporter checks the signature of the statement. The operator or the record's actor may have made it.
func (s *ownStatement) exporter(c *check) {
	i := exporterKey(c.Trust, s.Statement)
	if i < 0 {
		if why := stated.Certificate(s.Statement, nil); why != nil {
			c.add(Envelope, why.Status, why.Rule, nil, "%s", why.Reason)
			return
		}
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
	if why := stated.Certificate(s.Statement, key.Public()); why != nil {
		c.add(Envelope, why.Status, why.Rule, nil, "%s", why.Reason)
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
	c.statement = stated.Of(s)
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

// issued checks who signed the statement.
func (c *check) issued(s *scitt.Statement) {
	key, why := stated.Signer(c.Trust, s)
	if key == nil {
		for _, g := range []Guarantee{Content, Authentication} {
			c.add(g, why.Status, why.Rule, nil, "%s", why.Reason)
		}
		return
	}
	c.notes[Content] = fmt.Sprintf("signed with the key of %q", key.Name)
	c.notes[Authentication] = fmt.Sprintf("the trust file says that the key is one of the issuer %q", key.Issuer)
	if !key.Revoked.IsZero() {
		c.doubt(Authentication, "revoked", nil, "the key of %q is revoked from %s on, and nothing shows when the statement was signed", key.Name, utc(key.Revoked))
	}
}

// registered checks the receipts of another's statement. Anybody can put receipts beside it, so none of them refutes anything.
func (c *check) registered(s *scitt.Statement) {
	c.statement.Receipts = stated.Receipts(c.Trust, s, nil)
	included := false
	for i, got := range c.statement.Receipts {
		if s.Receipts[i].IsConsistency() {
			continue
		}
		if included = true; got.Status == Proved {
			c.notes[Order] = got.Reason
			return
		}
	}
	if !included {
		c.doubt(Order, "no-receipt", nil, "it has no receipt of inclusion, so nothing shows that a transparency service has it")
		return
	}
	c.doubt(Order, "receipt", nil, "%s", c.statement.Receipts[slices.IndexFunc(s.Receipts, func(r scitt.Receipt) bool { return !r.IsConsistency() })].Reason)
}

// unopened is the report on a statement of a record that cannot be opened.
func unopened(o Options, status Status, rule string, err error) *Report {
	r := damaged(OneRecord, "", o, err)
	r.Guarantees[0].Status, r.Guarantees[0].Rule, r.Outcome = status, rule, status
	r.Guarantees = append(r.Guarantees, Finding{Guarantee: Envelope, Status: NotProved, Reason: "the file cannot be opened"})
	return r
}

// exporterKey checks whether the key was good when the statement was signed. A statement has no time that an authority vouches for.
func (c *check) exporterKey(key *trust.Key) {
	switch {
	case !key.Revoked.IsZero():
		c.doubt(Envelope, "revoked", nil, "the key is revoked from %s on, and nothing shows when the statement was signed", utc(key.Revoked))
	case !key.NotAfter.IsZero():
		c.doubt(Envelope, "validity", nil, "the key was valid only until %s, and nothing shows when the statement was signed", utc(key.NotAfter))
	}
}
