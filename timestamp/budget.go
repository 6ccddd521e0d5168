package timestamp

import (
	"crypto/sha256"
	"sync"
)

// Bounds of the search for certificate paths. A step compares a certificate with one that may have issued it: see
// search.count. docs/format.md has the same numbers, because two verifiers must agree.
const (
	maxSteps     = 100     // of one search
	maxOfShare   = 512     // new steps of one record
	allowance    = 32      // new steps that each record has for itself
	maxFund      = 1024    // new steps of all records together beyond that
	maxKnown     = 256     // searches of a file that are remembered, the first ones
	maxKnownSize = 1 << 16 // bytes of the certificates of a remembered search
)

// A Budget bounds the search for certificate paths in one file, because the sender of the file controls its
// certificates. Every record has an allowance. Beyond it, all records share a fund. A search that was already made in
// the file is free. The budget counts steps and measures no time, so the answer is the same on every machine. It is
// safe for concurrent use.
//
// What it allows depends on the order of records. To examine several at once, give each a Share, and call Settle in
// the order of the file. If Settle returns false, the share was too large or too small: examine that record again
// with a share of Turn.
type Budget struct {
	mu    sync.Mutex // guards what follows
	fund  int
	known map[[sha256.Size]byte]answer
}

// NewBudget makes the budget of a file.
func NewBudget() *Budget { return &Budget{fund: maxFund, known: map[[sha256.Size]byte]answer{}} }

// A Share is the budget of one record. It is not safe for concurrent use.
type Share struct {
	budget *Budget
	turn   bool // whether all records before it were settled when Turn made it
	limit  int
	known  int // how many searches the budget knew then

	spent int
	short bool // whether a search was refused because the limit was reached
	own   map[[sha256.Size]byte]answer
	fresh []spending // searches that it made, in order
}

// An answer is the result of a search.
type answer struct {
	paths Paths
	err   error
}

type spending struct {
	key      [sha256.Size]byte
	steps    int
	remember bool
}

// Share returns the share of a record, before its turn.
func (b *Budget) Share() *Share { return b.share(false) }

// Turn returns the share of the record that comes after all settled ones.
func (b *Budget) Turn() *Share { return b.share(true) }

func (b *Budget) share(turn bool) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &Share{budget: b, turn: turn, limit: b.limit(), known: len(b.known), own: map[[sha256.Size]byte]answer{}}
}

func (b *Budget) limit() int { return min(maxOfShare, allowance+b.fund) }

// Settle takes a share back, in the order of the file. It returns false, and changes nothing, if a share of Turn
// could have given other results. Then the caller examines the record again with a share of Turn. Settle returns true
// for every share of Turn.
func (b *Budget) Settle(s *Share) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	cost := 0
	for _, spent := range s.fresh {
		if _, known := b.known[spent.key]; !known {
			cost += spent.steps
		}
	}
	same := s.turn || s.limit == b.limit() && s.known == len(b.known)
	if !same && (s.short || cost > b.limit()) {
		return false
	}
	b.fund -= max(0, cost-allowance)
	for _, spent := range s.fresh {
		if spent.remember && len(b.known) < maxKnown {
			b.known[spent.key] = s.own[spent.key]
		}
	}
	return true
}

func (b *Budget) answer(key [sha256.Size]byte) (a answer, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, known = b.known[key]
	return a, known
}

// once runs do if the file has not run it before and there are enough steps left.
func (s *Share) once(what spending, do func() answer) answer {
	if a, known := s.own[what.key]; known {
		return a
	}
	if a, known := s.budget.answer(what.key); known {
		return a
	}
	if s.spent+what.steps > s.limit {
		s.short = true
		return answer{err: errSpent}
	}
	s.spent += what.steps
	a := do()
	s.own[what.key] = a
	s.fresh = append(s.fresh, what)
	return a
}

// Once runs do, which costs one step, such as checking the signature of a revocation list. key identifies the work.
// It runs once in a file, and its error is remembered. Once returns ErrEffort if no step is left.
func (s *Share) Once(key [sha256.Size]byte, do func() error) error {
	return s.once(spending{key, 1, true}, func() answer { return answer{err: do()} }).err
}
