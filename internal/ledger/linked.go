package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
)

// MaxLinked is how many records Linked gathers at most.
const MaxLinked = 10_000

// ErrLinked says that more than MaxLinked records name each other.
var ErrLinked = errors.New("too many records name each other")

// Linked returns, in log order, the record with this id and all that is linked to it: a record links those that it names by digest or
// by original_response_id, those of its chain_id, and those of the request that it calls its parent; and they link it. Chains of trials and
// of the operator are whole in themselves: they are not followed into, and of a record in one its chain is returned. Linked reads the whole log, as often as it finds more. It returns
// ErrNotFound if there is no such record, and ErrLinked.
func (l *Ledger) Linked(ctx context.Context, id string) ([]*evidence.Record, error) {
	first, err := l.Record(ctx, id)
	if err != nil {
		return nil, err
	}
	if apart(&first.Payload) && first.Payload.ChainID != "" {
		return l.Chain(ctx, first.Payload.ChainID)
	}
	found := newLinkage()
	found.add(first)
	for more := true; more; {
		more = false
		for r, err := range l.Records(ctx, 0) {
			if err != nil {
				return nil, err
			}
			if found.has(r.Record) || !found.links(&r.Payload) && !found.isLinked(r.Record) {
				continue
			}
			if found.add(r.Record); len(found.ids) > MaxLinked {
				return nil, fmt.Errorf("record %s: %w: %d", id, ErrLinked, MaxLinked)
			}
			more = true
		}
	}
	return l.withIDs(ctx, found.ids)
}

func (l *Ledger) withIDs(ctx context.Context, ids map[string]bool) ([]*evidence.Record, error) {
	var records []*evidence.Record
	for r, err := range l.Records(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if ids[r.Payload.RecordID] {
			records = append(records, r.Record)
		}
	}
	return records, nil
}

// linkage is what gathered records are linked by. It keeps no payloads.
type linkage struct {
	ids, named, chains  map[string]bool // record ids: gathered, and named by original_response_id
	digests, seen       map[evidence.Digest]bool
	requests, parentsOf map[string]bool // request ids of gathered records, and those that they call their parents
	actors              map[string]bool // who acts in gathered records
}

func newLinkage() *linkage {
	return &linkage{ids: map[string]bool{}, named: map[string]bool{}, chains: map[string]bool{}, digests: map[evidence.Digest]bool{},
		seen: map[evidence.Digest]bool{}, requests: map[string]bool{}, parentsOf: map[string]bool{}, actors: map[string]bool{}}
}

func (k *linkage) has(r *evidence.Record) bool { return k.ids[r.Payload.RecordID] }

func (k *linkage) add(r *evidence.Record) {
	p := &r.Payload
	k.ids[p.RecordID], k.digests[r.Digest], k.actors[p.Actor()] = true, true, true
	for _, d := range append([]evidence.Digest{p.PreviousRecord}, p.Saw...) {
		k.seen[d] = true
	}
	for name, in := range map[*string]map[string]bool{&p.OriginalResponseID: k.named, &p.RequestID: k.requests, &p.ParentRequestID: k.parentsOf, &p.ChainID: k.chains} {
		if *name != "" {
			in[*name] = true
		}
	}
}

// links reports whether a record links one that is gathered.
func (k *linkage) links(p *evidence.Payload) bool {
	if apart(p) {
		return false
	}
	if p.ActionType == evidence.Delivery && !k.actors[p.Actor()] {
		return false // whoever has a copy of an answer can name it; it is delivered by those who gave it
	}
	named := slices.ContainsFunc(append([]evidence.Digest{p.PreviousRecord}, p.Saw...), func(d evidence.Digest) bool { return k.digests[d] })
	return named || k.ids[p.OriginalResponseID] || k.chains[p.ChainID] || k.requests[p.ParentRequestID]
}

// isLinked reports whether one that is gathered links a record.
func (k *linkage) isLinked(r *evidence.Record) bool {
	p := &r.Payload
	return !apart(p) && (k.seen[r.Digest] || k.named[p.RecordID] || k.parentsOf[p.RequestID])
}

// apart reports whether a record is in a chain that is whole in itself.
func apart(p *evidence.Payload) bool {
	return strings.HasPrefix(p.ChainID, evidence.TrialPrefix) || p.Role() == evidence.RoleOperator
}
