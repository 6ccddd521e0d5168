package links

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// A chainState is the state of a chain after some of its records.
type chainState struct {
	id     string
	next   int64           // the first index in the log that was not read yet
	count  int64           // records that were read
	owner  evidence.Digest // tag of an actor
	agents map[string]bool // other agents that its records admit
	last   []placedLink
	weight int
}

// add adds the next record of the chain, by an actor. Of an expired record, nil, the log knows no more than the actor's tag.
func (s *chainState) add(index int64, actor evidence.Digest, p *placedLink) {
	s.next = index + 1
	if s.count++; s.count == 1 {
		s.owner = actor
	}
	if p == nil {
		return
	}
	q := p.Payload()
	if q.Role() == evidence.RoleAgent && q.ActionType != evidence.Delivery {
		s.let(q.AgentID)
	}
	if q.Role() == evidence.RoleAgent {
		s.let(q.NextAgent)
	}
	s.last = append(s.last, *p)
	s.weight += p.weight()
	for len(s.last) > 1 && (len(s.last) > LastLinks || s.weight > lastWeight) {
		s.weight -= s.last[0].weight()
		s.last = s.last[1:]
	}
}

func (s *chainState) let(agent string) {
	if agent != "" && len(s.agents) < maxAgents {
		s.agents[agent] = true
	}
}

// clone returns a copy that can be changed independently.
func (s *chainState) clone() *chainState {
	c := *s
	c.agents = maps.Clone(s.agents)
	c.last = slices.Clip(s.last)
	return &c
}

// Known caches the state of chains and decisions for this process. It is safe for concurrent use.
type Known struct {
	store storage.Records

	mu     sync.Mutex             // held while the members below are read or changed
	chains map[string]*chainState // which are not changed once they are here
	weight int                    // of all

	decisions  decisions
	admissions admissions
}

func New(store storage.Records) *Known {
	return &Known{store: store, chains: map[string]*chainState{}, decisions: decisions{store: store, turn: storage.NewLock(), of: map[string][]int64{}},
		admissions: admissions{store: store, turn: storage.NewLock(), of: map[string]bool{}}}
}

func (k *Known) get(chain string) *chainState {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.chains[chain]; s != nil {
		return s
	}
	return &chainState{id: chain, agents: map[string]bool{}}
}

// put keeps a state. If there are too many, it drops the others, which are read again when they are needed.
func (k *Known) put(s *chainState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.chains[s.id]; old != nil {
		if old.count > s.count {
			return
		}
		k.weight -= old.size()
	}
	if k.weight += s.size(); k.weight > maxLinked {
		clear(k.chains)
		k.weight = s.size()
	}
	k.chains[s.id] = s
}

func (s *chainState) size() int { return s.weight + 100*(len(s.agents)+10) }

// upToDate reads the new records of a chain: at most most, or all of them if most is 0.
func (k *Known) upToDate(ctx context.Context, chain string, most int64) (*chainState, error) {
	known := k.get(chain)
	s := known.clone()
	for most == 0 || s.count-known.count < most {
		rows, err := k.store.InChain(ctx, chain, s.next, linkPage)
		if err != nil {
			return nil, fmt.Errorf("reading chain %q: %w", chain, err)
		}
		for i := range rows {
			if rows[i].Entry != nil {
				s.add(rows[i].Index, rows[i].Actor, nil)
				continue
			}
			p, err := linkOf(&rows[i])
			if err != nil {
				return nil, err
			}
			s.add(rows[i].Index, storage.ActorOf(p.Payload()), &p)
		}
		if len(rows) < linkPage {
			break
		}
	}
	if s.count > known.count {
		k.put(s)
	}
	return s, nil
}
