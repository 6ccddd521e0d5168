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
	"jurat/internal/kit/plural"
	"jurat/timestamp"
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
	if key.Custody != trust.ByOwner {
		c.doubt(NonRepudiation, "custody", r, "the operator keeps the key of %s %q and could have signed in its place", key.Role, key.Name)
	}
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

func (c *check) falseSignature(r *evidence.Record, i int, err error) {
	c.refute(Content, "signature", r, "signature %d: %v", i, err)
	c.author(Refuted, "signature", r, "signature %d was not made with the key that it names", i)
}

// author adds a finding about who signed.
func (c *check) author(s Status, rule string, r *evidence.Record, format string, args ...any) {
	c.add(Authentication, s, rule, r, format, args...)
	c.add(NonRepudiation, s, rule, r, format, args...)
}

// notRevoked checks whether the record was signed before the key was revoked. The operator's own clock does not prove
// that: a thief of the key may have that clock, too.
func (c *check) notRevoked(r *evidence.Record, key *trust.Key, at trust.Proof) {
	if key.Revoked.IsZero() || at.IndependentlyBefore(key.Revoked) {
		return
	}
	c.author(NotProved, "revoked", r, "the key of %s %q is revoked from %s on, and no independent authority proves that it was signed before",
		key.Role, key.Name, utc(key.Revoked))
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
		if open {
			c.author(NotProved, "second-signature", r, "the key %s must sign, too, from %s on; it did not, and %s",
				id, utc(key.WithFrom), untimed(at, "the time of signing is not proved"))
			continue
		}
		c.author(Refuted, "second-signature", r, "the key of %s %q signs only together with the key %s, which did not sign", key.Role, key.Name, id)
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
	c.doubt(Content, "unknown-key", r, "%s", reason)
	c.author(NotProved, "unknown-key", r, "%s", reason)
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
	return tlog.CheckRecord(proof, tree.Size, tlog.Hash(tree.Root), r.Log.Index, tlog.RecordHash(r.LogEntry(r.Log.Counts())))
}

// links compares what a record says that it follows and saw with their places in the log: a record cannot have seen a
// later one.
func (c *check) links() {
	for _, r := range c.all {
		for _, digest := range digestsIn(r) {
			other := c.graph.ByDigest[digest]
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
		c.doubt(Content, found.Rule, r, "signed with the key %s: %v", signer.KeyID, found.Err)
		c.author(NotProved, found.Rule, r, "signed with the key %s: %v", signer.KeyID, found.Err)
		return nil
	case "actor":
		c.author(Refuted, found.Rule, r, "it names %s %q as its actor: %v", p.Role(), p.Actor(), found.Err)
	case "revoked", "revocation":
		c.author(NotProved, found.Rule, r, "signed with the key %s: %v", signer.KeyID, found.Err)
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
		c.doubt(NonRepudiation, "custody", r, "the trust file says that the operator keeps the keys that %s certifies: "+
			"the operator could have signed in place of %s %q", found.CA.Name, p.Role(), p.Actor())
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

// timeOf returns a proof in the form of the report.
func timeOf(r *evidence.Record, p trust.Proof) trust.TimeOf {
	t := trust.TimeOf{Record: recordName(r), ProvedTime: *p.Earliest, Qualified: p.Qualified}
	if t.Asked = false; p.Earliest.Clock != trust.Independent && p.Independent != nil { // Asked is not for reports
		t.Independent = new(*p.Independent)
		t.Independent.Asked = false
	}
	return t
}

// time checks what authorities prove about when the signatures existed.
func (c *check) time(r *evidence.Record) trust.Proof {
	if c.anchors.forged {
		return trust.Proof{}
	}
	var at trust.Proof
	if n := len(r.Timestamps); n > maxTimestamps {
		return c.orByAnchors(r, at, []error{fmt.Errorf("it has %d time stamps; with more than %d, none is checked", n, maxTimestamps)})
	}
	doubts := make([]error, len(r.Timestamps))
	for i, stamp := range r.Timestamps {
		t, err := c.Token(stamp.Token, r.Imprint(), trust.Proof{})
		switch {
		case err == nil:
			at.Add(t)
		case trust.Uncheckable(err):
			doubts[i] = fmt.Errorf("time stamp %d: %w", i, err)
		default: // one forged token among good ones is still a forgery
			c.refute(Time, "token", r, "time stamp %d: %v", i, err)
			return trust.Proof{}
		}
	}
	return c.orByAnchors(r, at, doubts)
}

// maxTimestamps bounds the time stamps of a record. The sender of the file controls how many there are.
const maxTimestamps = 128

// orByAnchors adds what stamped checkpoints prove, and sums up.
func (c *check) orByAnchors(r *evidence.Record, at trust.Proof, doubts []error) trust.Proof {
	if err := c.byAnchors(r, &at); err != nil {
		doubts = append(doubts, err)
	}
	if !at.Proved() {
		if err := errors.Join(doubts...); err != nil {
			c.doubt(Time, trust.Doubtful(err), r, "%v", err)
		} else {
			c.doubt(Time, "pending", r, "pending since %s, the time that it claims: no authority has stamped it yet", r.Payload.Timestamp)
		}
		return at
	}
	c.times = append(c.times, timeOf(r, at))
	// A record may claim any earlier time, because it can be stamped late, and no later one: it is signed after its act.
	if claimed := r.Payload.Time(); claimed.Sub(at.Earliest.Time) > trust.MaxSkew {
		c.doubt(Time, Skew, r, "it claims %s, and existed at %s: one of the two clocks is wrong", r.Payload.Timestamp, utc(at.Earliest.Time))
	}
	at.Demanded = c.options.Need.OfClock()
	return at
}

// Skew is the rule that doubts the time of a record that claims a later time than the proved one. The record may be
// intact.
const Skew = "skew"

// before checks whether the record existed before the moment that the reader asks about.
func (c *check) before(r *evidence.Record, at trust.Proof) {
	moment := c.options.Before
	existed, ownWord := at.Before(moment)
	switch by := at.By(); {
	case moment.IsZero():
	case by == nil:
		c.doubt(Before, "time", r, "%s", untimed(at, "its time is not proved"))
	case !existed && at.Demanded:
		c.doubt(Before, "time", r, "the earliest proof by an independent clock that it existed is of %s, not before %s", utc(by.Time), utc(moment))
	case !existed:
		c.doubt(Before, "time", r, "the earliest proof that it existed is of %s, not before %s", utc(by.Time), utc(moment))
	case ownWord:
		c.onWord(Before)
	}
}

// untimed says why there is no time that answers, where it is not as said.
func untimed(at trust.Proof, said string) string {
	if at.Proved() {
		return "no clock that you demand proves its time: the operator's own does not count"
	}
	return said
}

// OperatorsClock is the rule of what is proved as far as the operator's clock, and of nothing more.
const OperatorsClock = "operator-clock"

// onWord notes that an answer is proved only as far as the operator's clock.
func (c *check) onWord(g Guarantee) {
	if !slices.Contains(c.ownWord, g) {
		c.ownWord = append(c.ownWord, g)
	}
}

// noteOwnWord says which answers only the operator's clock gives.
func (c *check) noteOwnWord() {
	for _, g := range c.ownWord {
		c.notes[g] += map[Guarantee]string{
			Before:         ", by the operator's clock alone: no independent authority proves that of each",
			Authentication: "; that each signed while its key or certificate counted, only the operator's clock says",
		}[g]
	}
}

// qualified checks whether a qualified service has stamped the record.
func (c *check) qualified(r *evidence.Record, at trust.Proof) {
	switch {
	case !c.applies(Qualified) || at.Qualified != nil:
	case at.Unqualified != nil:
		c.doubt(Qualified, at.Unqualified.Rule, r, "%s", at.Unqualified.Reason)
	default:
		c.doubt(Qualified, "service", r, "no authority has stamped it that the trust file took from trusted lists")
	}
}

// noteQualified names the lists that make the times qualified.
func (c *check) noteQualified() {
	lists := map[string]bool{}
	var last *trust.Qualified
	for _, t := range c.times {
		if q := t.Qualified; q != nil {
			lists[fmt.Sprintf("%s number %d, issued %s", q.Territory, q.List.Sequence, utc(q.List.Issued))] = true
			last = q
		}
	}
	names := strings.Join(slices.Sorted(maps.Keys(lists)), "; ")
	c.notes[Qualified] = "stamped by services that were qualified then, by the trusted lists of " + names
	if len(c.times) == 1 && last != nil {
		c.notes[Qualified] = fmt.Sprintf("stamped at %s by %s of %q, a service that was qualified then, by the trusted list of %s", utc(last.Time), last.Authority, last.TSP, names)
	}
}

// noteTimes reports whose clock the proof of time rests on.
func (c *check) noteTimes() {
	own, witnessed, independent := 0, 0, (*trust.ProvedTime)(nil)
	for _, t := range c.times {
		if t.Clock == trust.OperatorClock {
			own++
		}
		if t.Independent != nil {
			witnessed, independent = witnessed+1, t.Independent
		}
	}
	note := "stamped by time-stamping authorities that the reader trusts"
	if own > 0 {
		note = "stamped by the operator's own authority: time is proved only as far as the operator's clock and word"
	}
	switch {
	case own == 1 && witnessed == 1:
		note = fmt.Sprintf("it existed by %s, as stamped by %s, whose clock is independent; the operator's own authority stamped an earlier time, which is "+
			"proved only as far as the operator's clock and word", utc(independent.Time), independent.Authority)
	case witnessed > 0:
		note += fmt.Sprintf("; for %d of these %d records independent authorities prove a later time, too", witnessed, own)
	}
	if c.Unasked {
		note += "; the revocation status of their certificates was not checked"
	}
	c.notes[Time] = note
	c.noteOwnWord()
	c.noteQualified()
}

// anchors are the stamped checkpoints of the checked file: everything that one covers existed by the times that its tokens prove.
type anchors struct {
	list   []opened
	forged bool // a token is
	forked bool // a checkpoint is of another history than the file's
}

// opened is an anchor and what it proves.
type opened struct {
	size   int64 // how many entries it covers
	err    error // why it covers nothing that the reader knows of
	times  []trust.Stamped
	doubts several
}

// several joins errors. Its text is that of the first one, because the report repeats it for each record.
type several []error

func (s several) Error() string {
	if len(s) == 1 {
		return s[0].Error()
	}
	return fmt.Sprintf("%v; %d more of them prove nothing either", s[0], len(s)-1)
}

func (s several) Unwrap() []error { return s }

// openAnchors checks what the anchors of a file prove. unknown says why the file has no checkpoint that counts; nil: it has.
func (c *check) openAnchors(list []evidence.Anchor, unknown error) {
	for i := range list {
		one := opened{err: unknown}
		if unknown == nil {
			one.size, one.err = c.anchored(&list[i])
		}
		if errors.Is(one.err, operator.ErrFork) && !c.anchors.forked {
			c.anchors.forked = true
			c.placed = append(c.placed, Finding{Guarantee: Order, Status: Refuted, Rule: "fork", Reason: fmt.Sprintf("stamped checkpoint %d: %v", i, one.err)})
		}
		times, doubts, err := c.Anchor(&list[i])
		if err != nil {
			c.refute(Time, "token", nil, "stamped checkpoint %d: %v", i, err)
			c.anchors.forged = true
			continue
		}
		one.times, one.doubts = times, doubts
		c.anchors.list = append(c.anchors.list, one)
	}
}

// anchored returns how many entries of the file's log an anchor covers.
func (c *check) anchored(a *evidence.Anchor) (int64, error) {
	tree, err := c.openCheckpoint(a.Checkpoint)
	if err != nil {
		return 0, err
	}
	small, large := tree, *c.log
	if small.Size > large.Size {
		small, large = large, small
	}
	proof := operator.Consistency{Origin: c.log.Origin, From: small.Size, To: large.Size}
	for _, node := range a.Consistency {
		proof.Proof = append(proof.Proof, tlog.Hash(node))
	}
	return tree.Size, proof.Check(small, large)
}

// byAnchors adds what the anchors prove about a record that they cover.
func (c *check) byAnchors(r *evidence.Record, at *trust.Proof) error {
	if len(c.anchors.list) == 0 {
		return nil
	}
	var doubts several
	covered := c.log != nil && r.Log != nil && included(r, *c.log) == nil
	for _, a := range c.anchors.list {
		switch {
		case a.err != nil && (c.log == nil || covered):
			doubts = append(doubts, fmt.Errorf("%w: the time stamp is over a checkpoint, and %w", timestamp.ErrUntrusted, a.err))
		case a.err == nil && covered && r.Log.Index < a.size:
			for _, t := range a.times {
				at.Add(t)
			}
			doubts = append(doubts, a.doubts...)
		}
	}
	if len(doubts) == 0 {
		return nil
	}
	return doubts
}

// witnessed checks whether enough of the reader's witnesses have cosigned the file's checkpoint. Without witnesses, a
// thief of the log's key could show each reader a different history.
func (c *check) witnessed(checkpoint string) {
	if c.Trust.Quorum == 0 {
		return
	}
	found, err := c.Trust.Witnessed(checkpoint, c.options.At)
	switch {
	case errors.Is(err, trust.ErrNotWitnessed):
		c.placed = append(c.placed, Finding{Guarantee: Order, Status: NotProved, Rule: "witnesses", Reason: err.Error()})
	case err != nil:
		c.placed = append(c.placed, Finding{Guarantee: Order, Status: Refuted, Rule: "cosignature", Reason: err.Error()})
	default:
		names := make([]string, len(found))
		for i, cosignature := range found {
			names[i] = cosignature.Witness.Name()
		}
		c.witnesses = fmt.Sprintf("; %d of the reader's %d witnesses have cosigned it: %s", len(found), len(c.Trust.Witnesses), strings.Join(names, ", "))
	}
}
