package continuous

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/witness"
	"jurat/reputation/draw"
)

// A selection follows a log, and finds the records that are to be tried. It is the same in every process and after every start, as it
// follows from the log, the settings and the installation's secret alone. It is not safe for concurrent use.
type selection struct {
	log     *ledger.Ledger
	agents  map[evidence.Digest]string // by the tag of the actor; empty: every agent
	drawn   int64                      // as in config.Continuous, as the next one
	sampled int64
	secret  []byte // of the installation: without it, no one can know what is sampled
	now     func() time.Time

	recorded bool // acts that recorders saw count for the agents that they saw

	witnesses []*operator.Witness
	next      int64 // index of the entry to read next
	nextDraw  int64
	tail      []candidate      // of the block that is not whole yet
	blocks    map[int64]*block // that a witness has not drawn, by their end
	debts     []*debt          // in the order of the log
	of        map[evidence.Digest]*debt
}

// A candidate is a record that may be drawn.
type candidate struct {
	index int64
	actor evidence.Digest
	seen  time.Time
	of    evidence.Digest
}

// A block has candidates, and not the draws of all witnesses.
type block struct {
	tree       operator.Checkpoint
	candidates []candidate
	lacking    []*operator.Witness
}

// A debt is a record that is to be tried.
type debt struct {
	candidate
	agent     string    // "": not known yet
	witnesses []string  // who drew it; none: it was sampled
	why       string    // why it cannot be tried; "": it can, as far as is known
	again     time.Time // before which the record is not looked at again
	none      bool      // no agent made the record, so it is not tried
}

// follow reads what is new in the log. The witnesses are those that the log has now.
func (s *selection) follow(ctx context.Context, witnesses []*operator.Witness) error {
	if !slices.EqualFunc(s.witnesses, witnesses, func(a, b *operator.Witness) bool { return a.String() == b.String() }) {
		s.restart(witnesses) // who draws has changed, and so has what is drawn
	}
	size, err := s.log.Size(ctx)
	if err != nil || size == s.next {
		return err
	}
	seen := s.now()
	for line, err := range s.log.Entries(ctx, s.next, size) {
		if err != nil {
			return err
		}
		entry, err := evidence.ParseEntry(line)
		if err != nil {
			return err
		}
		if err := s.add(ctx, entry, seen); err != nil {
			return err
		}
	}
	if s.drawn == 0 {
		return nil
	}
	return witness.EachDraw(ctx, s.log, &s.nextDraw, s.take)
}

func (s *selection) restart(witnesses []*operator.Witness) {
	s.witnesses, s.next, s.nextDraw, s.tail, s.debts = witnesses, 0, 0, nil, nil
	s.blocks, s.of = map[int64]*block{}, map[evidence.Digest]*debt{}
}

// add takes the next entry.
func (s *selection) add(ctx context.Context, entry *evidence.Entry, seen time.Time) error {
	c := candidate{index: s.next, actor: entry.Actor, of: entry.Payload, seen: seen}
	if s.isCandidate(entry) {
		if s.drawn > 0 {
			s.tail = append(s.tail, c)
		}
		if s.sampled > 0 && s.isSampled(entry.Payload) {
			s.owe(c, "")
		}
	}
	end := s.next + 1
	if end%operator.DrawBlock == 0 && len(s.tail) > 0 && len(s.witnesses) > 0 {
		root, err := s.log.Root(ctx, end)
		if err != nil {
			return err
		}
		s.blocks[end] = &block{tree: operator.Checkpoint{Origin: s.log.Origin(), Size: end, Root: root}, candidates: slices.Clone(s.tail), lacking: slices.Clone(s.witnesses)}
	}
	if end%operator.DrawBlock == 0 {
		s.tail = s.tail[:0]
	}
	s.next = end
	return nil
}

// isCandidate reports whether a record may be an agent's act, outside of a trial.
func (s *selection) isCandidate(entry *evidence.Entry) bool {
	if entry.Actor.IsZero() || !entry.Case.IsZero() {
		return false
	}
	_, listed := s.agents[entry.Actor]
	return listed || len(s.agents) == 0 || s.recorded // an entry does not say whose act a recorder saw: the record does
}

// isSampled reports whether the installation takes a record by itself. Only who has the secret can tell before.
func (s *selection) isSampled(record evidence.Digest) bool {
	sum := hmac.New(sha256.New, s.secret)
	sum.Write([]byte("jurat/sampled/v1\x00"))
	sum.Write(record[:])
	return binary.BigEndian.Uint64(sum.Sum(nil))%uint64(s.sampled) == 0
}

// take evaluates a draw. One that is not valid, or of a block without candidates, changes nothing.
func (s *selection) take(d operator.Draw) {
	b := s.blocks[d.Size]
	if b == nil {
		return
	}
	i := slices.IndexFunc(b.lacking, func(w *operator.Witness) bool { return w.String() == d.Witness })
	if i < 0 || !b.lacking[i].VerifyDraw(b.tree, d.Signature) {
		return
	}
	for _, c := range b.candidates {
		if draw.Drawn(d.Signature, c.of, s.drawn) {
			s.owe(c, b.lacking[i].Name())
		}
	}
	if b.lacking = slices.Delete(b.lacking, i, i+1); len(b.lacking) == 0 {
		delete(s.blocks, d.Size)
	}
}

// owe notes that a record is to be tried.
func (s *selection) owe(c candidate, by string) {
	d := s.of[c.of]
	if d == nil {
		d = &debt{candidate: c, agent: s.agents[c.actor]}
		s.of[c.of] = d
		at, _ := slices.BinarySearchFunc(s.debts, c.index, func(d *debt, index int64) int { return int(d.index - index) })
		s.debts = slices.Insert(s.debts, at, d)
	}
	if by != "" && !slices.Contains(d.witnesses, by) {
		d.witnesses = append(d.witnesses, by)
	}
}

// settle forgets debts that are paid, and those that were none. The record stays known, so that it is not owed again.
func (s *selection) settle(paid func(*debt) bool) {
	s.debts = slices.DeleteFunc(s.debts, paid)
}

// missing lists the draws that the log lacks of blocks with candidates: their number, by witness.
func (s *selection) missing() map[string]int64 {
	lacking := map[string]int64{}
	for _, b := range s.blocks {
		for _, w := range b.lacking {
			lacking[w.Name()]++
		}
	}
	return lacking
}

// record reads the record of a debt. It returns nil if it is the act of no agent whose records are tried.
func (s *selection) record(ctx context.Context, d *debt) (*evidence.Record, error) {
	r, err := s.log.RecordByDigest(ctx, d.of)
	if err != nil {
		return nil, err
	}
	if d.agent = s.agentOf(&r.Payload); d.agent == "" {
		return nil, nil
	}
	return r, nil
}

// agentOf returns whose act a record is; "": it is not tried.
func (s *selection) agentOf(p *evidence.Payload) (agent string) {
	switch {
	case p.Role() == evidence.RoleAgent && !p.ActionType.InTrial():
		agent = p.Actor()
	case s.recorded && p.OnAgent():
		agent = p.Observed.Agent
	}
	if _, listed := s.agents[evidence.ActorTag(evidence.RoleAgent, agent)]; !listed && len(s.agents) > 0 {
		return ""
	}
	return agent
}

// name finds out whose acts the debts are of which the entry did not say it.
func (s *selection) name(ctx context.Context) error {
	if !s.recorded || len(s.agents) == 0 {
		return nil
	}
	for _, d := range s.debts {
		if d.agent != "" || d.none {
			continue
		}
		r, err := s.record(ctx, d)
		if err != nil && !errors.Is(err, ledger.ErrExpired) {
			return err
		}
		d.none = r == nil
	}
	return nil
}

// tagged returns agents by the tags of their records.
func tagged(agents []string) map[evidence.Digest]string {
	names := map[evidence.Digest]string{}
	for _, name := range agents {
		names[evidence.ActorTag(evidence.RoleAgent, name)] = name
	}
	return names
}

// witnessesOf reads witnesses' keys.
func witnessesOf(keys []string) (list []*operator.Witness, err error) {
	for _, key := range keys {
		w, err := operator.ParseWitness(key)
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}
