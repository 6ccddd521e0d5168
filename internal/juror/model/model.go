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
	"jurat/jury"
)

// MaxAsked is how often a model is asked for one answer that counts.
const MaxAsked = 3

const (
	maxTrips       = 2    // of the canary, in one answer
	maxRecorded    = 8192 // bytes of an answer that does not count
	assumedTokens  = 8192 // of an answer whose length the settings leave to the provider
	largestCounted = 1<<53 - 1
	maxRemembered  = 1000 // trials in which this juror was moved by the record and has not answered since
)

// Config is what a seat is taken with.
type Config struct {
	Model    llm.Model
	Settings llm.Settings // that Model asks with: for what a call may cost
	Prices   llm.Prices
	Budget   *llm.Purse       // nil: calls may cost what they cost
	Now      func() time.Time // nil: time.Now
}

// A Juror answers for a seat by asking a language model. It is a final judge as well. It is safe for concurrent use.
type Juror struct {
	config Config

	mu    sync.Mutex
	moved map[evidence.Digest]bool // trials, by their submission: the record moved this juror, and no answer has said so yet
}

var (
	_ jury.Juror = (*Juror)(nil)
	_ jury.Judge = (*Juror)(nil)
)

// New seats a model.
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

// Evaluate implements jury.Juror.
func (j *Juror) Evaluate(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	r, origin, err := j.answer(ctx, b)
	if err != nil {
		return jury.Opinion{}, origin, err
	}
	return r.opinion, origin, nil
}

// Discuss implements jury.Juror.
func (j *Juror) Discuss(ctx context.Context, b jury.Brief) (jury.Speech, jury.Origin, error) {
	r, origin, err := j.answer(ctx, b)
	if err != nil {
		return jury.Speech{}, origin, err
	}
	return r.speech, origin, nil
}

// Judge implements jury.Judge.
func (j *Juror) Judge(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	return j.Evaluate(ctx, b)
}

// origin is what a provider reported of what answered: the model, and as its version the snapshot, or what else tells versions apart.
func (j *Juror) origin(a llm.Answer) jury.Origin {
	name, snapshot := llm.Snapshot(a.Model)
	if a.Model == j.config.Settings.Model {
		name = a.Model // the seat is for a snapshot
	}
	return jury.Origin{Model: name, ModelVersion: cmp.Or(snapshot, a.Version)}
}

// answer asks until an answer counts, and tells how it came about, also where none does.
func (j *Juror) answer(ctx context.Context, b jury.Brief) (*reply, jury.Origin, error) {
	s, err := sit(b)
	if err != nil {
		return nil, jury.Origin{}, err
	}
	t := &talk{Juror: j, sitting: s, effort: jury.Effort{Peers: s.peers.ids}}
	r, from, err := t.hold(ctx)
	origin := j.origin(from)
	metadata, encodeErr := t.effort.Encode()
	if encodeErr != nil {
		return nil, jury.Origin{}, errors.Join(err, encodeErr)
	}
	origin.Metadata = metadata
	return r, origin, err
}
