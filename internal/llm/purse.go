package llm

import (
	"errors"
	"sync"
)

// ErrSpent says that a call was not made because it might have cost more than is left.
var ErrSpent = errors.New("not enough money is left for the call")

// A Purse is what calls may cost together, in millionths of a US dollar, up to a ceiling. It is safe for concurrent
// use. What is set aside for calls that are under way counts as spent, so that calls made at the same time cannot go beyond the ceiling together: it is exceeded only by as much as calls that are under
// way cost more than was estimated for them.
type Purse struct {
	ceiling int64

	mu       sync.Mutex // held while what follows is read or written
	spent    int64
	reserved int64
}

// NewPurse makes a purse from which so much has been spent already. A ceiling of 0 is none: then it only counts.
func NewPurse(ceiling, spent int64) *Purse { return &Purse{ceiling: ceiling, spent: spent} }

// Reserve sets money aside before a call is made, as much as the call may cost. When the call is over, settle says what it
// did cost. Where there is not enough left, the error is ErrSpent, and the call must not be made.
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

// Spent is what calls that are over have cost, and what was spent before.
func (p *Purse) Spent() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}
