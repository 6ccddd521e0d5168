// Package links judges the links of a record, before the record gets its place in the log.
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
package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/verify"
)

var (
	// ErrNotAdmitted means that the chain belongs to another actor, and this actor is not admitted to it.
	ErrNotAdmitted = errors.New("the actor is not admitted to the chain")
	// ErrContradicts means that a record contradicts the log, so that verification would refute it or another record.
	ErrContradicts = errors.New("it contradicts the log")

	// ErrMoved means that what a record was judged by has changed: the caller must look again.
	ErrMoved = errors.New("what the links were judged by has changed")
)

const (
	LastLinks   = 500     // how many of a chain's last records are compared
	lastWeight  = 4 << 20 // about how many bytes of them are kept at most
	maxLinked   = 64 << 20
	maxAgents   = 1000 // agents besides the owner that the records of a chain admit
	maxNamed    = 1000 // records that one record may name
	maxReviewed = 16   // how many reviews of reviews are followed
	linkPage    = 4    // how many rows are read at once: each can have MaxDocument bytes
	maxCatchUp  = 256  // how many records are read while no other caller can append
)

// Judged reports whether a record's links are judged. The acts of trials and of the operator have rules of their own.
func Judged(p *evidence.Payload) bool {
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

// An Error names the verification rule by which a record contradicts the log.
type Error struct {
	Rule   string
	Record string // the record that would be refuted
	Reason string
	itself bool
}

func (e *Error) Error() string {
	if e.itself {
		return fmt.Sprintf("%v by the rule %q: %s", ErrContradicts, e.Rule, e.Reason)
	}
	return fmt.Sprintf("%v: record %s would be refuted by the rule %q: %s", ErrContradicts, e.Record, e.Rule, e.Reason)
}

var fields = map[string]string{"position": "chain_position", "gap": "chain_position", "previous-agent": "previous_agent", "next-agent": "next_agent",
	"time": "timestamp", "cycle": "parent_request_id", "parent": "parent_request_id", "dangling": "previous_record", "approval": "modified_response",
	"modification": "modified_response", "rejection": "modified_response", "delivery": "response", "own-output": "reviewer_id", "case": "case"}

// Field is the member of the payload that the rule is about.
func (e *Error) Field() string { return cmp.Or(fields[e.Rule], "saw") }

// Is makes the error match ErrContradicts.
func (e *Error) Is(target error) bool { return target == ErrContradicts }

// A Batch is what the links of one transaction's records are judged by: committed records, and those accepted into
// the batch.
type Batch struct {
	known    *Known
	chains   map[string]*chainState
	grown    map[string]bool // chains to which something was added
	prepared map[*Judging]bool
	reviewed bool // a review was accepted
}

// Begin returns an empty batch.
func (k *Known) Begin() *Batch {
	return &Batch{known: k, chains: map[string]*chainState{}, grown: map[string]bool{}, prepared: map[*Judging]bool{}}
}

// Prepare updates what a record is judged by, before the transaction begins and other writers have to wait. Its
// errors are those of the store, wrapped.
func (b *Batch) Prepare(ctx context.Context, j *Judging) error {
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

// Judge returns an error, a *Error for example, if the log contradicts a record's links. size is the number of
// records in the log, inChain those in each chain. Only committed records can refuse a record: if a neighbour in the
// batch would have a part in it, Judge returns ErrMoved.
func (b *Batch) Judge(j *Judging, size int64, inChain map[string]int64) error {
	var s *chainState
	if chain := j.link.Payload().ChainID; chain != "" {
		if s = b.chains[chain]; s == nil || s.count != inChain[chain] {
			return ErrMoved
		}
	}
	if !b.prepared[j] || j.upTo >= 0 && (j.upTo != size || b.reviewed) {
		return ErrMoved
	}
	err := j.judge(s)
	if err != nil && s != nil && b.grown[s.id] {
		return ErrMoved
	}
	return err
}

// Add adds a record that was accepted, at its index.
func (b *Batch) Add(index int64, r *evidence.Record) {
	b.reviewed = b.reviewed || r.Payload.ActionType == evidence.HumanReview
	if s := b.chains[r.Payload.ChainID]; s != nil && r.Payload.ChainID != "" {
		s.add(index, storage.ActorOf(&r.Payload), &placedLink{index, verify.Link(r)})
		b.grown[s.id] = true
	}
}

// Commit keeps the new state of the chains that have grown. The caller calls it after the transaction has committed.
func (b *Batch) Commit() {
	for chain := range b.grown {
		b.known.put(b.chains[chain])
	}
}
