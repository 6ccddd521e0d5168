package verify

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/scitt"
	"jurat/verify/trust"
)

// A Statement says what a SCITT statement of a record states. Only what the guarantees say is proved of it.
type Statement struct {
	Issuer      string    `json:"issuer,omitzero"`       // the claim iss
	Subject     string    `json:"subject,omitzero"`      // the claim sub
	ContentType string    `json:"content_type,omitzero"` // of the payload
	Receipts    []Receipt `json:"receipts,omitempty"`
}

// A Receipt says whether a receipt holds.
type Receipt struct {
	Issuer string `json:"issuer,omitzero"` // the claim iss
	Status Status `json:"status"`
	Reason string `json:"reason"`
}

// statementFile checks a SCITT statement with the record in it.
func statementFile(file []byte, o Options) (*Report, error) {
	s, err := scitt.Parse(file)
	switch {
	case err != nil && bytes.Contains(file, []byte(scitt.ContentType)): // it may be what stands unprotected that is not read here
		return unopened(o, NotProved, "form", err), nil
	case err != nil: // other programs may write what is not read here, so it is not said to be false
		return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
	case !s.Own():
		return nil, fmt.Errorf("%w: a statement (COSE_Sign1) that holds no record: a tool for SCITT of its issuer verifies it", ErrNotOurs)
	}
	r, err := s.Record()
	if errors.Is(err, scitt.ErrNoRecord) && !forged(s, o.Trust) {
		return unopened(o, NotProved, "no-record", err), nil
	}
	if err != nil {
		return unopened(o, Refuted, "form", err), nil
	}
	o.envelope = &envelope{s, r}
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

// An envelope is a SCITT statement, and the record that it was made of.
type envelope struct {
	*scitt.Statement
	record *evidence.Record
}

// check checks who exported the record, and what the receipts prove.
func (s *envelope) check(c *check) {
	c.statement = &Statement{Issuer: evidence.Abbreviate(s.Issuer), Subject: evidence.Abbreviate(s.Subject), ContentType: evidence.Abbreviate(s.ContentType)}
	s.exporter(c)
	for i := range s.Receipts {
		c.statement.Receipts = append(c.statement.Receipts, s.receipt(c.Trust, &s.Receipts[i]))
	}
}

// exporter checks the signature of the statement. The operator or the record's actor may have made it.
func (s *envelope) exporter(c *check) {
	i := exporterKey(c.Trust, s.Statement)
	if i < 0 {
		if why := s.certificate(nil); why != nil {
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
	if why := s.certificate(key.Public()); why != nil {
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

// certificate says what speaks against a statement whose protected header names its signer's certificate; nil: nothing. public is the key of the
// trust file that signed it; nil: none did, and then the key of the certificate is to have.
func (s *envelope) certificate(public crypto.PublicKey) *Finding {
	signed := public != nil
	if !signed {
		named := s.Certificate()
		if named == nil {
			return nil
		}
		var err error
		if public, err = evidence.ParsePublicKey(named.RawSubjectPublicKeyInfo); err != nil {
			return nil // a kind of key that is not known here
		}
		if err := s.Check(public); errors.Is(err, evidence.ErrSignature) {
			return contradicted("it was not signed with the key of the certificate that it names")
		} else if err != nil {
			return nil
		}
	}
	switch err := s.CheckCertificate(public); {
	case errors.Is(err, scitt.ErrCertificate):
		return contradicted(err.Error())
	case err != nil && signed:
		return &Finding{Status: NotProved, Rule: "unsupported", Reason: fmt.Sprintf("the certificate that it names: %v", err)}
	}
	return nil
}

func contradicted(how string) *Finding {
	return &Finding{Status: Refuted, Rule: "signature", Reason: "the statement contradicts itself: " + how}
}

// receipt checks a receipt by a log of the trust file. The sizes and places in a receipt are in no signature. So a receipt that holds shows no
// number, and one that does not hold shows nothing: anybody can have put it there, or have changed it.
func (s *envelope) receipt(t *trust.Trust, rc *scitt.Receipt) Receipt {
	got := Receipt{Issuer: evidence.Abbreviate(rc.Issuer), Status: NotProved}
	origin, err := s.received(t, rc)
	switch {
	case errors.Is(err, scitt.ErrUnsupported):
		got.Reason = fmt.Sprintf("not checked: %v", err)
	case err != nil:
		got.Reason = err.Error()
	default:
		got.Status, got.Reason = Proved, fmt.Sprintf("the log %s has the record", origin)
	}
	return got
}

// received returns the log of the trust file that signed a receipt for the record's entry, or scitt.ErrUnsupported, wrapped, if that cannot be checked.
func (s *envelope) received(t *trust.Trust, rc *scitt.Receipt) (origin string, err error) {
	if _, err := rc.Proof(); err != nil {
		return "", fmt.Errorf("%w: %w", scitt.ErrUnsupported, err)
	}
	origin, public := t.LogKey(rc.KeyID)
	if public == nil {
		return "", fmt.Errorf("%w: the trust file names no log with its key", scitt.ErrUnsupported)
	}
	r := s.record
	entry, err := evidence.ParseEntry(rc.Entry)
	switch {
	case err != nil:
		return "", fmt.Errorf("the entry beside its proof: %w", err)
	case entry.Payload != r.Digest || !slices.EqualFunc(entry.Signatures, r.Signatures, slices.Equal[[]byte]):
		return "", errors.New("the entry beside its proof is that of another record")
	case r.Log != nil && string(r.LogEntry(r.Log.LogCounts)) != string(rc.Entry):
		return "", errors.New("the entry beside its proof has other counts than the record")
	case rc.Issuer != scitt.LogIssuer(origin):
		return "", fmt.Errorf("it names the issuer %q, and the key that it names is that of the log %s", evidence.Abbreviate(rc.Issuer), origin)
	}
	if _, err := rc.Check(public, rc.Entry); err != nil {
		return "", fmt.Errorf("the log %s did not sign the root that follows from the entry: %w", origin, err)
	}
	return origin, nil
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
