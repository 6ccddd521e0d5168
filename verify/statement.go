package verify

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/evidence/operator"
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

// An ownStatement is a statement of jurat's, and the record that it was made of.
type ownStatement struct {
	*scitt.Statement
	record *evidence.Record
}

// check checks who exported the record, and what the receipts prove.
func (s *ownStatement) check(c *check) {
	c.statement = stated.Of(s.Statement)
	s.exporter(c)
	for i, got := range c.receipts(s.Statement, s.record) {
		if got.Status == Refuted {
			c.refute(Envelope, "receipt", nil, "receipt %d: %s", i, got.Reason)
		}
	}
}

// exporter checks the signature of the statement. The operator or the record's actor may have made it.
func (s *ownStatement) exporter(c *check) {
	i := slices.IndexFunc(c.Trust.Keys, func(k trust.Key) bool { return string(k.KeyID[:]) == string(s.KeyID) })
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

// registered checks what the receipts prove. One that is proved is enough.
func (c *check) registered(s *scitt.Statement) {
	if len(s.Receipts) == 0 {
		c.doubt(Order, "no-receipt", nil, "it has no receipt, so nothing shows that a transparency service has it")
		return
	}
	var worst *stated.Receipted
	proved := false
	for i, got := range c.receipts(s, nil) {
		included := !s.Receipts[i].IsConsistency()
		if got.Status == Proved && included {
			proved = true
			c.notes[Order] = got.Reason
		}
		if (included || got.Status == Refuted) && (worst == nil || got.Status.Worse(worst.Status)) {
			worst = &got
		}
	}
	if worst == nil {
		c.doubt(Order, "no-receipt", nil, "it has no receipt of inclusion, so nothing shows that a transparency service has it")
		return
	}
	switch {
	case worst.Status == Refuted:
		c.refute(Order, "receipt", nil, "%s", worst.Reason)
	case !proved:
		c.doubt(Order, "receipt", nil, "%s", worst.Reason)
	}
}

// receipts checks the receipts. r is the record of a statement of jurat's; nil: there is none.
func (c *check) receipts(s *scitt.Statement, r *evidence.Record) []stated.Receipted {
	list, trees := stated.Receipts(c.Trust, s, r)
	for i := range trees {
		c.sameHistory(&trees[i])
	}
	c.statement.Receipts = list
	return list
}

// sameHistory doubts the order if a receipt and the record's checkpoint have two roots for one size. It refutes nothing: a receipt signs a root, and the size
// stands beside it, where anybody can change it to one whose paths are as long.
func (c *check) sameHistory(at *operator.Checkpoint) {
	if c.log != nil && scitt.LogIssuer(c.log.Origin) == at.Origin && c.log.Size == at.Size && c.log.Root != at.Root {
		c.doubt(Order, "history", nil, "the log %s signed two roots for %d entries, one in the checkpoint and one in the receipt, or somebody changed the receipt's size, which no signature covers", c.log.Origin, at.Size)
	}
}
