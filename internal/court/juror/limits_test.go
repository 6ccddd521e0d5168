package juror

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"jurat/internal/court/subject"
	"jurat/internal/test/must"
	"jurat/jury"
)

// slow waits before it answers. If it is deaf, it ignores its context.
type slow struct {
	d    time.Duration
	deaf bool
}

func (s slow) wait(ctx context.Context) error {
	if s.deaf {
		time.Sleep(s.d)
		return nil
	}
	select {
	case <-time.After(s.d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slow) Answer(ctx context.Context, _ jury.Brief) (jury.Answer, error) {
	return jury.Answer{}, s.wait(ctx)
}

func TestWithTimeout(t *testing.T) {
	const limit = 10 * time.Second
	for _, one := range []struct {
		name string
		s    slow
		late bool
	}{
		{"in time", slow{d: 9 * time.Second}, false},
		{"late", slow{d: 11 * time.Second}, true},
		{"late, ignoring its context", slow{d: time.Hour, deaf: true}, true},
	} {
		t.Run(one.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := (Limits{Each: limit}).Juror(one.s).Answer(t.Context(), jury.Brief{})
				must.Hold(t, errors.Is(err, context.DeadlineExceeded) == one.late, "error %v", err)
				took := time.Since(start)
				must.Hold(t, took <= limit+grace, "waited %v", took)
				time.Sleep(2 * time.Hour) // until the jurors that ignore their context have finished, too
			})
		})
	}
	_, wrapped := (Limits{}).Juror(slow{}).(timed)
	must.Hold(t, !wrapped, "no timeout is a timeout")
}

// TestUntil: when the time for the whole trial is up, open calls return an error, and no juror is asked any more.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{Each: time.Minute, Until: time.Now().Add(90 * time.Second)}
		asked := &askedJuror{slow: slow{d: 50 * time.Second}}
		j := limits.Juror(asked)
		must.Fail(t, nil, "in time")(j.Answer(t.Context(), jury.Brief{}))
		_, err := j.Answer(t.Context(), jury.Brief{})
		must.Hold(t, errors.Is(err, context.DeadlineExceeded) && err.Error() == "the time for the whole trial is up", "beyond it: %v", err)
		must.Need(t, asked.n == 2, "asked %d times", asked.n)
		_, err = j.Answer(t.Context(), jury.Brief{})
		must.Hold(t, errors.Is(err, context.DeadlineExceeded) && asked.n == 2, "afterwards: %v, asked %d times", err, asked.n)
	})
}

// askedJuror is slow, and counts its calls. It returns its metadata also when it is interrupted.
type askedJuror struct {
	slow
	n int
}

func (c *askedJuror) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	c.n++
	a, err := c.slow.Answer(ctx, b)
	a.Origin.Metadata = []byte(`{"attempts":[]}`)
	return a, err
}

// TestLateEffort: from a juror that exceeds its time, only the metadata of its attempts is kept.
func TestLateEffort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, j := range []*askedJuror{{slow: slow{d: time.Minute}}, {slow: slow{d: 1100 * time.Millisecond, deaf: true}}} {
			a, err := Limits{Each: time.Second}.Juror(j).Answer(t.Context(), jury.Brief{})
			must.Hold(t, err != nil && err.Error() == "no answer within 1s" && a.Opinion.Rationale == "" && string(a.Origin.Metadata) == `{"attempts":[]}`,
				"%+v, %v", a, err)
		}
	})
}

// TestInterruptedIsNotLate: if the caller cancels the trial, the juror returns at once with that error, and is not
// counted as late.
func TestInterruptedIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := Limits{Each: 10 * time.Second}.Juror(slow{d: time.Minute, deaf: true}).Answer(ctx, jury.Brief{})
		must.Hold(t, errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && time.Since(start) == time.Second,
			"%v after %v", err, time.Since(start))
		time.Sleep(time.Hour)
	})
}

// TestStandsToTheLetter: a quotation counts only if it occurs in the record, character by character.
func TestStandsToTheLetter(t *testing.T) {
	c := conversation(t, "user: Pay it.\ncall: pay_bill {\"amount\":5}\nresult: {\"ok\":true}")
	for _, one := range []struct {
		f    jury.Finding
		want bool
	}{
		{jury.Finding{Message: 1, Quote: "Pay it"}, true},
		{jury.Finding{Message: 1, Quote: "pay it"}, false},
		{jury.Finding{Message: 2, Quote: `"amount":5`}, true},
		{jury.Finding{Message: 2, Quote: "pay_bill"}, true},
		{jury.Finding{Message: 3, Quote: "ok"}, true},
		{jury.Finding{Message: 3, Quote: ""}, false},
		{jury.Finding{Message: 3, Quote: " "}, false},
		{jury.Finding{Message: 0, Quote: "ok"}, false},
		{jury.Finding{Message: 4, Quote: "ok"}, false},
	} {
		got := Stands(c, one.f)
		must.Hold(t, got == one.want, "%+v: %v", one.f, got)
	}
}

// TestSameVendor: a juror is named if its model is of the vendor that the card or the records name, by provider or by
// the model's name, and rules never are.
func TestSameVendor(t *testing.T) {
	s := &jury.Settings{Seats: []jury.Seat{{JurorID: "gpt", Provider: "openai", Model: "gpt-4o"}, {JurorID: "claude", Provider: "anthropic", Model: "claude-haiku-4-5"},
		{JurorID: "gateway", Provider: "compatible", Model: "anthropic/claude-x"}, {JurorID: "rules", Provider: "offline", Model: "jurat-rules"},
		{JurorID: "own", Provider: "compatible", Model: "house-model"}},
		Judge: &jury.Seat{JurorID: "judge", Provider: "gemini", Model: "gemini-2.5-pro"}}
	for card, want := range map[string][]string{
		`{"name":"A"}`: nil,
		`{"name":"A","description":"Built on Claude."}`:         {"claude", "gateway"},
		`{"name":"A","provider":{"organization":"OpenAI"}}`:     {"gpt"},
		`{"name":"A","description":"It runs gpt-4.1-mini."}`:    {"gpt"},
		`{"name":"A","model":"gemini-2.5-flash"}`:               {"judge"},
		`{"name":"A","description":"Claude and Gemini answer"}`: {"claude", "gateway", "judge"},
		`{"name":"A","description":"Books in Google Calendar"}`: nil,
		`{"name":"A","provider":{"organization":"Google"}}`:     {"judge"},
		`{"name":"A","description":"Runs a Llama."}`:            nil,
		`{"name":"Claudette","description":"Sells o3 filters"}`: nil,
	} {
		c := must.Get(subject.New([]byte(card), []byte(`[{"role":"user","content":"Is this claude or gpt-4o?"}]`)))(t)
		got := SameVendor(s, c)
		must.Hold(t, slices.Equal(got, want), "%s: %v, want %v", card, got, want)
	}
}
