package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"jurat/internal/llm"
	"jurat/jury"
)

// A talk is a sitting on its way to an answer that counts.
type talk struct {
	*Juror
	*sitting
	effort jury.Effort
	trips  int
	held   *reply // counts, and rests on nothing that stands: asked about once
	heldOf llm.Answer
}

func (t *talk) hold(ctx context.Context) (*reply, llm.Answer, error) {
	for {
		answer, err := t.call(ctx, t.question)
		if errors.Is(err, jury.ErrCeiling) {
			return t.conclude(ctx, llm.Answer{}, err) // nothing was asked
		}
		r, err := t.weigh(answer, err)
		if err == nil {
			return t.accept(r), answer, nil
		}
		t.note(answer, err)
		if isTripped(err) {
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

// weigh says what is wrong with what came back. A position that rests on nothing is objected to once.
func (t *talk) weigh(answer llm.Answer, err error) (*reply, error) {
	if err != nil {
		if t.leaked(answer.Text) { // in an answer that was cut off, say
			return nil, errToken
		}
		return nil, failure(err)
	}
	r, err := t.read(answer)
	if !errors.Is(err, errUnfounded) {
		return r, err
	}
	if t.held == nil {
		t.held, t.heldOf = r, answer
		return nil, err
	}
	return r, nil
}

// conclude ends a talk without a further answer: with the one that was only objected to, if there is one. Otherwise the last answer
// comes with the error, as it tells which model gave none that counts.
func (t *talk) conclude(ctx context.Context, last llm.Answer, err error) (*reply, llm.Answer, error) {
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

// accept adds to an answer that counts what a juror must say who was moved by the record.
func (t *talk) accept(r *reply) *reply {
	if t.remember(false) || t.trips > 0 {
		return t.withInstructions(r)
	}
	return r
}

// remember notes for the next answer in this trial that the record moved this juror, and returns what was noted before.
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

// failure puts the error of a model into the jury's words. Deadlines are in the chain already; of the rest the kind is in the text.
func failure(err error) error {
	switch kind := llm.KindOf(err); {
	case kind == llm.Refused:
		return fmt.Errorf("%w: %w", jury.ErrBlocked, err)
	case (kind == llm.Malformed || kind == llm.TooLong) && !notTaken(err):
		return fmt.Errorf("%w: %w", jury.ErrInvalid, err)
	}
	return err
}

// notTaken reports whether a provider refused the question itself, with a status of HTTP: it would not take it again, nor the
// longer one of a later round.
func notTaken(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Status >= 400
}

// again reports whether asking again may help. A question that does not fit the model's window will not fit later, but an answer that
// was cut off may be shorter; the rest was for whoever makes the calls to try again.
func again(answer llm.Answer, err error) bool {
	switch llm.KindOf(err) {
	case "":
		return errors.Is(err, jury.ErrInvalid) || errors.Is(err, errUnfounded)
	case llm.Malformed:
		return !notTaken(err)
	case llm.TooLong:
		return answer.Text != "" || answer.Usage.Output > 0
	}
	return false
}

// call asks once, within the budget, and notes the attempt.
func (t *talk) call(ctx context.Context, q llm.Question) (answer llm.Answer, err error) {
	price, _ := t.config.Prices.Of(t.config.Settings.Model)
	tokens := t.config.Settings.MaxTokens
	if tokens == 0 {
		tokens = assumedTokens
	}
	spent := price.Cost(q.Estimate(tokens))
	if t.config.Budget != nil {
		settle, err := t.config.Budget.Reserve(spent)
		if err != nil {
			return answer, fmt.Errorf("%w: %w", jury.ErrCeiling, err)
		}
		defer func() { settle(spent) }() // whatever happens
	}
	began := t.config.Now()
	answer, err = t.config.Model.Ask(ctx, q)
	latency := t.config.Now().Sub(began)
	var failed *llm.Error
	if errors.As(err, &failed) {
		answer = failed.Answer
	}
	if reported, priced := t.config.Prices.Of(answer.Model); priced {
		price = reported
	}
	cost := price.Cost(answer.Usage)
	switch {
	case err == nil || answer.Usage != llm.Usage{}:
		spent = cost
	case failed != nil && failed.Status >= 400:
		spent = 0 // refused before anything was consumed
	default: // cut off on the way: what it costs is not known, so what was set aside is taken
	}
	t.effort.Attempts = append(t.effort.Attempts, jury.Attempt{Model: llm.Clean(answer.Model), Version: llm.Clean(answer.Version), FinishReason: llm.Clean(answer.FinishReason),
		Retries: answer.Retries, InputTokens: counted(answer.Usage.Input), OutputTokens: counted(answer.Usage.Output), Cost: counted(cost),
		Latency: counted(latency.Milliseconds())})
	return answer, err
}

// note says of the last attempt why it does not count.
func (t *talk) note(answer llm.Answer, err error) {
	last := &t.effort.Attempts[len(t.effort.Attempts)-1]
	last.Problem = llm.Clean(strings.TrimPrefix(err.Error(), jury.ErrInvalid.Error()+": "))
	last.Answer = shortened(answer.Text)
}

// shortened is as much of an answer as is recorded.
func shortened(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxRecorded {
		return text
	}
	end := maxRecorded
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// counted keeps what a provider counts within what a record can hold.
func counted(n int64) int64 { return min(max(n, 0), largestCounted) }
