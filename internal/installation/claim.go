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

// ErrClaimed says that a process, this one or another, is at work on a trial.
var ErrClaimed = lock.ErrTaken

// Claim keeps every other process from acting in a trial until release is called or this process ends, however it ends. The
// trial is conducted in the context that it returns: see lock.Claims.
func (i *Installation) Claim(ctx context.Context, trialID string) (held context.Context, release func(), err error) {
	return i.claims.Claim(ctx, trialID)
}

// Claimed reports whether somebody is at work on a trial. To ask claims nothing: whoever is about to begin is not kept from it.
func (i *Installation) Claimed(ctx context.Context, trialID string) (bool, error) {
	return i.claims.Claimed(ctx, trialID)
}

// Vouch finds out whether records are as this installation's own keys signed them. The log notices by itself that a
// record changed which one of its checkpoints covers; of what came after the last one only the signatures speak.
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
