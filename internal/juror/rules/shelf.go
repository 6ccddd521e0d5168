package rules

import (
	"context"
	"fmt"

	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/jury"
)

// A shelf keeps what a panel read last, and the findings of the checklist: every brief of a trial has the same
// evidence, and the rules find the same for each seat. It is safe for concurrent use. A nil shelf keeps nothing.
type shelf struct {
	reading chan struct{} // holds one token while a juror reads evidence or looks up a study
	kept    map[evidence.Digest]study
}

// A study is evidence that was read, with its findings.
type study struct {
	read  *reading
	found []jury.Finding
}

// mostKept is how many conversations a shelf keeps: a panel may hold two trials in turns.
const mostKept = 2

func newShelf() *shelf {
	return &shelf{reading: make(chan struct{}, 1), kept: map[evidence.Digest]study{}}
}

// study reads evidence and runs the checklist over it, unless the shelf has the result. One juror reads and the
// others wait, each until its own context ends.
func (h *shelf) study(ctx context.Context, material []byte) (study, error) {
	if h == nil {
		return goThrough(ctx, material)
	}
	digest := evidence.DigestOf(material)
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	case <-ctx.Done():
		return study{}, ctx.Err()
	}
	if s, there := h.kept[digest]; there {
		return s, nil
	}
	s, err := goThrough(ctx, material)
	if err != nil {
		return study{}, err
	}
	if len(h.kept) == mostKept {
		clear(h.kept)
	}
	h.kept[digest] = s
	return s, nil
}

// goThrough reads evidence and runs the checklist over it.
func goThrough(ctx context.Context, material []byte) (study, error) {
	c, err := subject.Parse(material)
	if err != nil {
		return study{}, fmt.Errorf("reading the evidence: %w", err)
	}
	r := read(ctx, c)
	found := findAll(r)
	if err := ctx.Err(); err != nil {
		return study{}, err
	}
	r.settle()
	return study{r, found}, nil
}
