package stamping

import (
	"context"
	"errors"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	"jurat/internal/witness"
)

const (
	catchUpTime = 10 * time.Second // how long a command with another purpose may spend on stamping
	settleTime  = 30 * time.Second // how long storing received stamps may take after the user cancelled
)

// An Order says which time stamps to ask for.
type Order struct {
	// CatchUp asks only the authorities that answered this process's last request. It asks each for the oldest records only, and for a
	// short time.
	CatchUp  bool
	Progress func(authority string, done, total int64) // called after each time stamp; nil: progress is not reported
}

// An Outcome is the result of asking one authority for the stamps that records wait for.
type Outcome struct {
	storage.Owed // the records that still wait
	Stamped      int64
	received     int64
	Reason       error // why records still wait; nil: none does, or the authority was not asked
}

// Stamp asks the authorities for the time stamps that records wait for, and adds them. It returns an outcome for each authority that
// records waited for. Every stamp is verified first. It is added in one transaction with the act that describes it, so after a crash at any
// point a record either has both or still waits. If an authority fails, that is the outcome's reason and not an error.
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
		case config.CatchUp:
			err = t.catchUp(ctx, c, &o)
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

// catchUp stamps the oldest records, if the authority answered last time.
func (t *Timekeeper) catchUp(ctx context.Context, c *stamper, o *Outcome) error {
	answers, failure := c.state()
	if o.Reason = failure; !answers {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	_, err := t.stampPage(bounded, c, o, 0, nil)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil // the next call does the rest
	}
	return err
}

// stampAll stamps all records that wait for an authority, until the authority fails.
func (t *Timekeeper) stampAll(ctx context.Context, c *stamper, o *Outcome, progress func(string, int64, int64)) error {
	for from := int64(0); from >= 0; {
		var err error
		if from, err = t.stampPage(ctx, c, o, from, progress); err != nil {
			return err
		}
	}
	return nil
}

// stampPage stamps the first waiting records at the index from and later. It returns the index after them, or -1 if nothing is left to do.
// If the authority fails, that is the outcome's reason and not an error.
func (t *Timekeeper) stampPage(ctx context.Context, c *stamper, o *Outcome, from int64, progress func(string, int64, int64)) (next int64, err error) {
	records, err := t.Ledger.Waiting(ctx, o.Authority, from, operator.MaxLateStamps)
	if err != nil || len(records) == 0 {
		return -1, err
	}
	var tokens [][]byte
	var failure error
	for _, r := range records {
		var token []byte
		if token, failure = c.ask(ctx, r.Record.Imprint()); failure != nil {
			break
		}
		tokens = append(tokens, token)
		if o.received++; progress != nil {
			progress(c.name, o.received, max(o.received, o.Records))
		}
	}
	settled, err := t.settle(ctx, records, tokens)
	o.Stamped += int64(settled)
	switch {
	case err != nil:
		return -1, err
	case ctx.Err() != nil:
		return -1, ctx.Err()
	case failure != nil:
		o.Reason = failure
		return -1, nil
	}
	return records[len(records)-1].Index + 1, nil
}

// settle adds the received stamps, even if the user has cancelled meanwhile: they may have cost money.
func (t *Timekeeper) settle(ctx context.Context, records []ledger.Pending, tokens [][]byte) (int, error) {
	var late []ledger.LateStamp
	for n, token := range tokens {
		at, err := earliest([][]byte{token})
		if err != nil {
			return 0, err
		}
		if !fitsClaim(records[n].Record.Payload.Time(), at, t.Now()) {
			continue // the record waits for a later stamp
		}
		if fits, err := t.Ledger.Fits(ctx, records[n].Record, at); err != nil {
			return 0, err
		} else if !fits {
			continue // and this one, until its key has begun by that clock, too
		}
		late = append(late, ledger.LateStamp{Pending: records[n], Timestamp: stampOf(token)})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return t.addLate(ctx, late)
}

// fitsClaim reports whether a late stamp may be added to a record that claims a time. A stamp from long before the claimed time would make
// the record's time unproved. Earlier programs sealed records that claim a time in the future: those have no such proof to lose.
func fitsClaim(claimed, stamped, now time.Time) bool {
	return claimed.Sub(stamped) <= witness.MaxAhead || claimed.Sub(now) > witness.MaxAhead
}

func (t *Timekeeper) addLate(ctx context.Context, late []ledger.LateStamp) (int, error) {
	if len(late) == 0 {
		return 0, nil
	}
	return t.Operator.Settle(ctx, late)
}

// stampBare lets the built-in authority stamp the records that wait for another authority and have no time stamp at all.
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
			late = append(late, ledger.LateStamp{Pending: r, Timestamp: stampOf(token), By: BuiltIn})
		}
		if _, err := t.addLate(ctx, late); err != nil {
			return err
		}
	}
}

func stampOf(token []byte) evidence.Timestamp {
	return evidence.Timestamp{Kind: evidence.RFC3161, Token: token}
}

// stillOwed updates the outcomes with the records that wait now.
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

// Selected reports whether an outside authority is one of those that stamp new records.
func (t *Timekeeper) Selected(name string) bool {
	return slices.Contains(t.Stampers.selected, t.Stampers.of(name))
}
