package installation

import (
	"context"
	"fmt"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/verify"
)

const claimsFolder = "claims"

// ErrClaimed says that this process or another one is conducting a trial.
var ErrClaimed = lock.ErrTaken

// Claim claims a trial, so that no other process acts in it until the caller calls release or this process ends. The caller conducts the
// trial in the returned context: see lock.Claims. If another process has the claim, the error has ErrClaimed in its chain.
func (i *Installation) Claim(ctx context.Context, trialID string) (held context.Context, release func(), err error) {
	return i.claims.Claim(ctx, trialID)
}

// Claimed reports whether a process is conducting a trial. Asking does not claim it, and does not hinder a process that claims it.
func (i *Installation) Claimed(ctx context.Context, trialID string) (bool, error) {
	return i.claims.Claimed(ctx, trialID)
}

// Vouch checks that this installation's own keys signed the records as they are now. It returns an error with ledger.ErrDamaged in its
// chain if they did not. The log itself notices a change to a record that a checkpoint covers. For records after the last checkpoint, only
// their signatures can show a change.
func (i *Installation) Vouch(ctx context.Context, records ...*evidence.Record) error {
	trust, err := i.Trust(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		report := verify.Record(r, verify.Options{Trust: trust})
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication} {
			if f := report.Of(g); f.Status != verify.Proved {
				return fmt.Errorf("%w: record %s: %s %s: %s", ledger.ErrDamaged, r.Payload.RecordID, g, f.Status, f.Reason)
			}
		}
	}
	return nil
}
