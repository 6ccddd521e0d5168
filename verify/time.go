package verify

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/timestamp"
	"jurat/verify/trust"
)

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
		c.noTime(r, errors.Join(doubts...))
		return at
	}
	c.times = append(c.times, timeOf(r, at))
	c.skew(r, at.Earliest.Time)
	at.Demanded = c.options.Need.OfClock()
	return at
}

// Skew is the rule that doubts the time of a record that claims a later time than the proved one. The record may be
// intact.
const Skew = "skew"

// skew compares the claimed time with the proved one. The claimed time may be any time earlier, because records can
// be stamped late. It cannot be later: a record is signed after its act.
func (c *check) skew(r *evidence.Record, at time.Time) {
	if claimed := r.Payload.Time(); claimed.Sub(at) > trust.MaxSkew {
		c.doubt(Time, Skew, r, "it claims %s, and existed at %s: one of the two clocks is wrong", r.Payload.Timestamp, utc(at))
	}
}

func (c *check) noTime(r *evidence.Record, doubts error) {
	if doubts == nil {
		c.doubt(Time, "pending", r, "pending since %s, the time that it claims: no authority has stamped it yet", r.Payload.Timestamp)
		return
	}
	c.doubt(Time, trust.Doubtful(doubts), r, "%v", doubts)
}

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
