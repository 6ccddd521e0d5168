package docket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/reputation"
	"jurat/verify/trust"
)

// What a Cache holds, and of whom it computes nothing: such an agent is for the command, which has time.
const (
	maxViews          = 64
	viewLife          = 10 * time.Minute
	briefLife         = 5 * time.Second // of a view with judgments that are not proved yet: soon witnesses will have cosigned them
	maxRecordsOfAgent = 20_000          // of the agent and of its trials
)

// Errors of a Cache.
var (
	ErrUnknownAgent = errors.New("the log has no record of this agent, and no judgment about one")
	ErrTooMany      = errors.New("the log has too much about this agent for a page")
)

// A ConductAsked is whose view is asked for.
type ConductAsked struct {
	Agent string
	CA    string // as in reputation.Config
}

// A ConductCache computes views of a log by the default policy, and keeps them while the log counts nothing new of the agent, for
// ten minutes at most: a time stamp that comes later, and a key that is revoked, are seen by then. A view says as of when
// it is. One view is computed at a time. A Cache is safe for concurrent use.
type ConductCache struct {
	log   *ledger.Ledger
	now   func() time.Time
	most  int           // MaxRecords, or fewer in tests
	turn  chan struct{} // one element while a view is computed
	mu    sync.Mutex    // guards views
	views map[conductKey]kept
}

type conductKey struct {
	ConductAsked
	trust evidence.Digest
}

type kept struct {
	view *reputation.View
	size int64 // of the log when it was read
	at   time.Time
}

// NewConductCache makes an empty Cache.
func NewConductCache(log *ledger.Ledger, now func() time.Time) *ConductCache {
	return &ConductCache{log: log, now: now, most: maxRecordsOfAgent, turn: make(chan struct{}, 1), views: map[conductKey]kept{}}
}

// View returns the view of an agent, which the caller must not change. take is told the size in bytes of what is verified
// next, and can end the work with an error. View's other errors are those of the ledger, reputation.ErrIdentity, ErrUnknown and ErrTooMany.
func (c *ConductCache) View(ctx context.Context, asked ConductAsked, by *trust.Trust, take func(bytes int64) error) (*reputation.View, error) {
	fingerprint, err := by.Fingerprint()
	if err != nil {
		return nil, err
	}
	k := conductKey{asked, fingerprint}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if v, err := c.fresh(ctx, k); v != nil || err != nil {
		return v, err
	}
	known, err := KnowsAgent(ctx, c.log, asked.Agent)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, ErrUnknownAgent
	}
	if err := c.refuseMany(ctx, asked.Agent); err != nil {
		return nil, err
	}
	at := c.now()
	v, size, err := c.compute(ctx, asked, by, at, take)
	if err == nil {
		c.keep(k, kept{v, size, at})
	}
	return v, err
}

// refuseMany returns ErrTooMany if the agent has too many records of its own, before any is verified.
func (c *ConductCache) refuseMany(ctx context.Context, agent string) error {
	last, err := c.log.LastOfActor(ctx, evidence.RoleAgent, agent, 1)
	if err == nil && len(last) > 0 && last[0].Counts.ActorSeq > int64(c.most) {
		err = fmt.Errorf("%w: %d records, and at most %d can be shown", ErrTooMany, last[0].Counts.ActorSeq, c.most)
	}
	return err
}

// fresh returns the view that was kept, or nil if the log has something new or it is too old.
func (c *ConductCache) fresh(ctx context.Context, k conductKey) (*reputation.View, error) {
	c.mu.Lock()
	v, is := c.views[k]
	c.mu.Unlock()
	if !is || c.now().Sub(v.at) >= lifeOf(v.view) {
		return nil, nil
	}
	news, err := c.log.CountsFrom(ctx, evidence.RoleAgent, k.Agent, v.size)
	if news || err != nil {
		return nil, err
	}
	return v.view, nil
}

func lifeOf(v *reputation.View) time.Duration {
	if v.Unsettled() {
		return briefLife
	}
	return viewLife
}

func (c *ConductCache) keep(k conductKey, v kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.views) >= maxViews { // the oldest makes room
		var oldest conductKey
		first := true
		for one, v := range c.views {
			if first || v.at.Before(c.views[oldest].at) {
				oldest, first = one, false
			}
		}
		delete(c.views, oldest)
	}
	c.views[k] = v
}

// compute reads what the log has, and returns the view and the log's size.
func (c *ConductCache) compute(ctx context.Context, asked ConductAsked, by *trust.Trust, at time.Time, take func(int64) error) (*reputation.View, int64, error) {
	config := reputation.Config{Agent: asked.Agent, CA: asked.CA}
	config.Options.Trust, config.Options.At = by, at
	g, err := reputation.NewGatherer(config)
	if err != nil {
		return nil, 0, err
	}
	read := 0
	fact, err := ReadConduct(ctx, c.log, asked.Agent, func(f ConductFile) error {
		if read += len(f.Bundle.Records); read > c.most {
			return fmt.Errorf("%w: more than %d records", ErrTooMany, c.most)
		}
		if err := take(f.Bytes()); err != nil {
			return err
		}
		g.Bundle(f.Bundle)
		return ctx.Err()
	})
	if err != nil {
		return nil, 0, err
	}
	g.Log(fact)
	v, err := g.View()
	return v, fact.Size, err
}
