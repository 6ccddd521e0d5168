package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/llm"
	"jurat/internal/subject"
	"jurat/jury"
)

// MaxAsked is how often a model is asked at most for one valid answer.
const MaxAsked = 3

const (
	maxTrips       = 2    // of the canary, for one answer
	maxRecorded    = 8192 // bytes of an invalid answer that are recorded
	assumedTokens  = 8192 // of an answer, if the settings leave its length to the provider
	largestCounted = 1<<53 - 1
	maxRemembered  = 1000 // trials in which this juror tripped the canary and has given no valid answer since
)

// Config holds what a seat needs.
type Config struct {
	Model    llm.Model
	Settings llm.Settings // the settings of Model; they give the price of a call
	Prices   llm.Prices
	Budget   *llm.Purse       // nil: no limit on costs
	Now      func() time.Time // nil: time.Now

	// Consequential reports whether a call has consequences, by its name. An answer that lists none of such calls is
	// objected to. nil: no call is known to have consequences.
	Consequential func(*subject.ToolCall) bool
}

// A Juror answers for a seat, also the judge's, by asking a language model. It is safe for concurrent use.
type Juror struct {
	config Config

	mu    sync.Mutex
	moved map[evidence.Digest]bool // trials, by their submission, in which this juror tripped the canary and has given no valid answer since
}

var _ jury.Juror = (*Juror)(nil)

// New seats a model. It returns an error if c has no model, or has a budget and no price for the model.
func New(c Config) (*Juror, error) {
	if c.Model == nil {
		return nil, errors.New("seating a model: there is none")
	}
	if _, priced := c.Prices.Of(c.Settings.Model); c.Budget != nil && !priced {
		return nil, fmt.Errorf("seating a model: there is a budget, and no price for the model %q", c.Settings.Model)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Juror{config: c, moved: map[evidence.Digest]bool{}}, nil
}

// origin tells what the provider reported: the model, and its snapshot or other version.
func (j *Juror) origin(a llm.Answer) jury.Origin {
	name, snapshot := llm.Snapshot(a.Model)
	if asked := j.config.Settings.Model; jury.IsModel(a.Model, asked) && !jury.IsModel(name, asked) {
		name = a.Model // the seat is for a snapshot
	}
	return jury.Origin{Model: name, ModelVersion: cmp.Or(snapshot, a.Version)}
}

// Answer implements jury.Juror. It asks until an answer is valid, and returns the origin even if none is. It returns
// an error for a brief of which it can make no prompt. Otherwise its error is that of the last attempt:
// jury.ErrInvalid, jury.ErrBlocked, jury.ErrCeiling, or the provider's.
func (j *Juror) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	s, err := sit(b)
	if err != nil {
		return jury.Answer{}, err
	}
	s.consequential = j.config.Consequential
	t := &talk{Juror: j, sitting: s, effort: jury.Effort{Peers: s.peers.ids}}
	r, from, err := t.hold(ctx)
	origin := j.origin(from)
	metadata, encodeErr := t.effort.Encode()
	if encodeErr != nil {
		return jury.Answer{}, errors.Join(err, encodeErr)
	}
	origin.Metadata = metadata
	if err != nil {
		return jury.Answer{Origin: origin}, err
	}
	r.Origin = origin
	return *r, nil
}
