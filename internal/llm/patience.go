package llm

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
)

// Patience limits the time of one call and the number of attempts.
type Patience struct {
	Timeout  time.Duration // of one call; 0: one minute
	Attempts int           // in all, while the provider is rate limiting or unavailable; 0: 3
	Pause    time.Duration // before the second attempt, doubled before each further one; 0: one second
	Limit    *rate.Limiter // calls per time, shared by all that use the provider's account; nil: no limit

	Sleep func(context.Context, time.Duration) error // nil: waits
}

const longestPause = time.Minute

// Patient returns a model that keeps to the rate limit, ends calls that take too long, and retries temporary
// failures. It returns other errors, such as a refusal or a wrong key, at once.
func Patient(m Model, p Patience) Model {
	p.Timeout, p.Attempts, p.Pause = cmp.Or(p.Timeout, time.Minute), cmp.Or(p.Attempts, 3), cmp.Or(p.Pause, time.Second)
	if p.Sleep == nil {
		p.Sleep = sleep
	}
	return &patient{m, p}
}

type patient struct {
	model Model
	Patience
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ask implements Model.
func (p *patient) Ask(ctx context.Context, q Question) (Answer, error) {
	pause := p.Pause
	for attempt := 1; ; attempt++ {
		answer, err := p.once(ctx, q)
		answer.Retries += attempt - 1
		if e := (*Error)(nil); errors.As(err, &e) {
			e.Answer.Retries += attempt - 1
		}
		wait, again := passing(err)
		if !again || attempt == p.Attempts || ctx.Err() != nil {
			return answer, err
		}
		// The jitter keeps many callers from retrying at the same moment.
		wait = max(wait, pause/2+rand.N(pause))
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return answer, err // the provider's own error tells more than a timeout while waiting
		}
		if p.Sleep(ctx, wait) != nil {
			return answer, err
		}
		pause = min(2*pause, longestPause)
	}
}

// passing recognizes temporary errors.
func passing(err error) (wait time.Duration, again bool) {
	var e *Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.RetryAfter, e.Kind == RateLimited || e.Kind == Unavailable
}

func (p *patient) once(ctx context.Context, q Question) (Answer, error) {
	if p.Limit != nil {
		if err := p.Limit.Wait(ctx); err != nil {
			if ctx.Err() != nil {
				return Answer{}, ctx.Err()
			}
			return Answer{}, Fail(RateLimited, 0, "the configured rate limit leaves no time for this call")
		}
	}
	call, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	answer, err := p.model.Ask(call, q)
	switch {
	case err == nil || ctx.Err() != nil:
		return answer, err
	case call.Err() != nil: // whichever error the adapter returned
		return answer, Fail(TimedOut, 0, "no answer within "+p.Timeout.String())
	}
	return answer, err
}
