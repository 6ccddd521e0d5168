package docket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/log/ledger"
	"jurat/reputation"
	"jurat/verify/trust"
)

// What is proved together: so many records, or so many bytes of payloads if that is less. A recorded act has the bytes of a whole session.
const (
	pile      = 500
	pileBytes = 32 << 20
)

// A ConductFile is what a stranger needs of the log, with a name that no other File has.
type ConductFile struct {
	Name   string
	Bundle *evidence.Bundle
}

func (f *ConductFile) Bytes() (sum int64) {
	for _, r := range f.Bundle.Records {
		sum += int64(len(r.Canonical()))
	}
	return sum
}

// ReadConduct is ConductUntil of the whole log.
func ReadConduct(ctx context.Context, log *ledger.Ledger, agent string, take func(ConductFile) error) (reputation.LogFact, error) {
	size, err := log.Size(ctx)
	if err != nil {
		return reputation.LogFact{}, err
	}
	return ConductUntil(ctx, log, agent, size, take)
}

// ConductUntil hands on what a log had about an agent when it had this size, by trials and in bundles, and returns its counts. A trial that judged
// before it is handed on as it is now. Its errors are the ledger's and take's.
func ConductUntil(ctx context.Context, log *ledger.Ledger, agent string, size int64, take func(ConductFile) error) (made reputation.LogFact, err error) {
	r := &reading{ctx: ctx, log: log, take: take, tried: map[string]bool{},
		fact: reputation.LogFact{Origin: log.Origin(), Size: size, Actor: []evidence.Digest{}, Subject: []evidence.Digest{}}}
	if r.fact.Counts, err = countedFrom(ctx, log, size); err != nil {
		return r.fact, err
	}
	err = r.each(log.About(ctx, evidence.RoleAgent, agent), &r.fact.Subject, "judgments", r.judgment)
	if err == nil {
		err = r.recorded(agent)
	}
	if r.piles = 0; err == nil {
		own := func(one *evidence.Record) error { return r.pile("records", one) }
		err = r.each(log.OfActor(ctx, evidence.RoleAgent, agent), &r.fact.Actor, "records", own)
	}
	return r.fact, err
}

// countedFrom finds the first record that the log counted for its actor: all after it are counted, too.
func countedFrom(ctx context.Context, log *ledger.Ledger, size int64) (int64, error) {
	var failed error
	first := sort.Search(int(size), func(i int) bool {
		if failed != nil {
			return true
		}
		rows, err := log.RowsFrom(ctx, int64(i), 1)
		if err != nil || len(rows) == 0 {
			failed = fmt.Errorf("reading record %d of the log: %w", i, err)
			return true
		}
		return rows[0].Counts.ActorSeq > 0
	})
	return int64(first), failed
}

type reading struct {
	ctx   context.Context
	log   *ledger.Ledger
	take  func(ConductFile) error
	fact  reputation.LogFact
	tried map[string]bool   // trials that were handed on
	seen  []evidence.Digest // acts that recorders saw the agent do, and that were judged
	piled []*evidence.Record
	bytes int // of their payloads
	piles int
}

// each notes what the log counted, and hands on what is still there: what has expired is missing, and the count shows it.
func (r *reading) each(counted iter.Seq2[ledger.Counted, error], noted *[]evidence.Digest, what string, take func(*evidence.Record) error) error {
	for c, err := range counted {
		if err == nil && c.Index >= r.fact.Size {
			break
		}
		if err == nil {
			*noted = append(*noted, c.Digest)
		}
		if err == nil && c.Record != nil {
			err = take(c.Record)
		}
		if err != nil {
			return err
		}
	}
	return r.flush(what)
}

// recorded hands on the judged acts that recorders saw: the log counts them for the recorders, and not as the agent's own.
func (r *reading) recorded(agent string) error {
	r.piles = 0
	slices.SortFunc(r.seen, func(a, b evidence.Digest) int { return bytes.Compare(a[:], b[:]) })
	for _, digest := range slices.Compact(r.seen) {
		record, err := r.log.RecordByDigest(r.ctx, digest)
		if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrExpired) {
			continue
		}
		if err != nil {
			return err
		}
		if p := &record.Payload; !p.OnAgent() || p.Observed.Agent != agent {
			continue
		}
		if err := r.pile("recorded", record); err != nil {
			return err
		}
	}
	return r.flush("recorded")
}

func (r *reading) judgment(record *evidence.Record) error {
	chain := record.Payload.ChainID
	if !strings.HasPrefix(chain, evidence.TrialPrefix) {
		r.seen = append(append(r.seen, record.Payload.PreviousRecord), record.Payload.Saw...)
		return r.pile("judgments", record)
	}
	if r.tried[chain] {
		return nil
	}
	r.tried[chain] = true
	records, err := r.log.Chain(r.ctx, chain)
	if err != nil {
		return err
	}
	for _, one := range records {
		if one.Payload.ActionType == evidence.Submission {
			r.seen = append(r.seen, one.Payload.Saw...)
		}
	}
	bundle, err := r.log.Prove(r.ctx, records...)
	if err != nil {
		return err
	}
	return r.take(ConductFile{chain, bundle})
}

func (r *reading) pile(what string, record *evidence.Record) error {
	r.piled, r.bytes = append(r.piled, record), r.bytes+len(record.Canonical())
	if len(r.piled) < pile && r.bytes < pileBytes {
		return nil
	}
	return r.flush(what)
}

func (r *reading) flush(what string) error {
	if len(r.piled) == 0 {
		return nil
	}
	bundle, err := r.log.Prove(r.ctx, r.piled...)
	if err != nil {
		return err
	}
	r.piles++
	r.piled, r.bytes = nil, 0
	return r.take(ConductFile{fmt.Sprintf("%s-%04d", what, r.piles), bundle})
}

// What a Cache holds, and of whom it computes nothing: such an agent is for the command, which has time.
const (
	maxViews          = 64
	viewLife          = 10 * time.Minute
	briefLife         = 5 * time.Second // of a view with judgments that are not proved yet: soon witnesses will have cosigned them
	maxRecordsOfAgent = 20_000          // of the agent and of its trials
)

var (
	ErrUnknownAgent = errors.New("the log has no record of this agent, and no judgment about one")
	ErrTooMany      = errors.New("the log has too much about this agent for a page")
)

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
	most  int                 // MaxRecords, or fewer in tests
	turn  chan struct{}       // one element while a view is looked up or computed
	views map[conductKey]kept // for who has the turn
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
	known, err := c.log.CountsFrom(ctx, evidence.RoleAgent, asked.Agent, 0)
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
	if err != nil {
		return v, err
	}
	if len(c.views) >= maxViews {
		clear(c.views)
	}
	c.views[k] = kept{v, size, at}
	return v, nil
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
	v, is := c.views[k]
	life := viewLife
	if is && v.view.Unsettled() {
		life = briefLife
	}
	if !is || c.now().Sub(v.at) >= life {
		return nil, nil
	}
	news, err := c.log.CountsFrom(ctx, evidence.RoleAgent, k.Agent, v.size)
	if news || err != nil {
		return nil, err
	}
	return v.view, nil
}

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
