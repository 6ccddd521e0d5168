package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
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

// linksJudged reports whether a record's links are judged. The acts of trials and of the operator have rules of their own.
func linksJudged(p *evidence.Payload) bool {
	if role := p.Role(); role != evidence.RoleAgent && role != evidence.RoleReviewer {
		return false
	}
	return p.ChainID != "" || !p.PreviousRecord.IsZero() || len(p.Saw) > 0 || decides(p)
}

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
func (k *knownLinks) Bind(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, bool, error) {
	decides := draft.ActionType == evidence.HumanReview || draft.ActionType == evidence.Delivery
	if !decides {
		return draft, true, nil
	}
	if draft.ApprovalStatus == evidence.Rejected && draft.ModifiedResponse != nil {
		return nil, false, &evidence.FieldError{Field: "modified_response", Reason: "a review that rejects must not give a response: leave it out, or approve with modifications"}
	}
	if draft.OriginalResponseID == "" {
		return draft, true, k.sawItsTrial(ctx, draft)
	}
	original, err := k.record(k.store.ByRecordID(ctx, draft.OriginalResponseID))
	if errors.Is(err, ErrNotFound) {
		return draft, false, cmp.Or(ofItsTrial(draft, ""), k.aboutSomethingElse(ctx, draft))
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
	case slices.Contains(named(draft), original.Digest):
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

func (k *knownLinks) record(row storage.Row, err error) (*evidence.Record, error) {
	if err != nil {
		return nil, err
	}
	return row.Record()
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
		return &evidence.FieldError{Field: "reviewer_id", Reason: fmt.Sprintf("%q also acted in record %s: reviewers do not review their own output", draft.Actor(), of.RecordID)}
	case !draft.Case.IsZero() && draft.Case != of.Case:
		return &evidence.FieldError{Field: "case", Reason: fmt.Sprintf("differs from the case of record %s in original_response_id: leave it out", of.RecordID)}
	case draft.ApprovalStatus == evidence.Approved && compared && !same:
		return &evidence.FieldError{Field: "modified_response", Reason: "differs from the text that the review approves unchanged: leave it out, or approve with modifications"}
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
func (k *knownLinks) sawItsTrial(ctx context.Context, draft *evidence.Draft) error {
	for _, digest := range draft.Saw {
		r, err := k.record(k.store.ByDigest(ctx, digest))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("binding %s: %w", draft.ActionType, err)
		}
		if err == nil && r.Payload.ChainID == draft.ChainID {
			return nil
		}
	}
	return ofItsTrial(draft, "")
}

func named(draft *evidence.Draft) []evidence.Digest {
	return append([]evidence.Digest{draft.PreviousRecord}, draft.Saw...)
}

// aboutSomethingElse refuses a draft whose digests are all of other records, if this log lacks the record whose id it
// gives.
func (k *knownLinks) aboutSomethingElse(ctx context.Context, draft *evidence.Draft) error {
	other := ""
	for _, digest := range draft.Saw {
		r, err := k.record(k.store.ByDigest(ctx, digest))
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
