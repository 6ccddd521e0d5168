package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/court/llm"
	"jurat/internal/court/subject"
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

type Config struct {
	Model    llm.Model
	Case     *subject.Case // that is judged; nil: it is read from each brief
	Settings llm.Settings  // the settings of Model; they give the price of a call
	Prices   llm.Prices
	Budget   *llm.Purse       // needs a price; nil: no limit on costs
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

// New seats a model.
func New(c Config) *Juror {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Juror{config: c, moved: map[evidence.Digest]bool{}}
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
	s, err := sit(b, j.config.Case)
	if err != nil {
		return jury.Answer{}, err
	}
	s.consequential = j.config.Consequential
	t := &talk{Juror: j, sitting: s, effort: jury.Effort{Peers: s.peers.ids}}
	r, from, err := t.hold(ctx)
	metadata, encodeErr := t.effort.Encode()
	if encodeErr != nil {
		return jury.Answer{}, errors.Join(err, encodeErr)
	}
	if err != nil {
		r = &jury.Answer{}
	}
	r.Origin = j.origin(from)
	r.Origin.Metadata = metadata
	return *r, err
}

// A talk is a sitting together with the attempts to get a valid answer.
type talk struct {
	*Juror
	*sitting
	effort jury.Effort
	trips  int
	held   *jury.Answer // valid, but with an objection; the juror is asked about it once
	heldOf llm.Answer
}

func (t *talk) hold(ctx context.Context) (*jury.Answer, llm.Answer, error) {
	for {
		answer, err := t.call(ctx, t.question)
		if errors.Is(err, jury.ErrCeiling) {
			return t.conclude(ctx, llm.Answer{}, err) // the model was not asked
		}
		r, err := t.weigh(answer, err)
		if err == nil {
			return t.accept(r), answer, nil
		}
		t.note(answer, err)
		if errors.Is(err, errToken) || errors.Is(err, errCode) {
			if t.trips++; t.trips == maxTrips {
				t.held = nil
				return t.conclude(ctx, answer, err)
			}
		}
		if len(t.effort.Attempts) == MaxAsked || !again(answer, err) || ctx.Err() != nil {
			return t.conclude(ctx, answer, err)
		}
		if t.question, err = Follow(t.question, t.effort.Attempts[len(t.effort.Attempts)-1]); err != nil {
			return nil, answer, err
		}
	}
}

// weigh returns what is wrong with an answer. It objects once to a valid answer that the evidence does not bear out.
func (t *talk) weigh(answer llm.Answer, err error) (*jury.Answer, error) {
	if err != nil {
		if t.leaked(answer.Text) { // also in an answer that was cut off
			return nil, errToken
		}
		return nil, failure(err)
	}
	r, err := t.read(answer)
	if !isObjection(err) {
		return r, err
	}
	if t.held == nil {
		t.held, t.heldOf = r, answer
		return nil, err
	}
	return r, nil
}

// conclude ends a talk. It returns the reply that was only objected to, if there is one. Otherwise it returns the
// last answer with the error, because the answer names the model.
func (t *talk) conclude(ctx context.Context, last llm.Answer, err error) (*jury.Answer, llm.Answer, error) {
	if t.held == nil || errors.Is(ctx.Err(), context.Canceled) {
		if t.trips > 0 {
			t.remember(true)
		}
		if n := len(t.effort.Attempts); n > 1 {
			err = fmt.Errorf("asked %d times: %w", n, err)
		}
		return nil, last, err
	}
	return t.accept(t.held), t.heldOf, nil
}

// accept adds the findings that a reply must have after the juror tripped the canary.
func (t *talk) accept(r *jury.Answer) *jury.Answer {
	if t.remember(false) || t.trips > 0 {
		return t.withInstructions(r)
	}
	return r
}

// remember stores, for the next answer in this trial, whether the juror tripped the canary, and returns the previous
// value.
func (t *talk) remember(moved bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.moved[t.brief.Saw[0]]
	delete(t.moved, t.brief.Saw[0])
	if moved {
		if len(t.moved) >= maxRemembered {
			clear(t.moved)
		}
		t.moved[t.brief.Saw[0]] = true
	}
	return before
}

// failure translates a model's error for package jury. Deadlines stay in the chain; the text names the kind of the
// others.
func failure(err error) error {
	switch kind := llm.KindOf(err); {
	case kind == llm.Refused:
		return fmt.Errorf("%w: %w", jury.ErrBlocked, err)
	case (kind == llm.Malformed || kind == llm.TooLong) && !notTaken(err):
		return fmt.Errorf("%w: %w", jury.ErrInvalid, err)
	}
	return err
}

// notTaken reports whether a provider refused the question itself, with a status of HTTP. It would refuse the same
// question, and the longer one of a later round, again.
func notTaken(err error) bool {
	e, is := errors.AsType[*llm.Error](err)
	return is && e.Status >= 400
}

// again reports whether another attempt may help. A question that exceeds the model's window will not fit later, but
// an answer that was cut off may be shorter. The layer below has already retried the other errors.
func again(answer llm.Answer, err error) bool {
	switch llm.KindOf(err) {
	case "":
		return errors.Is(err, jury.ErrInvalid) || isObjection(err)
	case llm.Malformed:
		return !notTaken(err)
	case llm.TooLong:
		return answer.Text != "" || answer.Usage.Output > 0
	}
	return false
}

func (t *talk) call(ctx context.Context, q llm.Question) (answer llm.Answer, err error) {
	asked := t.config.Settings.Model
	price, _ := t.config.Prices.Of(asked)
	spent, _ := price.Cost(q.Estimate(cmp.Or(t.config.Settings.MaxTokens, assumedTokens)))
	if t.config.Budget != nil {
		settle, err := t.config.Budget.Reserve(spent)
		if err != nil {
			return answer, fmt.Errorf("%w: %w", jury.ErrCeiling, err)
		}
		defer func() { settle(spent) }() // on every path
	}
	began := t.config.Now()
	answer, err = t.config.Model.Ask(ctx, q)
	latency := t.config.Now().Sub(began)
	var failed *llm.Error
	if errors.As(err, &failed) {
		answer = failed.Answer
	}
	cost, priced := int64(0), false
	price, known := t.config.Prices.For(asked, answer.Model)
	if !known && jury.IsModel(answer.Model, asked) {
		price, known = t.config.Prices.Of(asked)
	}
	if known && answer.Usage != (llm.Usage{}) {
		cost, priced = price.Cost(answer.Usage)
	}
	refused := failed != nil && failed.Status >= 400 // before it consumed anything
	if priced || refused {
		spent = cost
	} // else the cost is unknown, so the whole reserve counts as spent
	t.effort.Attempts = append(t.effort.Attempts, jury.Attempt{Model: llm.Clean(answer.Model), Version: llm.Clean(answer.Version),
		FinishReason: llm.Clean(answer.FinishReason), Retries: answer.Retries, InputTokens: counted(answer.Usage.Input),
		OutputTokens: counted(answer.Usage.Output), Cost: counted(cost), Unpriced: !priced && !refused, Latency: counted(latency.Milliseconds())})
	return answer, err
}

func (t *talk) note(answer llm.Answer, err error) {
	last := &t.effort.Attempts[len(t.effort.Attempts)-1]
	last.Problem = llm.Clean(strings.TrimPrefix(err.Error(), jury.ErrInvalid.Error()+": "))
	last.Answer = begin(strings.ToValidUTF8(answer.Text, "\uFFFD"), maxRecorded)
}

// counted limits a provider's token count to what a record can hold.
func counted(n int64) int64 { return min(max(n, 0), largestCounted) }
