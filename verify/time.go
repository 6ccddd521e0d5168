package verify

import (
	"errors"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/verify/trust"
)

// timeOf is a proof as the report has it.
func timeOf(r *evidence.Record, p trust.Proof) trust.TimeOf {
	t := trust.TimeOf{Record: recordName(r), ProvedTime: *p.Earliest}
	if p.Earliest.Clock != trust.Independent {
		t.Independent = p.Independent
	}
	return t
}

// time asks what authorities say of when the signatures existed. Evidence records come first, as they can show that a
// token is older than the loss of the key that made it.
func (c *check) time(r *evidence.Record) trust.Proof {
	if c.checkpoint.forged {
		return trust.Proof{}
	}
	var at trust.Proof
	if n := len(r.Timestamps); n > maxTimestamps {
		return c.orByCheckpoint(r, at, []error{fmt.Errorf("it has %d time stamps: of more than %d none is looked at", n, maxTimestamps)})
	}
	doubts := make([]error, len(r.Timestamps))
	shown := trust.ShownBy{}
	for _, kind := range []evidence.TimestampKind{evidence.RFC4998, evidence.RFC3161} {
		for i, stamp := range r.Timestamps {
			if stamp.Kind != kind {
				continue
			}
			proved, err := c.Stamp(r, i, shown)
			if err != nil && !trust.Uncheckable(err) { // one forged token among good ones is still a forgery
				c.refute(Time, "token", r, "time stamp %d: %v", i, err)
				return trust.Proof{}
			}
			if err != nil {
				doubts[i] = fmt.Errorf("time stamp %d: %w", i, err)
			}
			for _, t := range proved {
				at.Add(t)
			}
		}
	}
	return c.orByCheckpoint(r, at, doubts)
}

// maxTimestamps is how many time stamps a record or a checkpoint may have to be looked at. The sender of the file chooses how many
// there are, and each evidence record is over the whole payload.
const maxTimestamps = 128

// orByCheckpoint adds what time stamps of the checkpoint prove, and sums up.
func (c *check) orByCheckpoint(r *evidence.Record, at trust.Proof, doubts []error) trust.Proof {
	if err := c.byCheckpoint(r, &at); err != nil {
		doubts = append(doubts, err)
	}
	if !at.Proved() {
		c.untimed(r, errors.Join(doubts...))
		return at
	}
	c.times = append(c.times, timeOf(r, at))
	c.skew(r, at.Earliest.Time)
	return at
}

// Skew is the rule by which the time is not proved of a record that claims a later one than what is proved. The record may be whole all the same.
const Skew = "skew"

// skew compares the two times. A claimed time before the proved one is as it should be, however long before: records
// can be stamped late. But nothing can be signed before it was said.
func (c *check) skew(r *evidence.Record, at time.Time) {
	if claimed := r.Payload.Time(); claimed.Sub(at) > trust.MaxSkew {
		c.doubt(Time, Skew, r, "it claims %s, and existed at %s: one of the two clocks is wrong", r.Payload.Timestamp, utc(at))
	}
}

func (c *check) untimed(r *evidence.Record, doubts error) {
	if doubts == nil {
		c.doubt(Time, "pending", r, "pending since %s, the time that it claims: no authority has stamped it yet", r.Payload.Timestamp)
		return
	}
	c.doubt(Time, trust.Doubtful(doubts), r, "%v", doubts)
}

// before answers whether the record existed before the moment that the reader asks about.
func (c *check) before(r *evidence.Record, at trust.Proof) {
	moment := c.options.Before
	switch {
	case moment.IsZero():
	case !at.Proved():
		c.doubt(Before, "time", r, "its time is not proved")
	case !at.Earliest.Time.Before(moment):
		c.doubt(Before, "time", r, "the earliest proof of its existence is of %s, not before %s", utc(at.Earliest.Time), utc(moment))
	}
}

// noteTimes says whose clock the proof of time rests on.
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
		note += fmt.Sprintf("; by %s, whose clock is independent, it existed by %s", independent.Authority, utc(independent.Time))
	case witnessed > 0:
		note += fmt.Sprintf("; for %d of these %d records independent authorities prove a later time, too", witnessed, own)
	}
	if c.Unasked {
		note += "; that no certificate of theirs was revoked was not asked"
	}
	c.notes[Time] = note
}
