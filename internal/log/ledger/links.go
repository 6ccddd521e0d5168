package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"jurat/evidence"
	"jurat/internal/log/ledger/storage"
	"jurat/verify"
)

// What follows judges the links of a record, before it gets its place in the log.
//
// It compares what agents and reviewers seal with the records that it follows, by the verifier's own rules. In the
// log, a contradiction would be refuted for ever, and with it a chain that others rely on. So a record is refused if,
// with it, the verifier would refute a file of its chain that it did not refute before.
//
// A chain has an owner: the actor of its first record. The next_agent of a record in it admits another agent, and so
// does a record of that agent in it. The operator can admit agents too (access_event admitted). Reviews and
// deliveries are admitted by what they are about.
//
// Of a long chain, only the last records are compared, and those that the new one names. A record that the new one
// names must be among the last, or be found by its digest. A new record with a chain_position that names no record
// must follow one of the last.

var (
	// ErrNotAdmitted means that the chain belongs to another actor, and this actor is not admitted to it.
	ErrNotAdmitted = errors.New("the actor is not admitted to the chain")
	// ErrContradicts means that a record contradicts the log, so that verification would refute it or another record.
	ErrContradicts = errors.New("it contradicts the log")

	// errLinksMoved means that what a record was judged by has changed: the caller must look again.
	errLinksMoved = errors.New("what the links were judged by has changed")
)

const (
	lastLinks   = 500     // how many of a chain's last records are compared
	lastWeight  = 4 << 20 // about how many bytes of them are kept at most
	maxLinked   = 64 << 20
	maxAgents   = 1000 // agents besides the owner that the records of a chain admit
	maxNamed    = 1000 // records that one record may name
	maxReviewed = 16   // how many reviews of reviews are followed
	linkPage    = 4    // how many rows are read at once: each can have MaxDocument bytes
	maxCatchUp  = 256  // how many records are read while no other caller can append
)

func decides(p *evidence.Payload) bool {
	return p.ActionType == evidence.HumanReview || p.ActionType == evidence.Delivery
}

// A placedLink is what links need of a record, with its place in the log.
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

func byIndex(a, b placedLink) int { return cmp.Compare(a.index, b.index) }

// A LinkError names the verification rule by which a record contradicts the log.
type LinkError struct {
	Rule   string
	Record string // the record that would be refuted
	Reason string
	itself bool
}

func (e *LinkError) Error() string {
	if e.itself {
		return fmt.Sprintf("%v by the rule %q: %s", ErrContradicts, e.Rule, e.Reason)
	}
	return fmt.Sprintf("%v: record %s would be refuted by the rule %q: %s", ErrContradicts, e.Record, e.Rule, e.Reason)
}

var linkFields = map[string]string{"position": "chain_position", "gap": "chain_position", "previous-agent": "previous_agent", "next-agent": "next_agent",
	"time": "timestamp", "cycle": "parent_request_id", "parent": "parent_request_id", "dangling": "previous_record", "approval": "modified_response",
	"modification": "modified_response", "rejection": "modified_response", "delivery": "response", "own-output": "reviewer_id", "case": "case"}

// Field is the member of the payload that the rule is about.
func (e *LinkError) Field() string { return cmp.Or(linkFields[e.Rule], "saw") }

// Is makes the error match ErrContradicts.
func (e *LinkError) Is(target error) bool { return target == ErrContradicts }

// A linkBatch is what the links of one transaction's records are judged by: committed records, and those accepted into
// the batch.
type linkBatch struct {
	known    *knownLinks
	chains   map[string]*chainState
	grown    map[string]bool // chains to which something was added
	prepared map[*judging]bool
	reviewed bool // a review was accepted
}

// Begin returns an empty batch.
func (k *knownLinks) Begin() *linkBatch {
	return &linkBatch{known: k, chains: map[string]*chainState{}, grown: map[string]bool{}, prepared: map[*judging]bool{}}
}

// Prepare updates what a record is judged by, before the transaction begins and other writers have to wait. Its
// errors are those of the store, wrapped.
func (b *linkBatch) Prepare(ctx context.Context, j *judging) error {
	s, err := b.known.prepare(ctx, j, maxCatchUp)
	if err != nil {
		return fmt.Errorf("judging record %s: %w", j.link.Payload().RecordID, err)
	}
	if s != nil && b.chains[s.id] == nil {
		b.chains[s.id] = s.clone()
	}
	b.prepared[j] = true
	return nil
}

// Judge returns an error, a *LinkError for example, if the log contradicts a record's links. size is the number of
// records in the log, inChain those in each chain. Only committed records can refuse a record: if a neighbour in the
// batch would have a part in it, Judge returns errLinksMoved.
func (b *linkBatch) Judge(j *judging, size int64, inChain map[string]int64) error {
	var s *chainState
	if chain := j.link.Payload().ChainID; chain != "" {
		if s = b.chains[chain]; s == nil || s.count != inChain[chain] {
			return errLinksMoved
		}
	}
	if !b.prepared[j] || j.upTo >= 0 && (j.upTo != size || b.reviewed) {
		return errLinksMoved
	}
	err := j.judge(s)
	if err != nil && s != nil && b.grown[s.id] {
		return errLinksMoved
	}
	return err
}

// Add adds a record that was accepted, at its index.
func (b *linkBatch) Add(index int64, r *evidence.Record) {
	b.reviewed = b.reviewed || r.Payload.ActionType == evidence.HumanReview
	if s := b.chains[r.Payload.ChainID]; s != nil && r.Payload.ChainID != "" {
		s.add(index, storage.ActorOf(&r.Payload), &placedLink{index, verify.Link(r)})
		b.grown[s.id] = true
	}
}

// Commit keeps the new state of the chains that have grown. The caller calls it after the transaction has committed.
func (b *linkBatch) Commit() {
	for chain := range b.grown {
		b.known.put(b.chains[chain])
	}
}

// Bind adds to a review or delivery the digest of the record that it is about, if this log has that record. Then it
// is bound to the record's content, not only to its id. Bind adds a saw only if the draft has none, and changes no
// digest that the actor gave. It returns an *evidence.FieldError for a review whose digests name another record than
// original_response_id: its author has not looked at what it names. It also refuses a draft in a trial's chain about
// a record outside that trial: it would look like a decision on the trial.
//
// It reports whether the draft is bound to the record whose id it gives. A delivery without an id is about what it
// saw, and is bound by that. Drafts of other acts are returned unchanged, as bound.
func (l *Ledger) Bind(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, bool, error) {
	if !decides(&draft.Payload) {
		return draft, true, nil
	}
	if draft.ApprovalStatus == evidence.Rejected && draft.ModifiedResponse != nil {
		return nil, false, &evidence.FieldError{Field: "modified_response", Reason: "a rejection has no response: leave it out, or approve with modifications"}
	}
	if draft.OriginalResponseID == "" {
		return draft, true, l.sawItsTrial(ctx, draft)
	}
	original, err := l.Record(ctx, draft.OriginalResponseID)
	if errors.Is(err, ErrNotFound) {
		return draft, false, cmp.Or(ofItsTrial(draft, ""), l.aboutSomethingElse(ctx, draft))
	}
	if err != nil {
		return nil, false, fmt.Errorf("binding %s: %w", draft.ActionType, err)
	}
	if err := ofItsTrial(draft, original.Payload.ChainID); err != nil {
		return nil, false, err
	}
	if err := fits(draft, original); err != nil {
		return nil, false, err
	}
	switch {
	case draft.PreviousRecord == original.Digest, slices.Contains(draft.Saw, original.Digest):
		return draft, true, nil
	case draft.Saw != nil:
		return nil, false, &evidence.FieldError{Field: "saw", Reason: fmt.Sprintf(
			"does not name %v, the digest of record %s in original_response_id", original.Digest, draft.OriginalResponseID)}
	}
	p := draft.Payload
	p.Saw = []evidence.Digest{original.Digest}
	bound, err := evidence.NewDraft(p)
	return bound, true, err
}

// fits refuses a review that verification would refute as long as its original is there.
func fits(draft *evidence.Draft, original *evidence.Record) error {
	if draft.ActionType != evidence.HumanReview {
		return nil
	}
	of := &original.Payload
	given, output := draft.ModifiedResponse, of.Response
	if of.ActionType == evidence.HumanReview {
		output = of.ModifiedResponse
	}
	compared := given != nil && output != nil && !slices.Contains(draft.SealedApart, "/modified_response") &&
		!slices.Contains(of.SealedApart, "/response") && !slices.Contains(of.SealedApart, "/modified_response")
	same := compared && sameText(given, output)
	switch {
	case draft.Actor() == of.Actor():
		return &evidence.FieldError{Field: "reviewer_id", Reason: fmt.Sprintf("%q acted in record %s, so another reviewer is needed", draft.Actor(), of.RecordID)}
	case !draft.Case.IsZero() && draft.Case != of.Case:
		return &evidence.FieldError{Field: "case", Reason: fmt.Sprintf("differs from the case of record %s in original_response_id: leave it out", of.RecordID)}
	case draft.ApprovalStatus == evidence.Approved && compared && !same:
		return &evidence.FieldError{Field: "modified_response", Reason: "differs from the text approved unchanged: leave it out, or approve with modifications"}
	case draft.ApprovalStatus == evidence.ApprovedWithModifications && same:
		return &evidence.FieldError{Field: "modified_response", Reason: "equals the reviewed text, so nothing was modified: approve it, without modified_response"}
	}
	return nil
}

func sameText(a, b []byte) bool {
	first, err := evidence.Canonical(a)
	if err != nil {
		return false
	}
	second, err := evidence.Canonical(b)
	return err == nil && bytes.Equal(first, second)
}

// ofItsTrial refuses a draft for a trial's chain that is about a record of another chain.
func ofItsTrial(draft *evidence.Draft, chain string) error {
	if !strings.HasPrefix(draft.ChainID, evidence.TrialPrefix) || draft.ChainID == chain {
		return nil
	}
	return &evidence.FieldError{Field: "chain_id", Reason: fmt.Sprintf("%q is the chain of a trial, but the %s is about a record outside it",
		draft.ChainID, draft.ActionType)}
}

// sawItsTrial refuses a draft for a trial's chain that names no record by id and saw none of the trial.
func (l *Ledger) sawItsTrial(ctx context.Context, draft *evidence.Draft) error {
	for _, digest := range draft.Saw {
		r, err := l.RecordByDigest(ctx, digest)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("binding %s: %w", draft.ActionType, err)
		}
		if err == nil && r.Payload.ChainID == draft.ChainID {
			return nil
		}
	}
	return ofItsTrial(draft, "")
}

// aboutSomethingElse refuses a draft whose digests are all of other records, if this log lacks the record whose id it
// gives.
func (l *Ledger) aboutSomethingElse(ctx context.Context, draft *evidence.Draft) error {
	other := ""
	for _, digest := range draft.Saw {
		r, err := l.RecordByDigest(ctx, digest)
		if errors.Is(err, ErrNotFound) {
			return nil // this can be the record
		}
		if err != nil {
			return fmt.Errorf("binding %s: %w", draft.ActionType, err)
		}
		other = r.Payload.RecordID
	}
	if other == "" {
		return nil
	}
	return &evidence.FieldError{Field: "original_response_id", Reason: fmt.Sprintf(
		"is %q, but saw names record %s", draft.OriginalResponseID, other)}
}

// A judged says whom a record judges, and what the log must still lack for that to be so.
type judged struct {
	subject  evidence.Digest // zero: no actor that the log knows
	noChain  string          // the log has no record of this chain; "": it does not matter
	noRecord string          // the log has no record with this id; "": it does not matter
}

// holds returns errLinksMoved if the log has by now what it lacked when the subject was looked up. What the log had
// then, it has unchanged for ever.
func (j *judged) holds(found storage.Found) error {
	_, there := found.Places[j.noRecord]
	if j.noRecord != "" && there || j.noChain != "" && found.Chains[j.noChain] > 0 {
		return errLinksMoved
	}
	return nil
}

// lookSubjects finds out from the log whom each of the records judges. Callers have no say in it.
func (l *Ledger) lookSubjects(ctx context.Context, a *appending) error {
	a.judged = make([]judged, len(a.records))
	for i, r := range a.records {
		look := &subjectLook{ctx: ctx, ledger: l, earlier: a.records[:i], judged: &a.judged[i]}
		subject, err := verify.JudgedActor(&r.Payload, verify.NamedActor(&r.Payload), look)
		if err != nil {
			return fmt.Errorf("looking for the actor that record %s judges: %w", r.Payload.RecordID, err)
		}
		if subject.IsZero() {
			subject = look.left
		}
		a.judged[i].subject = subject
	}
	return nil
}

// A subjectLook is a census.Log that notes what the log lacks.
type subjectLook struct {
	ctx     context.Context
	ledger  *Ledger
	earlier []*evidence.Record // of the same transaction
	judged  *judged
	left    evidence.Digest // the subject of a trial whose submission, which names it, has expired
}

func (s *subjectLook) First(chain string) (*verify.LoggedRecord, error) {
	rows, err := s.ledger.cfg.Store.InChain(s.ctx, chain, 0, 1)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		record, err := rows[0].Record()
		if errors.Is(err, ErrExpired) {
			return nil, s.leftInChain(chain)
		}
		return seen(record, err)
	}
	s.judged.noChain = chain
	return s.before(func(p *evidence.Payload) bool { return p.ChainID == chain }), nil
}

// before finds a record of the same transaction.
func (s *subjectLook) before(is func(*evidence.Payload) bool) *verify.LoggedRecord {
	for _, r := range s.earlier {
		if is(&r.Payload) {
			return verify.Logged(r, verify.NamedActor(&r.Payload))
		}
	}
	return nil
}

func (s *subjectLook) Named(id string) (*verify.LoggedRecord, error) {
	row, err := s.ledger.cfg.Store.ByRecordID(s.ctx, id)
	if err == nil {
		record, err := row.Record()
		if errors.Is(err, ErrExpired) { // the log keeps what the rules need of it, unless a recorder made it
			if err := s.refuseSeen(&row, err); err != nil {
				return nil, err
			}
			return &verify.LoggedRecord{Chain: row.ChainID, Digest: row.Digest, Actor: row.Actor}, nil
		}
		return seen(record, err)
	}
	if !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	s.judged.noRecord = id
	return s.before(func(p *evidence.Payload) bool { return p.RecordID == id }), nil
}

// refuseSeen returns an error unless an expired record is known not to be a recorder's: of that, the log does not know any more which agent was seen,
// and so whom a review would judge. A reader who kept a copy would know. A review in a trial judges the agent on trial.
func (s *subjectLook) refuseSeen(row *storage.Row, expired error) error {
	if strings.HasPrefix(row.ChainID, evidence.TrialPrefix) {
		return nil
	}
	role, err := s.ledger.roleOf(s.ctx, row.Actor)
	switch {
	case err != nil:
		return err
	case role == evidence.RoleRecorder:
		return fmt.Errorf("%w; a recorder made it, and the log does not know any more which agent it was about", expired)
	case role == "":
		return fmt.Errorf("%w; the log does not know any more whether a recorder made it, and so whom the review judges", expired)
	}
	return nil
}

// roleOf finds the role of an actor by its tag: from the key events, or if its key was made as it was first used, from its newest record.
func (l *Ledger) roleOf(ctx context.Context, tag evidence.Digest) (evidence.Role, error) {
	known, err := l.Keys(ctx)
	if err != nil {
		return "", err
	}
	for _, k := range known.Keys() {
		if evidence.ActorTag(k.Role, k.Name) == tag {
			return k.Role, nil
		}
	}
	rows, err := l.lastOf(ctx, tag, 1)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	record, err := rows[0].Record()
	if errors.Is(err, ErrExpired) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return record.Payload.Role(), nil
}

func seen(r *evidence.Record, err error) (*verify.LoggedRecord, error) {
	if err != nil {
		return nil, err
	}
	return verify.Logged(r, verify.NamedActor(&r.Payload)), nil
}

// leftInChain finds the subject of a trial whose submission has expired: the log keeps the counts of the trial's other
// records.
func (s *subjectLook) leftInChain(chain string) error {
	for row, err := range s.ledger.chainRows(s.ctx, chain) {
		if err != nil {
			return err
		}
		if row.Counts.SubjectSeq > 0 {
			s.left = row.Counts.Subject
			break
		}
	}
	return nil
}

// A Counted is a record of an actor, or a judgment about one, as the log has counted it.
type Counted struct {
	Index    int64
	RecordID string
	Digest   evidence.Digest
	Counts   evidence.LogCounts
	Record   *evidence.Record // nil: it has expired
}

// OfActor iterates over the records of an actor that the log has counted, in log order, and holds a few at a time. It
// takes time for these records alone, however long the log is. It ends after an error, ErrDamaged if a number is missing.
func (l *Ledger) OfActor(ctx context.Context, role evidence.Role, name string) iter.Seq2[Counted, error] {
	tag := evidence.ActorTag(role, name)
	return counted(func(from int64) ([]storage.Row, error) { return l.cfg.Store.OfActor(ctx, tag, from, smallPage) },
		func(c evidence.LogCounts) int64 { return c.ActorSeq })
}

// LastOfActor returns the last n records of an actor that the log has counted, the newest first. It reads few rows, however
// long the log is. Its errors are those of the store, and of records that cannot be read.
func (l *Ledger) LastOfActor(ctx context.Context, role evidence.Role, name string, n int64) (list []Counted, err error) {
	rows, err := l.lastOf(ctx, evidence.ActorTag(role, name), n)
	for i := range slices.Backward(rows) {
		c, err := countedOf(&rows[i])
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, err
}

func countedOf(row *storage.Row) (c Counted, err error) {
	c = Counted{Index: row.Index, RecordID: row.RecordID, Digest: row.Digest, Counts: row.Counts}
	if row.Entry == nil { // otherwise it has expired
		c.Record, err = row.Record()
	}
	return c, err
}

// lastOf returns the last n rows of an actor, in log order.
func (l *Ledger) lastOf(ctx context.Context, tag evidence.Digest, n int64) ([]storage.Row, error) {
	size, err := l.Size(ctx)
	if err != nil {
		return nil, err
	}
	from := sort.Search(int(size), func(from int) bool { // the first index from which there are at most n
		if err != nil {
			return true
		}
		var rows []storage.Row
		rows, err = l.cfg.Store.OfActor(ctx, tag, int64(from), n+1)
		return int64(len(rows)) <= n
	})
	if err != nil {
		return nil, err
	}
	return l.cfg.Store.OfActor(ctx, tag, int64(from), n)
}

// About iterates over the judgments about an actor, as OfActor does over the actor's records.
func (l *Ledger) About(ctx context.Context, role evidence.Role, name string) iter.Seq2[Counted, error] {
	tag := evidence.SubjectTag(role, name)
	return counted(func(from int64) ([]storage.Row, error) { return l.cfg.Store.About(ctx, tag, from, smallPage) },
		func(c evidence.LogCounts) int64 { return c.SubjectSeq })
}

// CountsFrom reports whether the log has counted a record of an actor, or a judgment about one, from an index on. It takes
// the same time in a log of any length.
func (l *Ledger) CountsFrom(ctx context.Context, role evidence.Role, name string, from int64) (bool, error) {
	own, err := l.cfg.Store.OfActor(ctx, evidence.ActorTag(role, name), from, 1)
	if err != nil || len(own) > 0 {
		return err == nil, err
	}
	about, err := l.cfg.Store.About(ctx, evidence.SubjectTag(role, name), from, 1)
	return len(about) > 0, err
}

func counted(page func(from int64) ([]storage.Row, error), seq func(evidence.LogCounts) int64) iter.Seq2[Counted, error] {
	return func(yield func(Counted, error) bool) {
		n := int64(0)
		opened(paged(0, page), func(row *storage.Row) (Counted, error) {
			if n++; seq(row.Counts) != n {
				return Counted{}, fmt.Errorf("%w: row %d was counted as number %d, but is number %d", ErrDamaged, row.Index, seq(row.Counts), n)
			}
			return countedOf(row)
		}, "reading what the log counts of an actor")(yield)
	}
}
