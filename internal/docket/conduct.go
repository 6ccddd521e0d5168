package docket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/reputation"
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

// Bytes returns the size of the file's payloads.
func (f *ConductFile) Bytes() (sum int64) {
	for _, r := range f.Bundle.Records {
		sum += int64(len(r.Canonical()))
	}
	return sum
}

// KnowsAgent reports whether a log has counted a record of an agent, or a judgment about one.
func KnowsAgent(ctx context.Context, log *ledger.Ledger, agent string) (bool, error) {
	return log.CountsFrom(ctx, evidence.RoleAgent, agent, 0)
}

// ReadConduct hands on what the log has about an agent: the case file of each trial, and bundles of other records. It returns
// what the log counted. Its errors are those of the ledger and of take.
func ReadConduct(ctx context.Context, log *ledger.Ledger, agent string, take func(ConductFile) error) (reputation.LogFact, error) {
	size, err := log.Size(ctx)
	if err != nil {
		return reputation.LogFact{}, err
	}
	return ConductUntil(ctx, log, agent, size, take)
}

// ConductUntil is Read of a log as it was when it had this size. A trial that judged before it is handed on as it is now.
func ConductUntil(ctx context.Context, log *ledger.Ledger, agent string, size int64, take func(ConductFile) error) (made reputation.LogFact, err error) {
	r := &reading{ctx: ctx, log: log, take: take, tried: map[string]bool{},
		fact: reputation.LogFact{Origin: log.Origin(), Size: size, Actor: []evidence.Digest{}, Subject: []evidence.Digest{}}}
	if r.fact.Counts, err = countedFrom(ctx, log, size); err != nil {
		return r.fact, err
	}
	if err := r.about(agent); err != nil {
		return r.fact, err
	}
	return r.fact, r.records(agent)
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

// reading is a log that is read for one agent.
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

// about reads the judgments about the agent.
func (r *reading) about(agent string) error {
	for c, err := range r.log.About(r.ctx, evidence.RoleAgent, agent) {
		if err != nil {
			return err
		}
		if c.Index >= r.fact.Size {
			break
		}
		r.fact.Subject = append(r.fact.Subject, c.Digest)
		if c.Record == nil {
			continue // it has expired: it is missing, and the count shows it
		}
		if err := r.judgment(c.Record); err != nil {
			return err
		}
	}
	if err := r.flush("judgments"); err != nil {
		return err
	}
	return r.recorded(agent)
}

// recorded hands on the acts that recorders saw, as far as they were judged: the log counts them for the recorders, so they are not among the
// agent's records.
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
	if len(chain) < len(evidence.TrialPrefix) || chain[:len(evidence.TrialPrefix)] != evidence.TrialPrefix {
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

// records reads the agent's own records.
func (r *reading) records(agent string) error {
	r.piles = 0
	for c, err := range r.log.OfActor(r.ctx, evidence.RoleAgent, agent) {
		if err != nil {
			return err
		}
		if c.Index >= r.fact.Size {
			break
		}
		r.fact.Actor = append(r.fact.Actor, c.Digest)
		if c.Record == nil {
			continue
		}
		if err := r.pile("records", c.Record); err != nil {
			return err
		}
	}
	return r.flush("records")
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
