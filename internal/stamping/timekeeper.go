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
	"jurat/internal/fault"
	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/timestamp"
	"jurat/verify/trust"
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

// ErrNobodyOutside says that no outside authority is selected to stamp a checkpoint. The operator's own clock would prove nothing more
// about what the operator signed.
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
func (t *Timekeeper) anchor(ctx context.Context, c *stamper, checkpoint string) (Anchored, error) {
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
	r, err := t.newRenewer(config)
	if err != nil {
		return Renewed{}, err
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

func (t *Timekeeper) newRenewer(config RenewConfig) (*renewer, error) {
	r := &renewer{Timekeeper: t, before: config.Before, roots: []*x509.Certificate{t.Stampers.own.Root}}
	for _, c := range t.Stampers.outside {
		r.roots = append(r.roots, c.roots...)
	}
	r.result.Authority, r.asks = BuiltIn, t.Stampers.own.stamp
	for _, c := range t.Stampers.outside {
		if config.TSA == "" || c.name == config.TSA || c.url == config.TSA {
			r.result.Authority, r.asks = c.name, c.ask
			return r, nil
		}
	}
	if config.TSA != "" && config.TSA != BuiltIn {
		return nil, fmt.Errorf("%q: %w", config.TSA, ErrNotConfigured)
	}
	return r, nil
}

// renew renews a stamped checkpoint if it is due.
func (r *renewer) renew(ctx context.Context, a *evidence.Anchor) error {
	ends, known, err := r.ends(a)
	if err != nil {
		return err
	}
	if !known {
		r.result.Foreign++
		return nil
	}
	if !ends.Before(r.before) {
		return nil
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
	if _, err := r.Operator.Anchor(ctx, body); err != nil {
		return err
	}
	r.result.Renewed++
	return nil
}

// ends returns when the last token of the last generation ends: the earliest end of a certificate in its chain. known is false if no root verifies
// any of them.
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
			if end := earliestEnd(token.Chain); !known || end.After(ends) {
				ends, known = end, true
			}
		}
	}
	return ends, known, nil
}

func earliestEnd(chain []*x509.Certificate) time.Time {
	return slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// ClockOf returns whose clock the authority of this name uses.
func ClockOf(name string) trust.Clock {
	if name == BuiltIn {
		return trust.OperatorClock
	}
	return trust.Independent
}
