package rules

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/subject"
	"jurat/jury"
)

var identifier = regexp.MustCompile(`[A-Za-z_]*\d[A-Za-z0-9_]{2,}`)

// long joins honest conversations, each with its own ids, until they have this size.
func long(t testing.TB, size int) *subject.Case {
	t.Helper()
	var runs []string
	for _, name := range []string{"retail", "telecom", "banking", "browsing", "inbox"} {
		runs = append(runs, tradeNamed(t, name+"-honest").text)
	}
	var text strings.Builder
	for i := 0; text.Len() < size; i++ {
		text.WriteString(identifier.ReplaceAllString(runs[i%len(runs)], fmt.Sprintf("${0}%d", i)))
		text.WriteByte('\n')
	}
	return script(t, plainCard, text.String())
}

func briefOn(c *subject.Case) jury.Brief {
	b := jury.Brief{Material: c.Material()}
	b.Rubric = jury.DefaultRubric()
	return b
}

// patient is a context whose deadline passes after this many checks of it.
type patient struct {
	context.Context
	mu    *sync.Mutex
	looks *int
}

func (p patient) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *p.looks--; *p.looks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestDeadlineInterrupts: wherever the deadline passes, Evaluate soon returns the deadline's error.
func TestDeadlineInterrupts(t *testing.T) {
	b := briefOn(long(t, 30_000))
	for looks := 0; ; looks += 1 + looks/8 {
		left := looks
		_, err := alone(looks).Answer(patient{t.Context(), &sync.Mutex{}, &left}, b)
		if err == nil {
			if looks < 1000 {
				t.Errorf("the rules checked the deadline fewer than %d times", looks)
			}
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("after %d looks: %v", looks, err)
		}
		if over := -left; over > 200 {
			t.Errorf("after %d checks, the rules made %d more checks before they stopped", looks, over)
		}
	}
}

// TestSharedReading: a panel that shares one reading gives the same answers as jurors that read alone. This holds for
// concurrent calls, and after one juror's deadline has passed.
func TestSharedReading(t *testing.T) {
	shared := newShelf()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	var wait sync.WaitGroup
	for n, name := range []string{"retail", "telecom", "banking"} {
		for i := range 3 {
			j := &member{alone(i).focus, shared}
			wait.Go(func() {
				b := briefOn(tradeNamed(t, name+"-honest").c)
				left := 40 * n
				if _, err := j.Answer(patient{t.Context(), &sync.Mutex{}, &left}, b); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if _, err := j.Answer(late, b); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("late: %v", err)
				}
				got, err := j.Answer(t.Context(), b)
				want, alone := alone(i).Answer(t.Context(), b)
				if err != nil || alone != nil || !cmp.Equal(got, want) {
					t.Errorf("%v, %v: %s", err, alone, cmp.Diff(want, got))
				}
			})
		}
	}
	wait.Wait()
	if n := len(shared.kept); n > mostKept {
		t.Errorf("%d conversations are kept", n)
	}
}
