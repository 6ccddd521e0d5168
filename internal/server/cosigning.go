package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"jurat/internal/ledger"
	"jurat/internal/witness"
)

const (
	cosignEvery = 2 * time.Second  // interval of checks whether the log has grown
	cosignAgain = 30 * time.Second // after this time, witnesses that did not answer are asked again
)

// A cosigner sends the log's checkpoints to the witnesses. It is safe for concurrent use.
type cosigner struct {
	witnesses *witness.Asker
	ledger    *ledger.Ledger
	log       *slog.Logger
	now       func() time.Time

	last atomic.Pointer[witness.Cosigning] // the last result; nil: no witness was asked yet
}

// run asks the witnesses until ctx ends: when the log has grown, and again if a witness did not answer.
func (c *cosigner) run(ctx context.Context) {
	var asked time.Time
	for {
		if c.due(ctx, asked) {
			asked = c.now()
			c.once(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(cosignEvery):
		}
	}
}

func (c *cosigner) due(ctx context.Context, asked time.Time) bool {
	last := c.last.Load()
	if last == nil {
		return true
	}
	size, err := c.ledger.Size(ctx)
	return err != nil || size != last.Size || last.Cosigned() < len(last.Answers) && c.now().Sub(asked) >= cosignAgain
}

func (c *cosigner) once(ctx context.Context) {
	now, err := c.witnesses.Cosign(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Error("the checkpoint was not cosigned", "error", err)
		}
		return
	}
	before := c.last.Swap(now)
	if now == nil {
		return
	}
	for n, a := range now.Answers {
		changed := before == nil || len(before.Answers) != len(now.Answers) || (before.Answers[n].Err == nil) != (a.Err == nil)
		if a.Err != nil && changed {
			c.log.Warn("a witness has not cosigned", "witness", a.Name(), "url", a.URL, "why", a.Err, "cosigned", now.Cosigned(), "quorum", now.Quorum)
		} else if changed {
			c.log.Info("a witness cosigns", "witness", a.Name(), "cosigned", now.Cosigned(), "quorum", now.Quorum)
		}
	}
}
