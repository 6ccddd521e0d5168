package stamping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	"jurat/internal/witness"
	"jurat/timestamp"
)

const (
	catchUpTime = 10 * time.Second // for which a command that does something else stamps what waits
	settleTime  = 30 * time.Second // for storing stamps that were got before the user gave up
)

// An Order says what to ask for.
type Order struct {
	// CatchUp asks only the authorities that answered the last time that this process asked them, each for the oldest
	// records only, and not for long.
	CatchUp  bool
	Progress func(authority string, done, total int64) // told after every time stamp; nil: nobody is told
}

// An Outcome is what came of asking an authority for what waits.
type Outcome struct {
	storage.Owed // what still waits
	Stamped      int64
	Reason       error // why something still waits; nil: nothing does, or it was not asked
}

// A source makes time stamps for records that wait: one for each, in their order. Of an error, what it made before
// counts. It tells after each.
type source func(ctx context.Context, records []ledger.Pending, told func()) ([]evidence.Timestamp, error)

// oneByOne has an authority stamp each record by itself.
func oneByOne(c *stamper) source {
	return func(ctx context.Context, records []ledger.Pending, told func()) ([]evidence.Timestamp, error) {
		var stamps []evidence.Timestamp
		for _, r := range records {
			token, err := c.ask(ctx, r.Record.Imprint())
			if err != nil {
				return stamps, err
			}
			stamps = append(stamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: token})
			told()
		}
		return stamps, nil
	}
}

// Stamp asks authorities for the time stamps that records wait for, adds those that come, and says of each
// authority that something waited for what came of it. Every stamp is verified before it is added, and is added in one
// transaction with the act that speaks of it, so that a crash at any point leaves records that wait, and no more.
func (t *Timekeeper) Stamp(ctx context.Context, config Order) ([]Outcome, error) {
	owing, err := t.Ledger.Owing(ctx)
	if err != nil {
		return nil, err
	}
	var outcomes []Outcome
	for _, owed := range owing {
		o := Outcome{Owed: owed}
		c := t.Stampers.of(owed.Authority)
		switch {
		case c == nil:
			o.Reason = ErrNotConfigured
		case config.CatchUp && c.batch: // it waits for being asked for
		case config.CatchUp:
			err = t.catchUp(ctx, c, &o)
		case c.batch:
			err = t.stampBatches(ctx, c, &o, config.Progress)
		default:
			err = t.stampAll(ctx, c, &o, config.Progress)
		}
		outcomes = append(outcomes, o)
		if err != nil {
			return outcomes, err
		}
	}
	return outcomes, t.stillOwed(ctx, outcomes)
}

// catchUp stamps the oldest records, if the authority answers.
func (t *Timekeeper) catchUp(ctx context.Context, c *stamper, o *Outcome) error {
	answers, failure := c.state()
	if o.Reason = failure; !answers {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	_, err := t.stampPage(bounded, oneByOne(c), o, 0, func() {})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil // the rest is for the next time
	}
	return err
}

// teller counts what is stamped, and tells.
func teller(c *stamper, total int64, progress func(string, int64, int64)) func() {
	done := int64(0)
	return func() {
		done++
		if progress != nil {
			progress(c.name, done, max(done, total))
		}
	}
}

// stampAll stamps everything that waits for an authority, until it fails.
func (t *Timekeeper) stampAll(ctx context.Context, c *stamper, o *Outcome, progress func(string, int64, int64)) error {
	told := teller(c, o.Records, progress)
	for from := int64(0); from >= 0; {
		var err error
		if from, err = t.stampPage(ctx, oneByOne(c), o, from, told); err != nil {
			return err
		}
	}
	return nil
}

// stampPage stamps the first records at the index from and later, and returns the index after them, or -1 when there is
// nothing more to do. That the authority failed is no error: it is the outcome's reason.
func (t *Timekeeper) stampPage(ctx context.Context, by source, o *Outcome, from int64, told func()) (next int64, err error) {
	records, err := t.Ledger.Waiting(ctx, o.Authority, from, operator.MaxLateStamps)
	if err != nil || len(records) == 0 {
		return -1, err
	}
	stamps, failure := by(ctx, records, told)
	settled, err := t.settle(ctx, records, stamps)
	o.Stamped += int64(settled)
	switch {
	case err != nil:
		return -1, err
	case ctx.Err() != nil:
		return -1, ctx.Err()
	case failure != nil:
		o.Reason = failure
		return -1, nil
	case len(stamps) < len(records):
		return -1, nil
	}
	return records[len(records)-1].Index + 1, nil
}

// settle adds the stamps that came, also when the user has given up meanwhile: they may have cost money.
func (t *Timekeeper) settle(ctx context.Context, records []ledger.Pending, stamps []evidence.Timestamp) (int, error) {
	if len(stamps) > len(records) {
		return 0, fmt.Errorf("%d time stamps for %d records", len(stamps), len(records))
	}
	var late []ledger.LateStamp
	for n, stamp := range stamps {
		at, err := stampedFrom(stamp)
		if err != nil {
			return 0, err
		}
		if !fitsClaim(records[n].Record.Payload.Time(), at, t.Now()) {
			continue // it goes on waiting, for one that is later
		}
		late = append(late, ledger.LateStamp{Pending: records[n], Timestamp: stamp})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return t.addLate(ctx, late)
}

// stampedFrom is the earliest time that a stamp proves.
func stampedFrom(stamp evidence.Timestamp) (time.Time, error) {
	if stamp.Kind == evidence.RFC3161 {
		return earliest([][]byte{stamp.Token})
	}
	made, err := timestamp.ParseEvidenceRecord(stamp.Token)
	if err != nil {
		return time.Time{}, err
	}
	return provedBy(made.Tokens()[0]), nil
}

// fitsClaim reports whether a late stamp can be added to a record that claims a time: not while it would take from the record the
// proof that it has. What claims to be later than now, as earlier programs sealed it, has none to lose.
func fitsClaim(claimed, stamped, now time.Time) bool {
	return claimed.Sub(stamped) <= witness.MaxAhead || claimed.Sub(now) > witness.MaxAhead
}

func (t *Timekeeper) addLate(ctx context.Context, late []ledger.LateStamp) (int, error) {
	if len(late) == 0 {
		return 0, nil
	}
	return t.Operator.Settle(ctx, late)
}

// stampBare has the built-in authority stamp the records that wait for another and have no time stamp at all.
func (t *Timekeeper) stampBare(ctx context.Context, authority string) error {
	for from := int64(0); ; {
		records, err := t.Ledger.Waiting(ctx, authority, from, operator.MaxLateStamps)
		if err != nil || len(records) == 0 {
			return err
		}
		var late []ledger.LateStamp
		for _, r := range records {
			from = r.Index + 1
			if len(r.Record.Timestamps) > 0 {
				continue
			}
			token, err := t.Stampers.own.stamp(ctx, r.Record.Imprint())
			if err != nil {
				return err
			}
			late = append(late, ledger.LateStamp{Pending: r, Timestamp: evidence.Timestamp{Kind: evidence.RFC3161, Token: token}, By: BuiltIn})
		}
		if _, err := t.addLate(ctx, late); err != nil {
			return err
		}
	}
}

// stillOwed completes outcomes by what waits now.
func (t *Timekeeper) stillOwed(ctx context.Context, outcomes []Outcome) error {
	owing, err := t.Ledger.Owing(ctx)
	if err != nil {
		return err
	}
	for n := range outcomes {
		o := &outcomes[n]
		o.Records = 0
		for _, owed := range owing {
			if owed.Authority == o.Authority {
				o.Owed = owed
			}
		}
	}
	return nil
}

// InBatches reports whether an authority outside stamps only when it is asked for all that waits for it.
func (t *Timekeeper) InBatches(name string) bool {
	c := t.Stampers.of(name)
	return c != nil && c.batch
}

// Selected reports whether an authority outside is one of those that stamp what is sealed.
func (t *Timekeeper) Selected(name string) bool {
	return slices.Contains(t.Stampers.selected, t.Stampers.of(name))
}
