package card

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"jurat/evidence"
	"jurat/internal/log/keys"
	"jurat/verify"
	"jurat/verify/trust"
)

const ReportFormat = "jurat/card-report/v1"

type Report struct {
	Format     string          `json:"format"`
	Outcome    verify.Status   `json:"outcome"` // see Verify
	Digest     evidence.Digest `json:"digest"`  // of the card without its signatures
	Trust      string          `json:"trust,omitzero"`
	Signatures []Signed        `json:"signatures"`
	Names      *Names          `json:"names,omitzero"`    // what the card says of its agent's records; nil: nothing
	Binding    *Finding        `json:"binding,omitzero"`  // whether that holds; nil: the card says nothing of records
	Log        *Finding        `json:"log,omitzero"`      // whether the log says that the card is this key's; nil: not asked
	SelfIssued bool            `json:"self_issued"`       // the only trusted signatures are by the key that the card names
	Since      string          `json:"since,omitzero"`    // since when the log names this card: the proved time of its event
	SinceBy    string          `json:"since_by,omitzero"` // the authority that proves that time
	Event      string          `json:"event,omitzero"`    // the record id of that event
	NotShown   []string        `json:"does_not_prove"`    //
}

type Finding struct {
	Status verify.Status `json:"status"`
	Rule   string        `json:"rule,omitzero"` // the rule that decided; "": nothing was found
	Reason string        `json:"reason"`
}

type Signed struct {
	Finding
	Algorithm string  `json:"alg"`
	KeyID     string  `json:"kid"`          // as the signature says
	JKU       string  `json:"jku,omitzero"` // never followed
	By        *Signer `json:"by,omitzero"`  // whose key made it, by the trust file
}

// A Signer is an actor whose key the trust file has.
type Signer struct {
	Role    evidence.Role  `json:"role"`
	Name    string         `json:"name"`
	KeyID   evidence.KeyID `json:"key_id"`
	Custody trust.Custody  `json:"custody"`
}

// Events is what a log says of keys: its key events, verified.
type Events struct {
	Report *verify.Report
	Chain  []*evidence.Record // the chain operator-keys, from its beginning
}

// A Reader is what a reader brings. The trust file is prepared, as Parse returns it. The zero Reader trusts nothing.
type Reader struct {
	Trust  *trust.Trust
	At     time.Time // the moment of checking; zero: none is given
	Events *Events   // nil: the log is not asked
}

// maxTries bounds how many keys are tried on the signatures of one card that do not name their key by its id.
const maxTries = 128

var notShown = []string{
	"that what the card says of the agent is correct",
	"when the card was signed",
	"that a card with another digest is not the agent's, too",
}

// Verify checks the signatures of a card, and what it says of its agent's records. The outcome is refuted if anything is refuted. It is proved
// if a key of the trust file made at least one signature, and what was asked about the card's names holds.
func (c *Card) Verify(r Reader) (*Report, error) {
	digest, err := c.Digest()
	if err != nil {
		return nil, err
	}
	if r.Trust == nil {
		r.Trust = new(trust.Trust)
	}
	report := &Report{Format: ReportFormat, Digest: digest, Signatures: []Signed{}, NotShown: notShown}
	if fingerprint, err := r.Trust.Fingerprint(); err == nil && r.Trust.Format != "" {
		report.Trust = fingerprint.String()
	}
	left := maxTries
	for i := range c.Signatures {
		report.Signatures = append(report.Signatures, r.signature(c, &c.Signatures[i], &left))
	}
	names, err := c.Names()
	if report.Names = names; err != nil {
		report.Binding = &Finding{verify.NotProved, "form", err.Error()}
	}
	if names != nil {
		binding := r.binding(report)
		report.Binding = &binding
	}
	if r.Events != nil {
		log := r.log(report)
		report.Log = &log
	}
	report.conclude()
	return report, nil
}

func (r *Report) conclude() {
	r.Outcome = verify.NotProved
	if slices.ContainsFunc(r.Signatures, func(s Signed) bool { return s.Status == verify.Proved }) {
		r.Outcome = verify.Proved
	}
	for _, f := range []*Finding{r.Binding, r.Log} {
		if f != nil && f.Status != verify.Proved && r.Outcome != verify.Refuted {
			r.Outcome = f.Status
		}
	}
	if slices.ContainsFunc(r.Signatures, func(s Signed) bool { return s.Status == verify.Refuted }) {
		r.Outcome = verify.Refuted
	}
}

// signature checks one signature. Whose key made it is for the trust file to say: the header's kid only says where to look.
func (r *Reader) signature(c *Card, s *Signature, left *int) Signed {
	found := Signed{Algorithm: s.Algorithm, KeyID: s.KeyID, JKU: s.JKU}
	algorithm, known := algorithms[jose.SignatureAlgorithm(s.Algorithm)]
	if !known {
		found.Finding = Finding{verify.NotProved, "algorithm", fmt.Sprintf("its algorithm %q checks nothing here", s.Algorithm)}
		return found
	}
	key, err := r.find(c, s, algorithm, left)
	if key == nil {
		found.Finding = Finding{verify.NotProved, "unknown-key", "the trust file has no key that made it"}
		if err != nil {
			found.Finding = Finding{verify.NotProved, "effort", err.Error()}
		}
		return found
	}
	found.By = &Signer{key.Role, key.Name, key.KeyID, key.Custody}
	if err != nil {
		found.Finding = Finding{verify.Refuted, "signature", fmt.Sprintf("it says that it is by the key of %s %q, and it is not: %v", key.Role, key.Name, err)}
		return found
	}
	if found.Finding = r.counts(key); found.Status == verify.Proved {
		found.Reason = fmt.Sprintf("made with the key of %s %q", key.Role, key.Name)
		if key.Custody != trust.ByOwner {
			found.Reason += "; the operator keeps this key and could have signed in its place"
		}
	}
	return found
}

// find looks for the key that made a signature: the one that kid names by its id, or else each key of the algorithm. With an error, the key is
// the one that kid names, and did not make the signature.
func (r *Reader) find(c *Card, s *Signature, algorithm evidence.Algorithm, left *int) (*trust.Key, error) {
	if id, err := evidence.ParseDigest(s.KeyID); err == nil {
		key := r.Trust.Key(evidence.KeyID(id))
		if key == nil {
			return nil, nil
		}
		return key, c.Check(s, key.Public())
	}
	for i := range r.Trust.Keys {
		key := &r.Trust.Keys[i]
		if key.Algorithm != algorithm {
			continue
		}
		if *left--; *left < 0 {
			return nil, fmt.Errorf("its kid %q is no key id, and more than %d keys would have to be tried: give a trust file with fewer keys", s.KeyID, maxTries)
		}
		if c.Check(s, key.Public()) == nil {
			return key, nil
		}
	}
	return nil, nil
}

// counts reports whether a signature by a key counts. Nothing proves when a card was signed, so a key that has ended proves nothing, and
// neither does one that signs only together with another, which has not signed the card.
func (r *Reader) counts(key *trust.Key) Finding {
	switch {
	case !key.Revoked.IsZero():
		return Finding{verify.NotProved, "revoked", "the key is revoked, and nothing proves that it signed before: " + evidence.FormatTime(key.Revoked)}
	case !key.NotAfter.IsZero() && (r.At.IsZero() || r.At.After(key.NotAfter)):
		return Finding{verify.NotProved, "validity", "the key was valid until " + evidence.FormatTime(key.NotAfter) + ", and nothing proves that it signed before"}
	case !key.NotBefore.IsZero() && !r.At.IsZero() && r.At.Before(key.NotBefore):
		return Finding{verify.NotProved, "validity", "the key is valid from " + evidence.FormatTime(key.NotBefore) + " on"}
	case len(key.With) > 0:
		return Finding{verify.NotProved, "second-signature", "the key signs only together with another key, which cannot sign cards"}
	}
	return Finding{Status: verify.Proved}
}

// binding checks what the card says of its agent's records: by the trust file the key is this actor's, and a key that the reader trusts signed
// the card.
func (r *Reader) binding(report *Report) Finding {
	n := report.Names
	key := r.Trust.Key(n.KeyID)
	var others, own int
	for _, s := range report.Signatures {
		switch {
		case s.Status != verify.Proved:
		case s.By.KeyID == n.KeyID:
			own++
		default:
			others++
		}
	}
	switch {
	case key != nil && (key.Role != n.Role || key.Name != n.Name):
		return Finding{verify.Refuted, "actor", fmt.Sprintf("key %s: the card says %s %q, the trust file %s %q", n.KeyID, n.Role, n.Name, key.Role, key.Name)}
	case own+others == 0:
		return Finding{verify.NotProved, "unsigned", "no key of the trust file signed the card that names it"}
	case key == nil:
		return Finding{verify.NotProved, "unknown-key", fmt.Sprintf("the trust file lacks the key %s, which the card says is that of %s %q", n.KeyID, n.Role, n.Name)}
	case n.Log != "" && !slices.Contains(r.Trust.Logs, n.Log):
		return Finding{verify.NotProved, "log", "the trust file does not have the log that the card names"}
	}
	report.SelfIssued = others == 0
	reason := fmt.Sprintf("the card names the key of %s %q, as the trust file does", n.Role, n.Name)
	if report.SelfIssued {
		reason += "; self-issued: this key alone signed the card, so no one else vouches for what it says"
	}
	return Finding{Status: verify.Proved, Reason: reason}
}

// log checks whether the log names this card, in an event of the key that the card names.
func (r *Reader) log(report *Report) Finding {
	if of := r.Events.Report; of.Outcome != verify.Proved {
		return Finding{verify.NotProved, "events", "the key events are not proved; 'jurat verify' says why"}
	}
	history, err := keys.ReadHistory(r.Events.Chain)
	if err != nil {
		return Finding{verify.NotProved, "events", "the key events do not show all that the log says of keys, from the beginning on: " + err.Error()}
	}
	key, finding := named(history, report)
	if key == nil {
		return finding
	}
	report.Event = key.CardRecord
	when := ""
	if at, ok := r.Events.Report.TimeOf(key.CardRecord); ok {
		report.Since, report.SinceBy = evidence.FormatTime(at.Time), at.Authority
		when = " since " + report.Since
	}
	if !key.Revoked.IsZero() || key.Ended(r.At) {
		return Finding{verify.NotProved, "ended", "the log names this card" + when + " for a key that has ended"}
	}
	return Finding{Status: verify.Proved, Reason: fmt.Sprintf("the log names this card%s, by these events: key %s of %s %q", when, key.KeyID, key.Role, key.Name)}
}

// named returns the key whose events name this card. Without one, the finding says why.
func named(history *keys.History, report *Report) (*keys.Key, Finding) {
	n := report.Names
	if n == nil {
		i := slices.IndexFunc(history.Keys(), func(k *keys.Key) bool { return k.Card == report.Digest })
		if i < 0 {
			return nil, Finding{verify.NotProved, "card", "no key event of the log names this card"}
		}
		return history.Keys()[i], Finding{}
	}
	key := history.Key(n.KeyID)
	switch {
	case key == nil:
		return nil, Finding{verify.NotProved, "card", "the log says nothing of the key that the card names"}
	case key.Role != n.Role || key.Name != n.Name:
		return nil, Finding{verify.Refuted, "actor", fmt.Sprintf("key %s: the card says %s %q, the log %s %q", n.KeyID, n.Role, n.Name, key.Role, key.Name)}
	case key.Card.IsZero():
		return nil, Finding{verify.NotProved, "card", "the log names no card for the key that the card names"}
	case key.Card != report.Digest:
		return nil, Finding{verify.NotProved, "card", fmt.Sprintf("the log names another card for this key (digest %s): older, newer, or another's", key.Card)}
	}
	return key, Finding{}
}

// Clashes returns an error if a card names another key, or another actor, than these.
func (c *Card) Clashes(role evidence.Role, name string, ids ...evidence.KeyID) error {
	n, err := c.Names()
	switch {
	case err != nil:
		return err
	case n == nil:
		return nil
	case n.Role != role || n.Name != name:
		return fmt.Errorf("the card is that of %s %q, by its extension %s", n.Role, n.Name, Extension)
	case !slices.Contains(ids, n.KeyID):
		return errors.New("the card names another key: " + n.KeyID.String())
	}
	return nil
}
