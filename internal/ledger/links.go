package ledger

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/verify"
)

// What agents and reviewers seal is held against what it says that it follows, by the rules of the verifier itself, before it has its place
// in the log: what contradicts another record there would be refuted for ever, and with it the chain that somebody else relies on. So no
// record is let in with which a file of its chain would be refuted that was not refuted before.
//
// A chain has an owner: the actor of its first record. Others are admitted to it by the next_agent of a record in it, by having a record in it,
// or by the operator (access_event admitted). Reviews and deliveries are admitted by what they are about.
//
// Of a long chain the last records are looked at, and those that the new one names. What a record names must be
// among these, or be found by its digest; one that stands at a place without naming anything must follow one of the last.

var (
	// ErrNotAdmitted says that a chain is another actor's, who has not let this one in.
	ErrNotAdmitted = errors.New("the actor is not admitted to the chain")
	// ErrContradicts says that a record contradicts what is in the log, so that verification would refute it or another.
	ErrContradicts = errors.New("it contradicts the log")

	errLinksMoved = errors.New("what the links were judged by has changed")
)

const (
	lastLinks   = 500     // records of a chain that are looked at
	lastWeight  = 4 << 20 // and about how many bytes at most are kept of them
	maxLinked   = 64 << 20
	maxAgents   = 1000 // agents beside the owner that the records of a chain admit
	maxNamed    = 1000 // records that one record may name
	maxReviewed = 16   // reviews of reviews that are followed
	linkPage    = 4    // rows that are read at once: each can have MaxDocument bytes
	maxCatchUp  = 256  // records that are read while nobody else can append
)

// linked reports whether a record's links are judged: the acts of trials and of the operator have laws of their own.
func linked(p *evidence.Payload) bool {
	if role := p.Role(); role != evidence.RoleAgent && role != evidence.RoleReviewer {
		return false
	}
	return p.ChainID != "" || !p.PreviousRecord.IsZero() || len(p.Saw) > 0 || decides(p)
}

func decides(p *evidence.Payload) bool {
	return p.ActionType == evidence.HumanReview || p.ActionType == evidence.Delivery
}

// A placedLink is a record of the log, as far as links are judged by it.
type placedLink struct {
	index int64
	verify.Linked
}

func linkOf(row *storage.Row) (placedLink, error) {
	record, err := row.Record()
	if err != nil {
		return placedLink{}, err
	}
	return placedLink{row.Index, verify.Link(record)}, nil
}

func (p placedLink) weight() int {
	q := p.Payload()
	return 600 + 32*len(q.Saw) + len(q.RequestID) + len(q.ParentRequestID) + len(q.AgentID) + len(q.PreviousAgent) + len(q.NextAgent)
}

// A chainState is what is known of a chain, up to some record of it.
type chainState struct {
	id     string
	next   int64 // index in the log from which nothing was read yet
	count  int64 // records that were read
	owner  actorName
	agents map[string]bool // who else is admitted by its records
	last   []placedLink
	weight int
}

type actorName struct {
	role evidence.Role
	name string
}

func actorOf(p *evidence.Payload) actorName { return actorName{p.Role(), p.Actor()} }

// add takes in the next record of the chain. One that has expired, nil, is counted.
func (s *chainState) add(index int64, p *placedLink) {
	s.next = index + 1
	s.count++
	if p == nil {
		return
	}
	q := p.Payload()
	if s.count == 1 {
		s.owner = actorOf(q)
	}
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

// clone is a state that can go on by itself.
func (s *chainState) clone() *chainState {
	c := *s
	c.agents = make(map[string]bool, len(s.agents))
	for agent := range s.agents {
		c.agents[agent] = true
	}
	c.last = slices.Clip(s.last)
	return &c
}

// links is what this process knows of chains and decisions. It is safe for concurrent use.
type links struct {
	store storage.Store

	mu     sync.Mutex // held while the following is read or changed
	chains map[string]*list.Element
	order  *list.List // of *chainState, which is not changed once it is here; the one that was asked for last is first
	weight int

	decisions  decisions
	admissions admissions
}

func newLinks(store storage.Store) *links {
	return &links{store: store, chains: map[string]*list.Element{}, order: list.New(), decisions: decisions{store: store, turn: storage.NewLock(), of: map[string][]int64{}},
		admissions: admissions{store: store, turn: storage.NewLock(), of: map[string]bool{}}}
}

func (l *links) get(chain string) *chainState {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.chains[chain]
	if e == nil {
		return &chainState{id: chain, agents: map[string]bool{}}
	}
	l.order.MoveToFront(e)
	return e.Value.(*chainState)
}

// put keeps a state, and forgets those that were not asked for longest.
func (l *links) put(s *chainState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.chains[s.id]; e != nil {
		if e.Value.(*chainState).count > s.count {
			return
		}
		l.drop(e)
	}
	l.chains[s.id] = l.order.PushFront(s)
	for l.weight += s.size(); l.weight > maxLinked && l.order.Len() > 1; {
		l.drop(l.order.Back())
	}
}

func (l *links) drop(e *list.Element) {
	s := l.order.Remove(e).(*chainState)
	l.weight -= s.size()
	delete(l.chains, s.id)
}

func (s *chainState) size() int { return s.weight + 100*(len(s.agents)+10) }

// upToDate reads what has come to a chain: at most so many records, or all of them where most is 0.
func (l *links) upToDate(ctx context.Context, chain string, most int64) (*chainState, error) {
	known := l.get(chain)
	s := known.clone()
	for most == 0 || s.count-known.count < most {
		rows, err := l.store.InChain(ctx, chain, s.next, linkPage)
		if err != nil {
			return nil, fmt.Errorf("reading chain %q: %w", chain, err)
		}
		for i := range rows {
			if rows[i].Entry != nil {
				s.add(rows[i].Index, nil)
				continue
			}
			p, err := linkOf(&rows[i])
			if err != nil {
				return nil, err
			}
			s.add(rows[i].Index, &p)
		}
		if len(rows) < linkPage {
			break
		}
	}
	if s.count > known.count {
		l.put(s)
	}
	return s, nil
}

// A judging is what a record is judged by beside its chain: what it names, wherever that is.
type judging struct {
	link     verify.Linked
	named    map[evidence.Digest]placedLink // of what the log had when it was looked for
	subjects []placedLink                   // what a review or delivery is about, as far as the log has it
	reviews  []placedLink                   // of these, where it is a delivery
	upTo     int64                          // the size of the log by which reviews are known; -1: it does not matter
	byAct    bool                           // the operator has let the actor into the chain
}

// gather looks for what a record names. What is in the log stays as it is, so nobody has to be kept from appending.
func (l *links) gather(ctx context.Context, r *evidence.Record) (*judging, error) {
	j := &judging{link: verify.Link(r), named: map[evidence.Digest]placedLink{}, upTo: -1}
	digests := append([]evidence.Digest{r.Payload.PreviousRecord}, r.Payload.Saw...)
	if len(digests) > maxNamed+1 {
		return nil, &evidence.FieldError{Field: "saw", Reason: fmt.Sprintf("names %d records, and at most %d can be held against the log", len(r.Payload.Saw), maxNamed)}
	}
	for _, digest := range digests {
		if digest.IsZero() {
			continue
		}
		found, err := l.find(func() (storage.Row, error) { return l.store.ByDigest(ctx, digest) })
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
	return j, l.subjects(ctx, &r.Payload, j)
}

// find reads a record, nil if it is not there or has expired.
func (l *links) find(by func() (storage.Row, error)) (*placedLink, error) {
	row, err := by()
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrExpired) || err == nil && row.Entry != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := linkOf(&row)
	return &p, err
}

// subjects looks for what a review or delivery is about, and for what that is about where it is a review itself.
func (l *links) subjects(ctx context.Context, p *evidence.Payload, j *judging) error {
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
			found, err := l.find(func() (storage.Row, error) { return l.store.ByRecordID(ctx, id) })
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
	return l.decided(ctx, j)
}

// decided looks for the reviews of what is delivered.
func (l *links) decided(ctx context.Context, j *judging) (err error) {
	j.reviews = nil
	if len(j.subjects) == 0 {
		return nil
	}
	from := slices.MinFunc(j.subjects, func(a, b placedLink) int { return int(min(1, max(-1, a.index-b.index))) }).index
	if j.upTo, err = l.decisions.read(ctx, from); err != nil {
		return err
	}
	for _, subject := range j.subjects {
		for _, index := range l.decisions.on(subject.Payload().RecordID) {
			rows, err := l.store.Rows(ctx, index, 1)
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

// file is what a reader would have of this: the end of its chain, what it names, and what decides on it, in the order of the log.
func (j *judging) file(s *chainState) []placedLink {
	var all []placedLink
	if s != nil {
		all = slices.Clone(s.last)
	}
	for _, named := range j.named {
		all = append(all, named)
	}
	all = append(append(all, j.subjects...), j.reviews...)
	slices.SortFunc(all, func(a, b placedLink) int { return int(min(1, max(-1, a.index-b.index))) })
	return slices.CompactFunc(all, func(a, b placedLink) bool { return a.index == b.index })
}

// contradicts says what the verifier would refute with the record that it did not refute without it.
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

// admitted says whether the record's actor may add to the chain, as far as the chain and what the record is about say so.
func (j *judging) admitted(s *chainState) bool {
	p := j.link.Payload()
	if s.count == 0 || j.byAct || actorOf(p) == s.owner || p.Role() == evidence.RoleAgent && s.agents[p.Actor()] {
		return true
	}
	if !decides(p) {
		return false
	}
	for _, subject := range j.subjects {
		q := subject.Payload()
		if q.ChainID == s.id && (p.ActionType == evidence.HumanReview || actorOf(q) == actorOf(p)) {
			return true
		}
	}
	return false
}

// A LinkError says by which rule of verification a record contradicts what is in the log.
type LinkError struct {
	Rule   string
	Record string // which would be refuted
	Reason string
	itself bool
}

func (e *LinkError) Error() string {
	if e.itself {
		return fmt.Sprintf("%v by the rule %q: %s", ErrContradicts, e.Rule, e.Reason)
	}
	return fmt.Sprintf("%v: record %s would be refuted by the rule %q: %s", ErrContradicts, e.Record, e.Rule, e.Reason)
}

// Field is the member of the payload that the rule is about.
func (e *LinkError) Field() string {
	switch e.Rule {
	case "position", "gap":
		return "chain_position"
	case "previous-agent":
		return "previous_agent"
	case "next-agent":
		return "next_agent"
	case "time":
		return "timestamp"
	case "cycle", "parent":
		return "parent_request_id"
	case "dangling":
		return "previous_record"
	case "approval", "modification", "rejection":
		return "modified_response"
	case "delivery":
		return "response"
	case "own-output":
		return "reviewer_id"
	case "case":
		return "case"
	}
	return "saw"
}

// Is makes it an ErrContradicts.
func (e *LinkError) Is(target error) bool { return target == ErrContradicts }

// judge says what stands against a record at the end of a chain, nil where it is in none.
func (j *judging) judge(s *chainState) error {
	if s != nil && !j.admitted(s) {
		return fmt.Errorf("%w: field chain_id: %q does not belong to %q: its owner admits others with next_agent, or the operator with 'jurat access admit'; or give the chain another name",
			ErrNotAdmitted, s.id, j.link.Payload().Actor())
	}
	var link *LinkError
	if err := j.contradicts(s); !errors.As(err, &link) || s != nil || j.ofTheirOwn() {
		return err
	}
	// Whoever knows no more of another's record than its digest learns nothing of it.
	return &LinkError{Rule: link.Rule, Reason: "what it names says otherwise", itself: true}
}

// ofTheirOwn reports whether all that the record names is its actor's, or its actor reads everything.
func (j *judging) ofTheirOwn() bool {
	p := j.link.Payload()
	if p.Role() == evidence.RoleReviewer {
		return true
	}
	for _, subject := range j.subjects {
		if q := subject.Payload(); q.Role() == evidence.RoleAgent && actorOf(q) != actorOf(p) {
			return false
		}
	}
	for _, named := range j.named {
		if q := named.Payload(); q.Role() == evidence.RoleAgent && actorOf(q) != actorOf(p) {
			return false
		}
	}
	return true
}

// prepare brings up to date by what a record is judged: its chain, as far as most lets it, and what can change of what it is about.
func (l *links) prepare(ctx context.Context, j *judging, most int64) (s *chainState, err error) {
	p := j.link.Payload()
	if j.upTo >= 0 {
		if err := l.decided(ctx, j); err != nil {
			return nil, err
		}
	}
	if p.ChainID == "" {
		return nil, nil
	}
	if s, err = l.upToDate(ctx, p.ChainID, most); err != nil {
		return nil, err
	}
	if !j.byAct && p.Role() == evidence.RoleAgent && !j.admitted(s) {
		j.byAct, err = l.admissions.has(ctx, p.ChainID, p.Actor())
	}
	return s, err
}

// mayFollow refuses a record that could not be appended, before it costs a time stamp. It returns by what it is to be judged once more
// when it gets its place; nil where its links are not judged.
func (l *Ledger) mayFollow(ctx context.Context, record *evidence.Record) (*judging, error) {
	if !linked(&record.Payload) || l.cfg.UnsafeContradictions {
		return nil, nil
	}
	if err := l.isNew(ctx, record); err != nil {
		return nil, err
	}
	j, err := l.links.gather(ctx, record)
	if err != nil {
		return nil, err
	}
	s, err := l.links.prepare(ctx, j, 0)
	if err != nil {
		return nil, err
	}
	return j, j.judge(s)
}

// lookAgain looks again by what one is judged that was refused because what it is judged by had changed.
func (l *Ledger) lookAgain(ctx context.Context, a *appending) (err error) {
	for i, j := range a.judgings {
		if j == nil {
			continue
		}
		if a.judgings[i], err = l.links.gather(ctx, a.records[i]); err != nil {
			return err
		}
		if _, err = l.links.prepare(ctx, a.judgings[i], 0); err != nil {
			return err
		}
	}
	return nil
}

// prepareLinks brings up to date by what those are judged whom the next transaction takes.
func (l *Ledger) prepareLinks(ctx context.Context, g *group, chosen []*appending) error {
	for _, a := range chosen {
		for i, j := range a.judgings {
			if j == nil {
				continue
			}
			s, err := l.links.prepare(ctx, j, maxCatchUp)
			if err != nil {
				return fmt.Errorf("judging record %s: %w", a.rows[i].RecordID, err)
			}
			if s != nil && g.chains[s.id] == nil {
				g.chains[s.id] = s.clone()
			}
			g.prepared[j] = true
		}
	}
	return nil
}

// links says what stands against the links of something that is to be appended. It is refused by what is committed alone: where a
// neighbour would have a part in it, it waits for the next transaction.
func (g *group) links(a *appending) error {
	for _, j := range a.judgings {
		if j == nil {
			continue
		}
		var s *chainState
		if chain := j.link.Payload().ChainID; chain != "" {
			if s = g.chains[chain]; s == nil || s.count != g.found.Chains[chain] {
				return errLinksMoved
			}
		}
		if !g.prepared[j] || j.upTo >= 0 && (j.upTo != g.tree.head.Size || g.reviewed) {
			return errLinksMoved
		}
		if err := j.judge(s); err != nil {
			if s != nil && g.grown[s.id] {
				return errLinksMoved
			}
			return err
		}
	}
	return nil
}

// linked notes a record that was let in.
func (g *group) linked(row *storage.Row, record *evidence.Record) {
	g.reviewed = g.reviewed || record.Payload.ActionType == evidence.HumanReview
	if s := g.chains[row.ChainID]; s != nil && row.ChainID != "" {
		s.add(row.Index, &placedLink{row.Index, verify.Link(record)})
		g.grown[s.id] = true
	}
}
