package stamping

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/log/filestore"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/witness"
	"jurat/timestamp"
)

// A Timekeeper gets the time stamps that records of a log wait for, lets outside authorities stamp the
// log's checkpoints, and renews these stamps before they end. All its fields are required unless their comments say otherwise.
type Timekeeper struct {
	Ledger   *ledger.Ledger
	Operator ledger.Operator // of the same ledger
	Stampers *Stampers
	Files    filestore.Store
	Now      func() time.Time
}

// ErrNobodyOutside says that no outside authority is selected to stamp a checkpoint: of what the operator signed, its own clock proves nothing more.
var ErrNobodyOutside = errors.New("no outside time-stamping authority is selected")

// An Anchored is the result of asking one authority to stamp the log's checkpoint.
type Anchored struct {
	Authority string
	Act       *evidence.Record // the act that logs the token; nil: nothing new to stamp, or Reason says why not
	Size      int64            // how many records the stamped checkpoint covers
	Reason    error            // why there is no stamp
}

// Anchor asks each selected outside authority to stamp a checkpoint over the whole log. If an authority has stamped it already, nothing is
// added. Each token is verified before it is kept. If an authority does not answer, Reason says so, and the next call asks it again. All
// authorities get the same checkpoint, so records that are sealed meanwhile wait for the next call. Witnesses need not have cosigned it: it
// shows a time, and what it is consistent with shows the order. Anchor returns ErrNobodyOutside if no authority is selected.
func (t *Timekeeper) Anchor(ctx context.Context) ([]Anchored, error) {
	if len(t.Stampers.selected) == 0 {
		return nil, ErrNobodyOutside
	}
	checkpoint, err := t.Ledger.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	var all []Anchored
	for _, c := range t.Stampers.selected {
		a, err := t.anchor(ctx, c, checkpoint)
		if err != nil {
			return all, err
		}
		all = append(all, a)
	}
	return all, nil
}

// anchor asks an authority to stamp a checkpoint, and logs the token.
func (t *Timekeeper) anchor(ctx context.Context, c *Client, checkpoint string) (Anchored, error) {
	a := Anchored{Authority: c.name}
	left, err := t.Ledger.Unanchored(ctx, c.name, checkpoint)
	if err != nil || left == "" {
		return a, err
	}
	if a.Size, err = t.Ledger.SizeAt(ctx, left); err != nil {
		return a, err
	}
	token, err := c.ask(ctx, sha256.Sum256([]byte(left)))
	if ctx.Err() != nil {
		return a, ctx.Err()
	}
	if err != nil {
		a.Reason = err
		return a, nil
	}
	// A crash before this loses the token. The next call asks the authority again.
	a.Act, err = t.Operator.Anchor(ctx, operator.CheckpointStampBody{Authority: c.name, Checkpoint: left, Token: token})
	return a, err
}

// RenewConfig says which stamped checkpoints to renew, and by whom.
type RenewConfig struct {
	Before time.Time // renew those whose tokens rest on certificates that end before this time
	TSA    string    // the authority that stamps, by name or URL; "": the first outside authority, or the built-in one if there is none
}

// Renewed is the result of a renewal.
type Renewed struct {
	Authority string
	Renewed   int64 // stamped checkpoints
	Foreign   int64 // those that could not be judged: their last tokens are damaged, or from authorities that are not configured
}

// ErrEndsTooEarly says that the authority's own certificates end before the time until which the renewed stamps must last.
var ErrEndsTooEarly = errors.New("its own certificates end before that")

// Renew renews stamped checkpoints before the certificates of their last tokens end: a new token covers the checkpoint and all its tokens, and
// an act logs it. What was renewed is not renewed again, so the caller may interrupt Renew at any point and repeat it.
//
// The errors include ErrNotConfigured and ErrEndsTooEarly. If an error occurs, the result says what was renewed before it.
func (t *Timekeeper) Renew(ctx context.Context, config RenewConfig) (result Renewed, err error) {
	defer fault.While(&err, "renewing time stamps")
	r := &renewer{Timekeeper: t, before: config.Before, roots: []*x509.Certificate{t.Stampers.own.Root}, asks: t.Stampers.own.stamp}
	r.result.Authority = BuiltIn
	found := config.TSA == BuiltIn
	for _, c := range t.Stampers.outside {
		r.roots = append(r.roots, c.roots...)
		if !found && (config.TSA == "" || c.name == config.TSA || c.url == config.TSA) {
			r.result.Authority, r.asks, found = c.name, c.ask, true
		}
	}
	if !found && config.TSA != "" {
		return Renewed{}, fmt.Errorf("%q: %w", config.TSA, ErrNotConfigured)
	}
	anchors, err := t.Ledger.Anchors(ctx)
	for i := 0; err == nil && i < len(anchors); i++ {
		err = r.renew(ctx, &anchors[i])
	}
	return r.result, err
}

// A renewer is a renewal in progress.
type renewer struct {
	*Timekeeper
	before time.Time
	result Renewed
	roots  []*x509.Certificate
	asks   func(context.Context, [32]byte) ([]byte, error)
}

// renew renews a stamped checkpoint if it is due.
func (r *renewer) renew(ctx context.Context, a *evidence.Anchor) error {
	ends, known, err := r.ends(a)
	if err == nil && !known {
		r.result.Foreign++
	}
	if err != nil || !known || !ends.Before(r.before) {
		return err
	}
	imprints, err := a.Imprints()
	if err != nil {
		return err
	}
	token, err := r.asks(ctx, imprints[len(a.Timestamps)])
	if err != nil {
		return err
	}
	body := operator.CheckpointStampBody{Authority: r.result.Authority, Checkpoint: a.Checkpoint, Renews: a.Timestamps, Token: token}
	made := body.Anchor()
	switch ends, known, err = r.ends(&made); {
	case err != nil:
		return err
	case !known:
		return fmt.Errorf("%s: its token cannot be verified", r.result.Authority)
	case ends.Before(r.before):
		return fmt.Errorf("%s: %w: on %s, and what it renews is to last until %s", r.result.Authority, ErrEndsTooEarly,
			ends.UTC().Format(time.DateOnly), r.before.UTC().Format(time.DateOnly))
	}
	if _, err = r.Operator.Anchor(ctx, body); err == nil {
		r.result.Renewed++
	}
	return err
}

// ends returns when the last token of the last generation ends, with a certificate in its chain. known is false if no root verifies any of them.
func (r *renewer) ends(a *evidence.Anchor) (ends time.Time, known bool, err error) {
	last := len(a.Timestamps) - 1
	imprints, err := a.Imprints()
	if err != nil {
		return ends, false, err
	}
	for _, der := range a.Timestamps[last] {
		unverified, err := timestamp.Parse(der)
		if err != nil {
			continue // another of them may be good
		}
		for _, root := range r.roots {
			token, err := unverified.Verify(imprints[last], timestamp.Options{Roots: []*x509.Certificate{root}})
			if err != nil {
				continue
			}
			end := slices.MinFunc(token.Chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
			if !known || end.After(ends) {
				ends, known = end, true
			}
		}
	}
	return ends, known, nil
}

const (
	catchUpTime = 10 * time.Second // how long a command with another purpose may spend on stamping
	settleTime  = 30 * time.Second // how long storing received stamps may take after the user cancelled
)

// An Order says which time stamps to ask for.
type Order struct {
	// CatchUp asks only the authorities that answered this process's last request, each for the oldest records, and for a short time.
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
		if c := t.Stampers.of(owed.Authority); c == nil {
			o.Reason = ErrNotConfigured
		} else if config.CatchUp {
			err = t.catchUp(ctx, c, &o)
		} else {
			for from := int64(0); from >= 0 && err == nil; {
				from, err = t.stampPage(ctx, c, &o, from, config.Progress)
			}
		}
		outcomes = append(outcomes, o)
		if err != nil {
			return outcomes, err
		}
	}
	for n := range outcomes {
		now, err := t.owed(ctx, outcomes[n].Authority)
		if err != nil {
			return outcomes, err // with what waited before: less than that is not known
		}
		outcomes[n].Owed = now
	}
	return outcomes, nil
}

// owed says which records wait for an authority now.
func (t *Timekeeper) owed(ctx context.Context, authority string) (storage.Owed, error) {
	owing, err := t.Ledger.Owing(ctx)
	if i := slices.IndexFunc(owing, func(o storage.Owed) bool { return o.Authority == authority }); i >= 0 {
		return owing[i], err
	}
	return storage.Owed{Authority: authority}, err
}

// catchUp stamps the oldest records, if the authority answered last time.
func (t *Timekeeper) catchUp(ctx context.Context, c *Client, o *Outcome) error {
	c.mu.Lock()
	answers := c.answered
	o.Reason = c.failure
	c.mu.Unlock()
	if !answers {
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

// stampPage stamps the first waiting records from an index on, and returns the next index; -1: all is done, or the authority failed (o.Reason).
func (t *Timekeeper) stampPage(ctx context.Context, c *Client, o *Outcome, from int64, progress func(string, int64, int64)) (next int64, err error) {
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
	if len(late) == 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return t.Operator.Settle(ctx, late)
}

// fitsClaim reports whether a late stamp may be added to a record that claims a time. A stamp from long before the claimed time would make
// the record's time unproved. Earlier programs sealed records that claim a time in the future: those have no such proof to lose.
func fitsClaim(claimed, stamped, now time.Time) bool {
	return claimed.Sub(stamped) <= witness.MaxAhead || claimed.Sub(now) > witness.MaxAhead
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
		if len(late) == 0 {
			continue
		}
		if _, err := t.Operator.Settle(ctx, late); err != nil {
			return err
		}
	}
}

func stampOf(token []byte) evidence.Timestamp {
	return evidence.Timestamp{Kind: evidence.RFC3161, Token: token}
}

// Selected reports whether an outside authority is one of those that stamp new records.
func (t *Timekeeper) Selected(name string) bool {
	return slices.Contains(t.Stampers.selected, t.Stampers.of(name))
}
