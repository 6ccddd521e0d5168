package llm

import (
	"errors"
	"sync"
)

// ErrSpent says that a call was not made because it could cost more than is left.
var ErrSpent = errors.New("not enough money is left for the call")

// A Purse limits what calls may cost together, in millionths of a US dollar. It is safe for concurrent use. The
// amount reserved for running calls counts as spent, so concurrent calls cannot exceed the ceiling together. Only
// calls that cost more than their estimate can exceed it.
type Purse struct {
	ceiling int64

	mu       sync.Mutex // held while the fields below are read or written
	spent    int64
	reserved int64
}

// NewPurse makes a purse with an amount already spent. A ceiling of 0 sets no limit; the purse then only counts.
func NewPurse(ceiling, spent int64) *Purse { return &Purse{ceiling: ceiling, spent: spent} }

// Limited reports whether a ceiling can refuse a call.
func (p *Purse) Limited() bool { return p.ceiling > 0 }

// Reserve sets aside the estimated cost of a call before it is made. After the call, the caller passes the actual
// cost to settle. If too little is left, Reserve returns ErrSpent, and the caller must not make the call.
func (p *Purse) Reserve(estimate int64) (settle func(actual int64), err error) {
	estimate = max(estimate, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ceiling > 0 && estimate > p.ceiling-p.spent-p.reserved {
		return nil, ErrSpent
	}
	p.reserved += estimate
	var once sync.Once
	return func(actual int64) {
		once.Do(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.reserved -= estimate
			p.spent += max(actual, 0)
		})
	}, nil
}

// Spent returns the cost of all finished calls, and what was spent before.
func (p *Purse) Spent() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}
