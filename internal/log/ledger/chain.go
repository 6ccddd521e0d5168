package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger/storage"
	"jurat/verify"
)

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
	for len(s.last) > 1 && (len(s.last) > lastLinks || s.weight > lastWeight) {
		s.weight -= s.last[0].weight()
		s.last = s.last[1:]
	}
}

func (s *chainState) let(agent string) {
	if agent != "" && len(s.agents) < maxAgents {
		s.agents[agent] = true
	}
}

func (s *chainState) clone() *chainState {
	c := *s
	c.agents = maps.Clone(s.agents)
	c.last = slices.Clip(s.last)
	return &c
}

// knownLinks caches the state of chains and decisions for this process. It is safe for concurrent use.
type knownLinks struct {
	store storage.Records

	mu     sync.Mutex             // held while the members below are read or changed
	chains map[string]*chainState // which are not changed once they are here
	before map[string]*chainState // what chains was when it was last full: what is used again comes back, what is not goes next time
	weight int                    // of chains

	decisions  decisions
	admissions admissions
}

func newLinks(store storage.Records) *knownLinks {
	return &knownLinks{store: store, chains: map[string]*chainState{}, decisions: decisions{store: store, turn: storage.NewLock(), of: map[string][]int64{}},
		admissions: admissions{store: store, turn: storage.NewLock(), of: map[string]bool{}}}
}

func (k *knownLinks) get(chain string) *chainState {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.chains[chain]; s != nil {
		return s
	}
	if s := k.before[chain]; s != nil {
		k.keep(s)
		return s
	}
	return &chainState{id: chain, agents: map[string]bool{}}
}

func (k *knownLinks) put(s *chainState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := cmp.Or(k.chains[s.id], k.before[s.id]); old == nil || old.count <= s.count {
		k.keep(s)
	}
}

// keep has a state among those used last. Those that were not used for as long as the others took to fill half of the room go, and are read
// again when they are needed. The caller holds mu.
func (k *knownLinks) keep(s *chainState) {
	if old := k.chains[s.id]; old != nil {
		k.weight -= old.size()
	}
	if k.weight += s.size(); k.weight > maxLinked/2 {
		k.before, k.chains, k.weight = k.chains, map[string]*chainState{}, s.size()
	}
	k.chains[s.id] = s
}

func (s *chainState) size() int { return s.weight + 100*(len(s.agents)+10) }

// upToDate reads the new records of a chain: at most most, or all of them if most is 0.
func (k *knownLinks) upToDate(ctx context.Context, chain string, most int64) (*chainState, error) {
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

// admissions are the operator's acts that admit agents to chains. They are safe for concurrent use.
type admissions struct {
	store storage.Records

	turn storage.Lock    // held while the members below are read or changed
	next int64           // the first index in the log that was not read yet
	of   map[string]bool // by chain and agent
}

func admissionOf(chain, agent string) string { return chain + "\x00" + agent } // no name contains a NUL

func (a *admissions) has(ctx context.Context, chain, agent string) (bool, error) {
	if err := a.turn.Acquire(ctx); err != nil {
		return false, err
	}
	defer a.turn.Release()
	acts := paged(a.next, func(from int64) ([]storage.Row, error) {
		return a.store.InChain(ctx, operator.AccessChain, from, pageSize)
	})
	for row, err := range acts {
		if err == nil {
			err = a.take(row)
		}
		if err != nil {
			return false, fmt.Errorf("reading the admissions to chain %q: %w", chain, err)
		}
	}
	return a.of[admissionOf(chain, agent)], nil
}

func (a *admissions) take(row *storage.Row) error {
	if row.Entry == nil {
		record, err := row.Record()
		if err != nil {
			return err
		}
		event, err := operator.ReadAccessEvent(&record.Payload)
		if err != nil {
			return fmt.Errorf("record %s: %w", row.RecordID, err)
		}
		if event.Event == operator.AccessAdmitted {
			a.of[admissionOf(event.Chain, event.Name)] = true
		}
	}
	a.next = row.Index + 1
	return nil
}

// mostDecisions is how many reviews of one record are kept. These are the last ones.
const mostDecisions = 16

// decisions finds reviews in the log by the record that they are about. It reads the log once, from the first index
// that a caller asks for, and keeps a few bytes for each review. It is safe for concurrent use.
type decisions struct {
	store storage.Records

	turn     storage.Lock       // held while the members below are read or changed
	from, to int64              // the range of the log that was read; equal: nothing yet
	of       map[string][]int64 // indexes, in no order, by record id
}

// review occurs in the canonical payload of every review; rows without it are not parsed.
var review = []byte(`"action_type":"` + string(evidence.HumanReview) + `"`)

// read reads the reviews from an index to the end of the log that were not read yet. It returns the size of the log
// up to which reviews are known.
func (d *decisions) read(ctx context.Context, from int64) (int64, error) {
	if err := d.turn.Acquire(ctx); err != nil {
		return 0, err
	}
	defer d.turn.Release()
	head, err := d.store.Head(ctx)
	if err != nil {
		return 0, err
	}
	if d.from == d.to {
		d.from, d.to = from, from
	}
	if from < d.from {
		if err := d.scan(ctx, from, d.from); err != nil {
			return 0, err
		}
		d.from = from
	}
	if err := d.scan(ctx, d.to, head.Size); err != nil {
		return 0, err
	}
	d.to = max(d.to, head.Size)
	return d.to, nil
}

// scan notes the reviews of a range. After an error it notes some of them again the next time, which does no harm.
func (d *decisions) scan(ctx context.Context, from, to int64) error {
	for index := from; index < to; index += linkPage {
		rows, err := d.store.Rows(ctx, index, min(linkPage, to-index))
		if err != nil {
			return fmt.Errorf("reading reviews: %w", err)
		}
		for i := range rows {
			if rows[i].Entry != nil || !bytes.Contains(rows[i].Payload, review) {
				continue
			}
			record, err := rows[i].Record()
			if err != nil {
				return err
			}
			if p := &record.Payload; p.ActionType == evidence.HumanReview {
				d.note(p.OriginalResponseID, rows[i].Index)
			}
		}
	}
	return nil
}

// note notes a review of a record, and keeps only the last ones.
func (d *decisions) note(id string, index int64) {
	list, first := d.of[id], 0
	for i, other := range list {
		if other == index {
			return
		}
		if other < list[first] {
			first = i
		}
	}
	switch {
	case len(list) < mostDecisions:
		d.of[id] = append(list, index)
	case list[first] < index:
		list[first] = index
	}
}

func (d *decisions) on(id string) []int64 {
	d.turn <- struct{}{}
	defer d.turn.Release()
	return append([]int64(nil), d.of[id]...)
}

// A judging is what a record is judged by besides its chain: the records that it names, wherever they are.
type judging struct {
	record   *evidence.Record
	link     verify.Linked
	named    map[evidence.Digest]placedLink // those that were in the log when it was read
	subjects []placedLink                   // the records that a review or delivery is about, if the log has them
	reviews  []placedLink                   // the reviews of these, for a delivery
	upTo     int64                          // the size of the log up to which reviews are known; -1: not needed
	byAct    bool                           // the operator has admitted the actor to the chain
}

// gather reads the records that r names. They never change, so no other writer has to wait. It returns an
// *evidence.FieldError if r names too many.
func (k *knownLinks) gather(ctx context.Context, r *evidence.Record) (*judging, error) {
	j := &judging{record: r, link: verify.Link(r), named: map[evidence.Digest]placedLink{}, upTo: -1}
	digests := append([]evidence.Digest{r.Payload.PreviousRecord}, r.Payload.Saw...)
	if len(digests) > maxNamed+1 {
		return nil, &evidence.FieldError{Field: "saw", Reason: fmt.Sprintf("names %d records, but the log can check at most %d", len(r.Payload.Saw), maxNamed)}
	}
	for _, digest := range digests {
		if digest.IsZero() {
			continue
		}
		found, err := placed(k.store.ByDigest(ctx, digest))
		if err != nil {
			return nil, err
		}
		if found != nil {
			j.named[digest] = *found
		}
	}
	if !decides(&r.Payload) {
		return j, nil
	}
	return j, k.subjects(ctx, &r.Payload, j)
}

// placed returns the link of a row, or nil if it is missing or has expired.
func placed(row storage.Row, err error) (*placedLink, error) {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrExpired) || err == nil && row.Entry != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := linkOf(&row)
	return &p, err
}

// subjects reads what a review or delivery is about. If that is a review itself, it also reads what that one is
// about.
func (k *knownLinks) subjects(ctx context.Context, p *evidence.Payload, j *judging) error {
	about := map[string]bool{}
	if p.OriginalResponseID != "" {
		about[p.OriginalResponseID] = true
	}
	for _, named := range j.named {
		if about[named.Payload().RecordID] = true; named.Payload().ActionType == evidence.HumanReview {
			about[named.Payload().OriginalResponseID] = true
		}
	}
	for id := range about {
		for range maxReviewed {
			found, err := placed(k.store.ByRecordID(ctx, id))
			if err != nil {
				return err
			}
			if found == nil {
				break
			}
			j.subjects = append(j.subjects, *found)
			if found.Payload().ActionType != evidence.HumanReview {
				break
			}
			id = found.Payload().OriginalResponseID
		}
	}
	if p.ActionType != evidence.Delivery {
		return nil
	}
	return k.decided(ctx, j)
}

func (k *knownLinks) decided(ctx context.Context, j *judging) (err error) {
	j.reviews = nil
	if len(j.subjects) == 0 {
		return nil
	}
	from := slices.MinFunc(j.subjects, byIndex).index
	if j.upTo, err = k.decisions.read(ctx, from); err != nil {
		return err
	}
	for _, subject := range j.subjects {
		for _, index := range k.decisions.on(subject.Payload().RecordID) {
			rows, err := k.store.Rows(ctx, index, 1)
			if err != nil {
				return err
			}
			if len(rows) == 0 || rows[0].Entry != nil {
				continue
			}
			p, err := linkOf(&rows[0])
			if err != nil {
				return err
			}
			j.reviews = append(j.reviews, p)
		}
	}
	return nil
}

// file returns the records that a reader of r would have, in log order: the end of its chain, what it names, and the
// reviews of that.
func (j *judging) file(s *chainState) []placedLink {
	var all []placedLink
	if s != nil {
		all = slices.Clone(s.last)
	}
	for _, named := range j.named {
		all = append(all, named)
	}
	all = append(append(all, j.subjects...), j.reviews...)
	slices.SortFunc(all, byIndex)
	return slices.CompactFunc(all, func(a, b placedLink) bool { return a.index == b.index })
}

// contradicts returns an *LinkError for the first finding that the verifier makes with the record but not without it.
func (j *judging) contradicts(s *chainState) error {
	file := j.file(s)
	var before []verify.Linked
	for _, p := range file {
		q := p.Payload()
		if slices.Contains(q.Saw, j.link.Digest()) || q.PreviousRecord == j.link.Digest() {
			return &LinkError{Rule: "causality", Record: q.RecordID, Reason: "that record names this one, and is in the log before it"}
		}
		before = append(before, p.Linked)
	}
	known := map[[2]string]bool{}
	for _, f := range verify.Contradictions(before) {
		known[[2]string{f.Record, f.Rule}] = true
	}
	for _, f := range verify.Contradictions(append(before, j.link)) {
		if !known[[2]string{f.Record, f.Rule}] {
			return &LinkError{Rule: f.Rule, Record: f.Record, Reason: f.Reason, itself: f.Record == j.link.Payload().RecordID}
		}
	}
	return nil
}

// admitted reports whether the record's actor may add to the chain, judged by the chain and by what the record is
// about.
func (j *judging) admitted(s *chainState) bool {
	p := j.link.Payload()
	if s.count == 0 || j.byAct || storage.ActorOf(p) == s.owner || p.Role() == evidence.RoleAgent && s.agents[p.Actor()] {
		return true
	}
	if !decides(p) {
		return false
	}
	for _, subject := range j.subjects {
		q := subject.Payload()
		if q.ChainID == s.id && (p.ActionType == evidence.HumanReview || storage.ActorOf(q) == storage.ActorOf(p)) {
			return true
		}
	}
	return false
}

// judge returns ErrNotAdmitted, wrapped, or an *LinkError if a record must not follow at the end of a chain. s is nil for
// a record without a chain.
func (j *judging) judge(s *chainState) error {
	if s != nil && !j.admitted(s) {
		return fmt.Errorf("%w: field chain_id: %q does not belong to %q: the chain's owner must admit the agent with next_agent, "+
			"or the operator with 'jurat access grant --chain'; or use another chain_id", ErrNotAdmitted, s.id, j.link.Payload().Actor())
	}
	var link *LinkError
	if err := j.contradicts(s); !errors.As(err, &link) || s != nil || j.ofTheirOwn() {
		return err
	}
	// An actor who knows only the digest of another's record must learn nothing of its content.
	return &LinkError{Rule: link.Rule, Reason: "it contradicts a record that it names", itself: true}
}

// ofTheirOwn reports whether all records that r names are its actor's, or its actor is a reviewer, who may read
// everything.
func (j *judging) ofTheirOwn() bool {
	p := j.link.Payload()
	if p.Role() == evidence.RoleReviewer {
		return true
	}
	return !slices.ContainsFunc(slices.AppendSeq(slices.Clone(j.subjects), maps.Values(j.named)), func(other placedLink) bool {
		q := other.Payload()
		return q.Role() == evidence.RoleAgent && storage.ActorOf(q) != storage.ActorOf(p)
	})
}

// prepare updates what a record is judged by: its chain, by at most most records, and the reviews of what it is
// about.
func (k *knownLinks) prepare(ctx context.Context, j *judging, most int64) (s *chainState, err error) {
	p := j.link.Payload()
	if j.upTo >= 0 {
		if err := k.decided(ctx, j); err != nil {
			return nil, err
		}
	}
	if p.ChainID == "" {
		return nil, nil
	}
	if s, err = k.upToDate(ctx, p.ChainID, most); err != nil {
		return nil, err
	}
	if !j.byAct && p.Role() == evidence.RoleAgent && !j.admitted(s) {
		j.byAct, err = k.admissions.has(ctx, p.ChainID, p.Actor())
	}
	return s, err
}

// look reads what a record is judged by. It returns an *evidence.FieldError for a record that names too many others.
// Its other errors are those of the store.
func (k *knownLinks) look(ctx context.Context, r *evidence.Record) (*judging, *chainState, error) {
	j, err := k.gather(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	s, err := k.prepare(ctx, j, 0)
	return j, s, err
}
