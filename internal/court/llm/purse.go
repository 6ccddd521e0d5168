package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

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

func NewPurse(ceiling, spent int64) *Purse { return &Purse{ceiling: ceiling, spent: spent} }

// Reserve sets aside the estimated cost of a call before it is made. After the call, the caller passes the actual
// cost to settle. If too little is left, Reserve returns ErrSpent, and the caller must not make the call.
func (p *Purse) Reserve(estimate int64) (settle func(actual int64), err error) {
	estimate = max(estimate, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	if estimate > p.ceiling-p.spent-p.reserved {
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

// A Price is the cost of a model's tokens, in US dollars per million tokens, as its vendor publishes it.
type Price struct {
	Model string `json:"model"`
	Rates
	Over int64  `json:"over,omitzero"` // a question of more tokens has the rates Long; 0: all have these
	Long *Rates `json:"long,omitzero"` // nil: unknown
}

// Rates are what tokens cost, in the terms of Price.
type Rates struct {
	Input     float64 `json:"input"`               // of tokens read
	Cached    float64 `json:"cached,omitzero"`     // of tokens read from the cache; 0: as Input
	Write     float64 `json:"write,omitzero"`      // of tokens written to the cache, for minutes; 0: unknown
	WriteHour float64 `json:"write_hour,omitzero"` // for an hour; 0: unknown
	Output    float64 `json:"output"`
}

type Prices []Price

// Check returns an error for a missing model name and for an impossible price.
func (p Prices) Check() error {
	for i, price := range p {
		if price.Model == "" {
			return fmt.Errorf("prices/%d: model is empty", i)
		}
		for _, value := range []float64{price.Input, price.Cached, price.Write, price.WriteHour, price.Output} {
			if !(value >= 0) || math.IsInf(value, 0) {
				return fmt.Errorf("prices/%d: %v is not a price in dollars per million tokens", i, value)
			}
		}
	}
	return nil
}

// Of finds the price of a model under its full name. A longer name is another model.
func (p Prices) Of(model string) (Price, bool) {
	for _, price := range p {
		if price.Model == model {
			return price, true
		}
	}
	return Price{}, false
}

// For finds the price of a call: that of the model which answered. If the table has no price under that name, the price of
// the model that was asked holds for a snapshot of it, and where the provider reported no model.
func (p Prices) For(asked, answered string) (Price, bool) {
	price, known := p.Of(answered)
	if !known && (answered == "" || Answers(answered, asked)) {
		price, known = p.Of(asked)
	}
	return price, known
}

// Cost returns the cost of a call in millionths of a US dollar, rounded up. It reports false if the price of some of the
// tokens is unknown.
func (p Price) Cost(u Usage) (cost int64, known bool) {
	rates := &p.Rates
	if p.Over > 0 && u.Input > p.Over {
		rates = p.Long
	}
	if rates == nil || u.OtherPrice || u.Written > 0 && rates.Write == 0 || u.WrittenHour > 0 && rates.WriteHour == 0 {
		return 0, false
	}
	sum := new(big.Rat)
	for _, part := range []struct {
		tokens int64
		price  float64
	}{{u.Input - u.Cached - u.Written - u.WrittenHour, rates.Input}, {u.Cached, cmp.Or(rates.Cached, rates.Input)},
		{u.Written, rates.Write}, {u.WrittenHour, rates.WriteHour}, {u.Output, rates.Output}} {
		// The table's decimal, which a float64 usually only approximates.
		price, ok := new(big.Rat).SetString(strconv.FormatFloat(part.price, 'g', -1, 64))
		if !ok {
			return 0, false // not finite: Check refuses such a table
		}
		sum.Add(sum, price.Mul(price, new(big.Rat).SetInt64(part.tokens)))
	}
	up := new(big.Int).Add(sum.Num(), new(big.Int).Sub(sum.Denom(), big.NewInt(1)))
	return up.Div(up, sum.Denom()).Int64(), true
}

// snapshotName matches a model's name and the suffix that vendors add for a snapshot: a full or partial date, or a
// revision.
//
//	2024-08-06 20251001 2025-09 09-2025 06-05 0613 2411 001
var snapshotName = regexp.MustCompile(`^([A-Za-z].*?)[-@](` +
	`20\d\d-?` + month + `-?` + day + `|20\d\d-` + month + `|` + month + `-20\d\d|` + month + `-?` + day + `|2\d` + month + `|00\d)$`)

const (
	month = `(?:0[1-9]|1[0-2])`
	day   = `(?:0[1-9]|[12]\d|3[01])`
)

// Snapshot splits the model name that a provider reports: the name without the suffix, and the full name if it is
// that of a snapshot, otherwise "".
func Snapshot(reported string) (model, snapshot string) {
	if m := snapshotName.FindStringSubmatch(reported); m != nil {
		return m[1], reported
	}
	return reported, ""
}

// Answers reports whether the model that a provider reports is the configured model or a snapshot of it. A common
// prefix is not enough: gpt-4o-mini is not gpt-4o.
func Answers(reported, configured string) bool {
	model, _ := Snapshot(reported)
	return configured != "" && (reported == configured || model == configured)
}

// Patience limits the time of one call and the number of attempts.
type Patience struct {
	Timeout  time.Duration // of one call; 0: one minute
	Attempts int           // in all, while the provider is rate limiting or unavailable; 0: 3
	Limit    *rate.Limiter // calls per time, shared by all that use the provider's account; nil: no limit
}

// The pause before the second attempt is doubled before each further one.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// Patient returns a model that keeps to the rate limit, ends calls that take too long, and retries temporary
// failures. It returns other errors, such as a refusal or a wrong key, at once.
func Patient(m Model, p Patience) Model {
	p.Timeout, p.Attempts = cmp.Or(p.Timeout, time.Minute), cmp.Or(p.Attempts, 3)
	return &patient{m, p}
}

type patient struct {
	model Model
	Patience
}

func (p *patient) Ask(ctx context.Context, q Question) (Answer, error) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		answer, err := p.once(ctx, q)
		answer.Retries += attempt - 1
		e, is := errors.AsType[*Error](err)
		if is {
			e.Answer.Retries += attempt - 1
		}
		if passing := is && (e.Kind == RateLimited || e.Kind == Unavailable); !passing || attempt == p.Attempts || ctx.Err() != nil {
			return answer, err
		}
		// The jitter keeps many callers from retrying at the same moment.
		wait := max(e.RetryAfter, pause/2+rand.N(pause))
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return answer, err // the provider's own error tells more than a timeout while waiting
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return answer, err
		}
		pause = min(2*pause, longestPause)
	}
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
