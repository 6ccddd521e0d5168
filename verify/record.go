package verify

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/plural"
	"jurat/verify/trust"
)

// signature checks who signed, and whether the signature is over the payload. It returns who the trust file says that was; nil: it does not say.
func (c *check) signature(r *evidence.Record, i int, at trust.Proof) *trust.Identified {
	p, signer := &r.Payload, r.Payload.Signers[i]
	key := c.Trust.Key(signer.KeyID)
	if key == nil {
		return c.certified(r, i, at)
	}
	if err := r.CheckSignatureOf(i, key.KeyID, key.Public()); err != nil {
		c.falseSignature(r, i, err)
		return nil
	}
	if key.Role != p.Role() || key.Name != p.Actor() {
		c.refute(Authentication, "actor", r, "it names %s %q as its actor and is signed with the key of %s %q",
			p.Role(), p.Actor(), key.Role, key.Name)
	} else {
		c.valid(r, key, at)
	}
	c.notRevoked(r, key, at)
	c.together(r, key, at)
	c.custody(r, key)
	return key.IdentifiedAt(at)
}

// valid checks whether the key signed within its validity period.
func (c *check) valid(r *evidence.Record, key *trust.Key, at trust.Proof) {
	inTime, ownWord := at.Within(key.NotAfter)
	switch by := at.By(); {
	case at.Proved() && !key.NotBefore.IsZero() && at.Earliest.Time.Before(key.NotBefore):
		c.refute(Authentication, "validity", r, "signed at %s, before the key was valid (%s)", utc(at.Earliest.Time), utc(key.NotBefore))
	case key.NotAfter.IsZero():
	case by == nil:
		c.doubt(Authentication, "validity", r, "the key was valid only until %s, and %s", utc(key.NotAfter), untimed(at, "the time of signing is not proved"))
	case !inTime:
		// A time stamp proves only the latest possible time: the record may have been signed in time and stamped
		// late.
		c.doubt(Authentication, "validity", r, "the key was valid only until %s, and the record is proved to be signed only by %s", utc(key.NotAfter), utc(by.Time))
	case ownWord:
		c.onWord(Authentication)
	}
}

func (c *check) custody(r *evidence.Record, key *trust.Key) {
	if key.Custody != trust.ByOwner {
		c.doubt(NonRepudiation, "custody", r, "the operator keeps the key of %s %q and could have signed in its place", key.Role, key.Name)
	}
}

func (c *check) falseSignature(r *evidence.Record, i int, err error) {
	c.refute(Content, "signature", r, "signature %d: %v", i, err)
	for _, g := range []Guarantee{Authentication, NonRepudiation} {
		c.refute(g, "signature", r, "signature %d was not made with the key that it names", i)
	}
}

// notRevoked checks whether the record was signed before the key was revoked. The operator's own clock does not prove
// that: a thief of the key may have that clock, too.
func (c *check) notRevoked(r *evidence.Record, key *trust.Key, at trust.Proof) {
	if key.Revoked.IsZero() || at.IndependentlyBefore(key.Revoked) {
		return
	}
	for _, g := range []Guarantee{Authentication, NonRepudiation} {
		c.doubt(g, "revoked", r, "the key of %s %q is revoked from %s on, and no independent authority proves that it was signed before",
			key.Role, key.Name, utc(key.Revoked))
	}
}

// together checks whether the keys signed that the trust file demands besides this one. If the record does not name
// them, it was sealed without them, so a forger of this one signature made it. The signatures of named keys are
// checked one by one.
func (c *check) together(r *evidence.Record, key *trust.Key, at trust.Proof) {
	missing := slices.DeleteFunc(slices.Clone(key.With), func(id evidence.KeyID) bool {
		return slices.ContainsFunc(r.Payload.Signers, func(s evidence.SignerInfo) bool { return s.KeyID == id })
	})
	if len(missing) == 0 {
		return
	}
	if existed, ownWord := at.Before(key.WithFrom); existed {
		if ownWord {
			c.onWord(Authentication)
		}
		return
	}
	open := !key.WithFrom.IsZero() && (!at.Proved() || at.Earliest.Time.Before(key.WithFrom))
	for _, id := range missing {
		for _, g := range []Guarantee{Authentication, NonRepudiation} {
			if open {
				c.doubt(g, "second-signature", r, "the key %s must sign, too, from %s on; it did not, and %s",
					id, utc(key.WithFrom), untimed(at, "the time of signing is not proved"))
				continue
			}
			c.refute(g, "second-signature", r, "the key of %s %q signs only together with the key %s, which did not sign",
				key.Role, key.Name, id)
		}
	}
}

func (c *check) unknownKey(r *evidence.Record, signer evidence.SignerInfo) {
	p := &r.Payload
	reason := fmt.Sprintf("the trust file has no key %s", signer.KeyID)
	switch {
	case c.options.Trust == nil:
		reason = "no trust file was given, so no key is trusted"
	case c.Trust.Knows(p.Actor(), p.Role()):
		reason = fmt.Sprintf("signed with the key %s; the trust file has other keys for %s %q", signer.KeyID, p.Role(), p.Actor())
	}
	for _, g := range []Guarantee{Content, Authentication, NonRepudiation} {
		c.doubt(g, "unknown-key", r, "%s", reason)
	}
}

// place checks whether a record has its place in a log that the reader trusts.
func (c *check) place(r *evidence.Record) {
	switch {
	case c.log == nil:
	case r.Log == nil:
		c.doubt(Order, "inclusion", r, "it carries no proof of its place in a log")
	default:
		if err := included(r, *c.log); err != nil {
			c.refute(Order, "inclusion", r, "the log has no such record at index %d: %v", r.Log.Index, err)
		}
	}
}

func (c *check) noteOrder() {
	if c.log != nil {
		c.notes[Order] = fmt.Sprintf("every record stands at its place in the log %s, as its checkpoint of %s says", c.log.Origin, plural.Of(c.log.Size, "entry")) + c.witnesses
	}
}

func (c *check) openCheckpoint(checkpoint string) (operator.Checkpoint, error) {
	if checkpoint == "" {
		return operator.Checkpoint{}, errors.New("the file has no checkpoint of a log")
	}
	tree, err := c.Trust.OpenCheckpoint(checkpoint)
	if errors.Is(err, trust.ErrUnknownLog) && c.options.Trust == nil {
		return tree, errors.New("no trust file was given, so no log is known")
	}
	return tree, err
}

// included checks the audit path from the record's leaf to the checkpoint's root (RFC 9162, section 2.1.3.2).
func included(r *evidence.Record, tree operator.Checkpoint) error {
	if r.Log.Index >= tree.Size {
		return fmt.Errorf("the checkpoint covers %s", plural.Of(tree.Size, "entry"))
	}
	proof := make(tlog.RecordProof, len(r.Log.Proof))
	for i, node := range r.Log.Proof {
		proof[i] = tlog.Hash(node)
	}
	return tlog.CheckRecord(proof, tree.Size, tlog.Hash(tree.Root), r.Log.Index, tlog.RecordHash(r.LogEntry(r.Log.LogCounts)))
}

// links compares what a record says that it follows and saw with their places in the log: a record cannot have seen a
// later one.
func (c *check) links() {
	for _, r := range c.all {
		for _, digest := range digestsIn(r) {
			other := c.byDigest[digest]
			if other == nil {
				continue
			}
			if other.Log != nil && r.Log != nil && other.Log.Index >= r.Log.Index {
				c.refute(Order, "causality", r, "it names record %s, which is later in the log", recordName(other))
			}
			if r.Payload.ActionType.InTrial() && other.Payload.Time().After(r.Payload.Time()) {
				c.refute(Order, "claimed-time", r, "it claims %s, and names record %s, which claims the later time %s",
					r.Payload.Timestamp, recordName(other), other.Payload.Timestamp)
			}
		}
	}
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// certified checks whether a CA of the trust file vouches for a signer whose key the trust file does not list.
func (c *check) certified(r *evidence.Record, i int, at trust.Proof) *trust.Identified {
	p, signer := &r.Payload, r.Payload.Signers[i]
	given, err := trust.ReadCertificates(r, signer.KeyID)
	if err == nil && len(given.Signers) == 0 {
		c.unknownKey(r, signer)
		return nil
	}
	if err == nil {
		// The key has the id that the payload names. So it can refute the signature, even if the reader does not
		// trust it.
		if err := r.CheckSignature(i, given.Key); err != nil {
			c.falseSignature(r, i, err)
			return nil
		}
	}
	found := trust.Vouching{Rule: "certificate", Err: err}
	if err == nil {
		found = c.Vouch(r, given, at)
	}
	switch found.Rule {
	case "certificate", "effort":
		for _, g := range []Guarantee{Content, Authentication, NonRepudiation} {
			c.doubt(g, found.Rule, r, "signed with the key %s: %v", signer.KeyID, found.Err)
		}
		return nil
	case "actor":
		for _, g := range []Guarantee{Authentication, NonRepudiation} {
			c.refute(g, found.Rule, r, "it names %s %q as its actor: %v", p.Role(), p.Actor(), found.Err)
		}
	case "revoked", "revocation":
		for _, g := range []Guarantee{Authentication, NonRepudiation} {
			c.doubt(g, found.Rule, r, "signed with the key %s: %v", signer.KeyID, found.Err)
		}
	default:
		c.vouched[found.CA.Name] = vouched{asked: found.CA.Asked(), asOf: found.AsOf, revoked: found.Revoked}.and(c.vouched[found.CA.Name])
		if c.options.Policy == Strict && !found.CA.Asked() {
			c.doubt(Authentication, "policy", r, "whether the certificates by which %s vouches were revoked was not asked", found.CA.Name)
		}
	}
	if found.OwnWord {
		c.onWord(Authentication)
	}
	if found.CA.Custody != trust.ByOwner {
		c.doubt(NonRepudiation, "custody", r, "the trust file says that the operator keeps the keys that %s certifies: the operator could have signed in place of %s %q",
			found.CA.Name, p.Role(), p.Actor())
	}
	by := found.CA.Identified(p.Role(), p.Actor(), signer.KeyID)
	by.Revoked = found.Revoked
	return by
}

// vouched says how sure it is that the certificates by which a CA vouched were not revoked.
type vouched struct {
	asked bool
	asOf  time.Time // up to then none is known to be revoked; zero: none was asked about

	revoked *trust.Revoked // one that was revoked later; nil: none
}

// and joins what is known of two signers' certificates: the earlier moment counts.
func (v vouched) and(other vouched) vouched {
	v.asked = v.asked || other.asked
	if v.asOf.IsZero() || !other.asOf.IsZero() && other.asOf.Before(v.asOf) {
		v.asOf = other.asOf
	}
	v.revoked = v.revoked.Later(other.revoked)
	return v
}

// noteVouched adds to the report which CAs the proof of authorship rests on.
func (c *check) noteVouched() {
	var asked, unasked []string
	for _, name := range slices.Sorted(maps.Keys(c.vouched)) {
		switch by := c.vouched[name]; {
		case !by.asked:
			unasked = append(unasked, name)
		case by.revoked != nil:
			asked = append(asked, fmt.Sprintf("%s (the certificate of %q was revoked on %s for %s; what it signed existed before, by the stamp of %s)",
				name, by.revoked.Certificate, utc(by.revoked.On), cmp.Or(by.revoked.Reason, "a reason that is not stated"), utc(by.revoked.Existed.Time)))
		case by.asOf.IsZero():
			asked = append(asked, name)
		default:
			asked = append(asked, fmt.Sprintf("%s (not revoked as of %s)", name, utc(by.asOf)))
		}
	}
	if len(asked)+len(unasked) > 0 {
		c.notes[Authentication] += ", or by certificates of " + strings.Join(append(asked, unasked...), ", ")
	}
	if len(unasked) > 0 {
		c.notes[Authentication] += "; the revocation status of these CAs' certificates was not checked: " + strings.Join(unasked, ", ")
	}
}
