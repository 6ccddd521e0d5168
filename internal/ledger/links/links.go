// Package links judges what a record says that it follows, before it has its place in the log.
//
// What agents and reviewers seal is held against what it says that it follows, by the rules of the verifier itself, before it has its place
// in the log: what contradicts another record there would be refuted for ever, and with it the chain that somebody else relies on. So no
// record is let in with which a file of its chain would be refuted that was not refuted before.
//
// A chain has an owner: the actor of its first record. Others are admitted to it by the next_agent of a record in it, by having a record in it,
// or by the operator (access_event admitted). Reviews and deliveries are admitted by what they are about.
//
// Of a long chain the last records are looked at, and those that the new one names. What a record names must be
// among these, or be found by its digest; one that stands at a place without naming anything must follow one of the last.
package links

import (
	"cmp"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/verify"
)

var (
	// ErrNotAdmitted says that a chain is another actor's, who has not let this one in.
	ErrNotAdmitted = errors.New("the actor is not admitted to the chain")
	// ErrContradicts says that a record contradicts what is in the log, so that verification would refute it or another.
	ErrContradicts = errors.New("it contradicts the log")

	// ErrMoved says that what a record was judged by has changed: it is to be looked at again.
	ErrMoved = errors.New("what the links were judged by has changed")
)

const (
	LastLinks   = 500     // records of a chain that are looked at
	lastWeight  = 4 << 20 // and about how many bytes at most are kept of them
	maxLinked   = 64 << 20
	maxAgents   = 1000 // agents beside the owner that the records of a chain admit
	maxNamed    = 1000 // records that one record may name
	maxReviewed = 16   // reviews of reviews that are followed
	linkPage    = 4    // rows that are read at once: each can have MaxDocument bytes
	maxCatchUp  = 256  // records that are read while nobody else can append
)

// Judged reports whether a record's links are judged: the acts of trials and of the operator have laws of their own.
func Judged(p *evidence.Payload) bool {
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

func byIndex(a, b placedLink) int { return cmp.Compare(a.index, b.index) }

// An Error says by which rule of verification a record contradicts what is in the log.
type Error struct {
	Rule   string
	Record string // which would be refuted
	Reason string
	itself bool
}

func (e *Error) Error() string {
	if e.itself {
		return fmt.Sprintf("%v by the rule %q: %s", ErrContradicts, e.Rule, e.Reason)
	}
	return fmt.Sprintf("%v: record %s would be refuted by the rule %q: %s", ErrContradicts, e.Record, e.Rule, e.Reason)
}

// Field is the member of the payload that the rule is about.
func (e *Error) Field() string {
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
func (e *Error) Is(target error) bool { return target == ErrContradicts }
