// Package cosigning has a log witnessed in the background. Sealing does not wait for it.
package cosigning

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/witness"
)

const (
	cosignEvery = 2 * time.Second  // interval of checks whether the log has grown
	cosignAgain = 30 * time.Second // after this time, witnesses that did not answer are asked again
	drawAgain   = 10 * time.Minute // and those that did not draw: a witness of another program never does
)

// A Cosigning sends the log's checkpoints to the witnesses, and has them draw which records are to be tried. It is safe for
// concurrent use.
type Cosigning struct {
	Witnesses *witness.Asker
	Ledger    *ledger.Ledger
	Log       *slog.Logger
	Now       func() time.Time

	last  atomic.Pointer[witness.Cosigning] // the last result; nil: no witness was asked yet
	drawn atomic.Pointer[witness.Drawing]   // likewise of draws
}

// Run asks the witnesses until ctx ends: when the log has grown, and again if a witness did not answer.
func (c *Cosigning) Run(ctx context.Context) {
	var asked, drew time.Time
	for {
		if c.due(ctx, asked) {
			asked = c.Now()
			c.once(ctx)
		}
		if c.drawDue(drew) {
			drew = c.Now()
			c.draw(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(cosignEvery):
		}
	}
}

// Missing returns how many blocks were not drawn when the witnesses were last asked.
func (c *Cosigning) Missing() int64 { return c.drawn.Load().Missing() }

func (c *Cosigning) due(ctx context.Context, asked time.Time) bool {
	last := c.last.Load()
	if last == nil {
		return true
	}
	size, err := c.Ledger.Size(ctx)
	return err != nil || size != last.Size || last.Cosigned() < len(last.Answers) && c.Now().Sub(asked) >= cosignAgain
}

// drawDue reports whether the witnesses have cosigned a block that they were not asked to draw, or did not all draw it long ago.
func (c *Cosigning) drawDue(drew time.Time) bool {
	cosigned, drawn := c.last.Load(), c.drawn.Load()
	switch {
	case cosigned == nil || cosigned.Cosigned() == 0:
		return false
	case drawn == nil || cosigned.Size/operator.DrawBlock > drawn.Blocks:
		return true
	}
	return !drawn.Whole() && c.Now().Sub(drew) >= drawAgain
}

func (c *Cosigning) draw(ctx context.Context) {
	now, err := c.Witnesses.Draw(ctx, nil)
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Error("the witnesses did not draw", "error", err)
		}
		return
	}
	before := c.drawn.Swap(now)
	if now == nil {
		return
	}
	for n, a := range now.Answers {
		if changed := before == nil || len(before.Answers) != len(now.Answers) || (before.Answers[n].Err == nil) != (a.Err == nil); a.Err != nil && changed {
			c.Log.Warn("a witness has not drawn all blocks", "witness", a.Name(), "url", a.URL, "why", a.Err, "drawn", a.Blocks, "blocks", now.Blocks)
		}
	}
}

func (c *Cosigning) once(ctx context.Context) {
	now, err := c.Witnesses.Cosign(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Error("the checkpoint was not cosigned", "error", err)
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
			c.Log.Warn("a witness has not cosigned", "witness", a.Name(), "url", a.URL, "why", a.Err, "cosigned", now.Cosigned(), "quorum", now.Quorum)
		} else if changed {
			c.Log.Info("a witness cosigns", "witness", a.Name(), "cosigned", now.Cosigned(), "quorum", now.Quorum)
		}
	}
}
