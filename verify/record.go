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

// dated is what time stamps and stamped checkpoints prove of when a record existed.
type dated struct {
	*evidence.Record
	at          trust.Proof // as the reader's demands count
	checked     bool        // by a clock that is independent, and about whose certificates revocation was asked
	forged      error       // why a time stamp is a forgery
	doubts      error       // why those that are not prove nothing
	undatable   bool        // a stamp of a checkpoint is forged
	options     *Options
	unqualified *trust.Unqualified // why the time is not qualified; nil: it is, or the reader does not ask
}

// open reports whether no time is proved, and nothing says why.
func (d *dated) open() bool { return !d.at.Proved() && d.forged == nil && !d.undatable }

// Skew is the rule that doubts the time of a record that claims a later time than the proved one. The record may be
// intact.
const Skew = "skew"

// untimed says why there is no time that answers, where it is not as said.
func untimed(at trust.Proof, said string) string {
	if at.Proved() {
		return "no clock that you demand proves its time: the operator's own does not count"
	}
	return said
}

var unlisted = &trust.Unqualified{Rule: "service", Reason: "no authority has stamped it that the trust file took from trusted lists"}

// maxTimestamps bounds the time stamps of a record. The sender of the file controls how many there are.
const maxTimestamps = 128

// date finds out what proves when a record existed, and returns that as it stands in the report, too; nil: nothing.
func (c *check) date(checker *trust.Checker, r *evidence.Record) (*dated, []trust.TimeOf) {
	d := &dated{Record: r, undatable: c.log.forged, options: c.options}
	if !d.undatable {
		c.stamps(checker, d)
	}
	if c.applies(Qualified) && d.at.Qualified == nil {
		d.unqualified = cmp.Or(d.at.Unqualified, unlisted)
	}
	var times []trust.TimeOf
	if d.at.Proved() {
		times = []trust.TimeOf{timeOf(r, d.at)}
		d.at.Demanded = c.options.Need.OfClock()
	}
	if d.checked = d.at.Checked != nil; c.options.Policy == Strict {
		d.at.Demanded, d.at.Independent = true, d.at.Checked
	}
	return d, times
}

func (c *check) stamps(checker *trust.Checker, d *dated) {
	var doubts []error
	if n := len(d.Timestamps); n > maxTimestamps {
		doubts = append(doubts, fmt.Errorf("it has %d time stamps; with more than %d, none is checked", n, maxTimestamps))
	} else {
		for i, stamp := range d.Timestamps {
			t, err := checker.Token(stamp.Token, d.Imprint(), trust.Proof{})
			switch {
			case err == nil:
				d.at.Add(t)
			case trust.Uncheckable(err):
				doubts = append(doubts, fmt.Errorf("time stamp %d: %w", i, err))
			default: // one forged token among good ones is still a forgery
				d.at, d.forged = trust.Proof{}, fmt.Errorf("time stamp %d: %w", i, err)
				return
			}
		}
	}
	if err := c.log.anchorsOf(d.Record, &d.at); err != nil {
		doubts = append(doubts, err)
	}
	d.doubts = errors.Join(doubts...)
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

// signing is one signature of a record, and what the reader's trust file says of its key.
type signing struct {
	*evidence.Record
	place   int
	at      trust.Proof
	options *Options
	trust   *trust.Trust
	key     *trust.Key      // of the trust file; nil: not listed, so that certificates count
	wrong   error           // why the signature is not that of the key that it names
	vouched *trust.Vouching // nil: nothing in the record says whose an unlisted key is, or the signature is wrong
}

// signature holds a signature against the keys and CAs of the trust file.
func (c *check) signature(checker *trust.Checker, r *evidence.Record, place int, at trust.Proof) *signing {
	s := &signing{Record: r, place: place, at: at, options: c.options, trust: c.Trust, key: c.Trust.Key(r.Payload.Signers[place].KeyID)}
	if s.key != nil {
		s.wrong = r.CheckSignatureOf(place, s.key.KeyID, s.key.Public())
		return s
	}
	given, err := trust.ReadCertificates(r, s.signer())
	switch {
	case err != nil:
		s.vouched = &trust.Vouching{Rule: "certificate", Err: err}
	case len(given.Signers) == 0:
	default:
		// The key has the id that the payload names. So it can refute the signature, even if the reader does not
		// trust it.
		if s.wrong = r.CheckSignature(place, given.Key); s.wrong == nil {
			s.vouched = new(checker.Vouch(r, given, at))
		}
	}
	return s
}

func (s *signing) signer() evidence.KeyID { return s.Payload.Signers[s.place].KeyID }

// isActors reports whether the key is that of the actor whom the record names.
func (s *signing) isActors() bool {
	return s.key.Role == s.Payload.Role() && s.key.Name == s.Payload.Actor()
}

func (s *signing) isEarly() bool {
	return s.at.Proved() && !s.key.NotBefore.IsZero() && s.at.Earliest.Time.Before(s.key.NotBefore)
}

// missing lists the keys that the trust file demands besides this one, and that the record does not name.
func (s *signing) missing() []evidence.KeyID {
	return slices.DeleteFunc(slices.Clone(s.key.With), func(id evidence.KeyID) bool {
		return slices.ContainsFunc(s.Payload.Signers, func(by evidence.SignerInfo) bool { return by.KeyID == id })
	})
}

// isUnvouched asks whether it is for this reason that no CA vouches for the key.
func isUnvouched(s *signing, a *asked) {
	switch {
	case !a.speaks(s.vouched.Rule, ofVouching):
	case a.rule == "actor":
		a.refute("it names %s %q as its actor: %v", s.Payload.Role(), s.Payload.Actor(), s.vouched.Err)
	default:
		a.doubt("signed with the key %s: %v", s.signer(), s.vouched.Err)
	}
}

// asked asks the rules of a signature. It notes who the trust file says the signer is, and whether only the operator's clock says that the key counted.
func (e *examined) asked(s *signing) {
	n, by, ownWord := len(e.list), (*trust.Identified)(nil), false
	ask(&e.findings, rulesOfSignature, s.Record, s)
	switch {
	case s.wrong != nil:
	case s.key != nil:
		ask(&e.findings, rulesOfKey, s.Record, s)
		by = s.key.IdentifiedAt(s.at)
		_, ended := s.at.Within(s.key.NotAfter)
		_, begun := s.at.Before(s.key.WithFrom)
		ownWord = ended && !s.key.NotAfter.IsZero() && !s.isEarly() && s.isActors() || begun && len(s.missing()) > 0
	case s.vouched != nil:
		ask(&e.findings, rulesOfCertificate, s.Record, s)
		if ownWord = s.vouched.OwnWord; s.vouched.Rule == "" {
			by = s.vouched.CA.Identified(s.Payload.Role(), s.Payload.Actor(), s.signer())
			by.Revoked = s.vouched.Revoked
			e.vouch(s.vouched.CA.Name, vouched{asked: s.vouched.CA.Asked(), asOf: s.vouched.AsOf, revoked: s.vouched.Revoked})
		}
	}
	if s.wrong == nil {
		ask(&e.findings, rulesOfCustody, s.Record, s)
	}
	if ownWord {
		e.onWord(Authentication)
	}
	if by != nil && !slices.ContainsFunc(e.list[n:], unsure) {
		e.identified = trust.AddIdentified(e.identified, *by)
	}
}

// placed is a record, and the checkpoint of the log in which it is to have a place.
type placed struct {
	*evidence.Record
	log *operator.Checkpoint // nil: none that counts
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

// naming is a record, and one that it names by digest.
type naming struct {
	*evidence.Record
	other *evidence.Record
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

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

// OperatorsClock is the rule of what is proved as far as the operator's clock, and of nothing more.
const OperatorsClock = "operator-clock"

// noteOwnWord says which answers only the operator's clock gives.
func (c *check) noteOwnWord() {
	for _, g := range c.ownWord {
		c.notes[g] += map[Guarantee]string{
			Before:         ", by the operator's clock alone: no independent authority proves that of each",
			Authentication: "; that each signed while its key or certificate counted, only the operator's clock says",
		}[g]
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

// log is the log from which a file says that it was cut, and what its checkpoints show.
type log struct {
	*operator.Checkpoint        // verified; nil: none, or none that counts
	unknown              error  // why there is none that counts
	witnesses            string // which of the reader's witnesses cosigned it, for the report; "": not asked
	unwitnessed          error  // why too few did
	anchors              []opened
	forged               bool // a token of an anchor is
}

// opened is an anchor, a stamped checkpoint, and what it proves: everything that it covers existed by the times that its tokens prove.
type opened struct {
	size   int64 // how many entries it covers
	err    error // why it covers nothing that the reader knows of
	times  []trust.Stamped
	doubts several
	forged error
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

// openLog opens the checkpoint and the anchors of a file.
func (c *check) openLog(checkpoint string, list []evidence.Anchor) {
	tree, err := c.openCheckpoint(checkpoint)
	if c.log.unknown = err; err == nil {
		c.log.Checkpoint = &tree
		c.witnessed(checkpoint)
	}
	for i := range list {
		one := opened{err: err}
		if err == nil {
			one.size, one.err = c.anchored(&list[i])
		}
		one.times, one.doubts, one.forged = c.Anchor(&list[i])
		c.log.forged = c.log.forged || one.forged != nil
		c.log.anchors = append(c.log.anchors, one)
	}
}

// witnessed asks whether enough of the reader's witnesses have cosigned the file's checkpoint. Without witnesses, a
// thief of the log's key could show each reader a different history.
func (c *check) witnessed(checkpoint string) {
	if c.Trust.Quorum == 0 {
		return
	}
	found, err := c.Trust.Witnessed(checkpoint, c.options.At)
	if c.log.unwitnessed = err; err != nil {
		return
	}
	names := make([]string, len(found))
	for i, cosignature := range found {
		names[i] = cosignature.Witness.Name()
	}
	c.log.witnesses = fmt.Sprintf("; %d of the reader's %d witnesses have cosigned it: %s", len(found), len(c.Trust.Witnesses), strings.Join(names, ", "))
}

// anchored returns how many entries of the file's log an anchor covers.
func (c *check) anchored(a *evidence.Anchor) (int64, error) {
	tree, err := c.openCheckpoint(a.Checkpoint)
	if err != nil {
		return 0, err
	}
	small, large := tree, *c.log.Checkpoint
	if small.Size > large.Size {
		small, large = large, small
	}
	proof := operator.Consistency{Origin: c.log.Origin, From: small.Size, To: large.Size}
	for _, node := range a.Consistency {
		proof.Proof = append(proof.Proof, tlog.Hash(node))
	}
	return tree.Size, proof.Check(small, large)
}

// anchorsOf adds what the anchors prove about a record that they cover. None of them is forged.
func (l *log) anchorsOf(r *evidence.Record, at *trust.Proof) error {
	if len(l.anchors) == 0 {
		return nil
	}
	var doubts several
	covered := l.Checkpoint != nil && r.Log != nil && included(r, *l.Checkpoint) == nil
	for _, a := range l.anchors {
		switch {
		case a.err != nil && (l.Checkpoint == nil || covered):
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
