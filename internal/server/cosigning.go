package server

import (
	"context"
	"sync/atomic"
	"time"

	"jurat/evidence/operator"
	"jurat/internal/witness"
)

const (
	cosignEvery = 2 * time.Second  // interval of checks whether the log has grown
	cosignAgain = 30 * time.Second // after this time, witnesses that did not answer are asked again
	drawAgain   = 10 * time.Minute // and those that did not draw: a witness of another program never does
)

// cosigning sends the log's checkpoints to the witnesses, in the background, and has them draw which records are to be tried. Sealing does not
// wait for it.
type cosigning struct {
	server *Server
	last   atomic.Pointer[witness.Cosigning] // the last result; nil: no witness was asked yet
	drawn  atomic.Pointer[witness.Drawing]   // likewise of draws
}

// run asks the witnesses until ctx ends: when the log has grown, and again if a witness did not answer.
func (c *cosigning) run(ctx context.Context) {
	var asked, drew time.Time
	for {
		if c.due(ctx, asked) {
			asked = c.server.config.Now()
			c.once(ctx)
		}
		if c.drawDue(drew) {
			drew = c.server.config.Now()
			c.draw(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(cosignEvery):
		}
	}
}

func (c *cosigning) due(ctx context.Context, asked time.Time) bool {
	last := c.last.Load()
	if last == nil {
		return true
	}
	size, err := c.server.config.Installation.Ledger.Size(ctx)
	return err != nil || size != last.Size || last.Cosigned() < len(last.Answers) && c.server.config.Now().Sub(asked) >= cosignAgain
}

// drawDue reports whether the witnesses have cosigned a block that they were not asked to draw, or did not all draw it long ago.
func (c *cosigning) drawDue(drew time.Time) bool {
	cosigned, drawn := c.last.Load(), c.drawn.Load()
	switch {
	case cosigned == nil || cosigned.Cosigned() == 0:
		return false
	case drawn == nil || cosigned.Size/operator.DrawBlock > drawn.Blocks:
		return true
	}
	return !drawn.Whole() && c.server.config.Now().Sub(drew) >= drawAgain
}

func (c *cosigning) draw(ctx context.Context) {
	now, err := c.server.config.Installation.Witnesses.Draw(ctx, nil)
	if err != nil {
		if ctx.Err() == nil {
			c.server.config.Log.Error("the witnesses did not draw", "error", err)
		}
		return
	}
	before := c.drawn.Swap(now)
	if now == nil {
		return
	}
	for n, a := range now.Answers {
		if changed := before == nil || len(before.Answers) != len(now.Answers) || (before.Answers[n].Err == nil) != (a.Err == nil); a.Err != nil && changed {
			c.server.config.Log.Warn("a witness has not drawn all blocks", "witness", a.Name(), "url", a.URL, "why", a.Err, "drawn", a.Blocks, "blocks", now.Blocks)
		}
	}
}

func (c *cosigning) once(ctx context.Context) {
	now, err := c.server.config.Installation.Witnesses.Cosign(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.server.config.Log.Error("the checkpoint was not cosigned", "error", err)
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
			c.server.config.Log.Warn("a witness has not cosigned", "witness", a.Name(), "url", a.URL, "why", a.Err, "cosigned", now.Cosigned(), "quorum", now.Quorum)
		} else if changed {
			c.server.config.Log.Info("a witness cosigns", "witness", a.Name(), "cosigned", now.Cosigned(), "quorum", now.Quorum)
		}
	}
}
