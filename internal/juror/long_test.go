package juror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/subject"
	"jurat/jury"
)

var identifier = regexp.MustCompile(`[A-Za-z_]*\d[A-Za-z0-9_]{2,}`)

// long strings honest runs together until they have a size, each with ids of its own.
func long(t testing.TB, size int) *subject.Case {
	t.Helper()
	var runs []string
	for _, name := range []string{"retail", "telecom", "banking", "browsing", "inbox"} {
		runs = append(runs, strings.TrimSpace(honest[name]))
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

// BenchmarkEvaluate measures what a kilobyte of conversation costs: about the same at every size.
func BenchmarkEvaluate(b *testing.B) {
	for _, size := range []int{50_000, 500_000, 2_000_000} {
		brief := briefOn(long(b, size))
		b.Run(fmt.Sprintf("%dKB", size/1000), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := At(0).Evaluate(b.Context(), brief); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/(float64(len(brief.Material))/1000), "µs/KB")
		})
	}
}

// BenchmarkTrial measures a whole trial, in which the panel reads the evidence once.
func BenchmarkTrial(b *testing.B) {
	for _, size := range []int{50_000, 500_000, 2_000_000} {
		material := long(b, size).Material()
		b.Run(fmt.Sprintf("%dKB", size/1000), func(b *testing.B) {
			for b.Loop() {
				if _, err := trialOf(material).Run(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/(float64(len(material))/1000), "µs/KB")
		})
	}
}

// TestHaystack: the index finds what the search finds.
func TestHaystack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		var s strings.Builder
		for range random.IntN(n) {
			s.WriteString([]string{"a", "b", "é", "語"}[random.IntN(4)])
		}
		return s.String()
	}
	for range 200 {
		var texts []string
		for range random.IntN(12) {
			texts = append(texts, word(20))
		}
		searched, indexed := newHaystack(texts), newHaystack(texts)
		indexed.spent = indexCost*len(indexed.data) + 1
		for range 50 {
			needle := word(4)
			var want []int
			for i, text := range texts {
				if strings.Contains(text, needle) {
					want = append(want, i)
				}
			}
			for _, got := range [][]int{searched.holding(needle), indexed.holding(needle), indexed.holding(needle)} {
				if !slices.Equal(got, want) {
					t.Fatalf("%q in %q: %v, want %v", needle, texts, got, want)
				}
			}
		}
		if indexed.index == nil && len(texts) > 0 {
			t.Fatal("no index was made")
		}
	}
}

// TestRuns compares with the plain search.
func TestRuns(t *testing.T) {
	plain := func(a, b string, need int) string {
		for i := 0; i+need <= len(a); i++ {
			if i == 0 || a[i-1] == ' ' || a[i-1] == '\n' {
				if strings.Contains(b, a[i:i+need]) {
					return strings.ToValidUTF8(a[i:i+need], "")
				}
			}
		}
		return ""
	}
	random := rand.New(rand.NewPCG(3, 4))
	text := func() string {
		var s strings.Builder
		for range random.IntN(60) {
			s.WriteString([]string{"a", "b", " ", "\n", "é"}[random.IntN(5)])
		}
		return s.String()
	}
	for range 2000 {
		a, b, need := text(), text(), 1+random.IntN(6)
		if got, want := runsOf(a, need).firstIn(b), plain(a, b, need); got != want {
			t.Fatalf("%d of %q in %q: %q, want %q", need, a, b, got, want)
		}
	}
}

// patient is a context whose deadline comes after so many looks at it.
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

// TestDeadlineInterrupts: wherever the time runs out, the answer is the deadline's error, and soon.
func TestDeadlineInterrupts(t *testing.T) {
	b := briefOn(long(t, 30_000))
	for looks := 0; ; looks += 1 + looks/8 {
		left := looks
		_, _, err := At(looks).Evaluate(patient{t.Context(), &sync.Mutex{}, &left}, b)
		if err == nil {
			if looks < 1000 {
				t.Errorf("the rules looked at the time fewer than %d times", looks)
			}
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("after %d looks: %v", looks, err)
		}
		if over := -left; over > 200 {
			t.Errorf("after %d looks the rules looked %d times more before they stopped", looks, over)
		}
	}
}

// TestSharedReading: a panel that shares its reading says what jurors say who read for themselves, also to many at
// once, and also after someone's time was up.
func TestSharedReading(t *testing.T) {
	panel := OfflinePanel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	var wait sync.WaitGroup
	for n, name := range []string{"retail", "telecom", "banking"} {
		for i, j := range panel.Jurors {
			wait.Go(func() {
				b := briefOn(script(t, plainCard, honest[name]))
				left := 40 * n
				if _, _, err := j.Evaluate(patient{t.Context(), &sync.Mutex{}, &left}, b); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if _, _, err := j.Evaluate(late, b); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("late: %v", err)
				}
				got, _, err := j.Evaluate(t.Context(), b)
				want, _, alone := At(i).Evaluate(t.Context(), b)
				if err != nil || alone != nil || !cmp.Equal(got, want) {
					t.Errorf("%v, %v: %s", err, alone, cmp.Diff(want, got))
				}
			})
		}
	}
	wait.Wait()
	if n := len(panel.Jurors[0].(timedJuror).Juror.(*Rules).shelf.latest); n > kept {
		t.Errorf("%d conversations are kept", n)
	}
}
