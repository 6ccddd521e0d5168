package juror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/jury"
)

// A shelf keeps the evidence that a panel last went through, with what the checklist found in it: every brief of a trial
// has the same evidence, and who asks has no part in what the rules find. It is safe for concurrent use; whoever comes
// while another is reading waits for them. A nil shelf keeps nothing.
type shelf struct {
	mu     sync.Mutex
	latest []*study
}

// kept is how many conversations a shelf keeps: what a panel works on, and what it worked on before.
const kept = 2

// A study is evidence that someone reads or has read.
type study struct {
	of    evidence.Digest
	done  chan struct{} // closed when the rest is set
	read  *reading
	found []jury.Finding
	err   error
}

var errUnread = errors.New("reading the evidence was given up")

// study reads evidence and runs the checklist over it, unless that has been done.
func (h *shelf) study(ctx context.Context, material []byte) (*reading, []jury.Finding, error) {
	if h == nil {
		return goThrough(ctx, material)
	}
	digest := evidence.DigestOf(material)
	for {
		s, mine := h.take(digest)
		if mine {
			return h.fill(ctx, s, material)
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		if s.err == nil {
			return s.read, s.found, nil
		}
		// The other's time may have been up, and this one's may not: its turn.
	}
}

// take returns the study of some evidence, and whether the caller is to fill it.
func (h *shelf) take(digest evidence.Digest) (s *study, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.latest, func(s *study) bool { return s.of == digest })
	if i < 0 {
		s, mine = &study{of: digest, done: make(chan struct{}), err: errUnread}, true
	} else {
		s = h.latest[i]
		h.latest = slices.Delete(h.latest, i, i+1)
	}
	h.latest = slices.Insert(h.latest, 0, s)
	if len(h.latest) > kept {
		clear(h.latest[kept:])
		h.latest = h.latest[:kept]
	}
	return s, mine
}

// fill goes through the evidence for all who wait for it. What failed is not kept.
func (h *shelf) fill(ctx context.Context, s *study, material []byte) (*reading, []jury.Finding, error) {
	defer func() {
		if s.err != nil {
			h.drop(s)
		}
		close(s.done)
	}()
	s.read, s.found, s.err = goThrough(ctx, material)
	return s.read, s.found, s.err
}

func (h *shelf) drop(s *study) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = slices.DeleteFunc(h.latest, func(one *study) bool { return one == s })
}

// goThrough reads evidence and runs the checklist over it.
func goThrough(ctx context.Context, material []byte) (*reading, []jury.Finding, error) {
	c, err := subject.Parse(material)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the evidence: %w", err)
	}
	r := readWithin(ctx, c)
	found := findAll(r)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	r.settle()
	return r, found, nil
}
