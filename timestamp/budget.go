package timestamp

import (
	"crypto/sha256"
	"sync"
)

// Bounds of what looking for certificate paths may cost. A step is a certificate held against one that may have issued it: see
// search.count. docs/format.md has the same numbers, as two verifiers must agree.
const (
	maxSteps     = 100     // of one search
	maxOfShare   = 512     // new ones of one record
	allowance    = 32      // new ones that each record has for itself
	maxFund      = 1024    // new ones of all records beyond that
	maxKnown     = 256     // searches of a file that are remembered, the first ones
	maxKnownSize = 1 << 16 // bytes of the certificates of a search that is remembered
)

// A Budget bounds what looking for certificate paths may cost in one file, of which whoever hands it over chooses the certificates.
// Every record has an allowance, and beyond it all records together have a fund; a search that was made before in the file is free. It
// counts, and measures no time, so that the answer is the same on every machine. It is safe for concurrent use.
//
// What it allows depends on the order of records. To look at several at once, give each a share by Share, and Settle these in the order
// of the file: the few that turn out to have had too much or too little are to be looked at again, with a share by Turn.
type Budget struct {
	mu    sync.Mutex // guards what follows
	fund  int
	known map[[sha256.Size]byte]answer
}

// NewBudget makes the budget of a file.
func NewBudget() *Budget { return &Budget{fund: maxFund, known: map[[sha256.Size]byte]answer{}} }

// A Share is what one record may cost. It is not safe for concurrent use.
type Share struct {
	budget *Budget
	turn   bool // whether all records before it were settled when it was given out
	limit  int
	known  int // how many searches the budget knew then

	spent int
	short bool // whether a search was refused because the limit was reached
	own   map[[sha256.Size]byte]answer
	fresh []spending // searches that it made, in their order
}

// An answer is what a search found.
type answer struct {
	paths Paths
	err   error
}

type spending struct {
	key      [sha256.Size]byte
	steps    int
	remember bool
}

// Share gives out the share of a record whose turn may not have come.
func (b *Budget) Share() *Share { return b.share(false) }

// Turn gives out the share of the record that comes after all those that were settled.
func (b *Budget) Turn() *Share { return b.share(true) }

func (b *Budget) share(turn bool) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &Share{budget: b, turn: turn, limit: b.limit(), known: len(b.known), own: map[[sha256.Size]byte]answer{}}
}

func (b *Budget) limit() int { return min(maxOfShare, allowance+b.fund) }

// Settle takes a share back, in the order of the file. It returns false, and changes nothing, if what was found with it may differ from
// what would have been found when its turn had come: then the record is to be looked at again, with a share by Turn, of which Settle is
// always true.
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

// once does what costs some steps, if it was not done before in the file and there are so many left.
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

// Once does something that costs as much as one step, such as checking the signature of a revocation list, and that has a key of its
// own. It is done once in a file, and its error remembered. The error is ErrEffort if there was no step left for it.
func (s *Share) Once(key [sha256.Size]byte, do func() error) error {
	return s.once(spending{key, 1, true}, func() answer { return answer{err: do()} }).err
}
