// Package juror holds what all kinds of jurors share: the test of a quotation, time limits, the search for words that
// address the readers of the record, and the mapping of findings to a rubric's axes.
//
// Package model below it seats language models; they are the jury. Package rules seats jurors that apply fixed rules.
// They are a first sieve where no model is at hand, and the baseline that a jury of models has to beat.
package juror

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/internal/court/subject"
	"jurat/jury"
)

// grace is how much longer the caller waits for a juror after its deadline. The answer is too late, but the origin
// that comes with it tells what the attempts cost.
const grace = time.Second

// Limits bound how long answers may take. A call that takes longer returns an error that is context.DeadlineExceeded,
// even if the juror ignores its context. A later answer is discarded.
type Limits struct {
	Each  time.Duration // time for one answer; 0 or less: no limit
	Until time.Time     // end of all answers: no call begins after it, and none continues; zero: no limit
}

// Juror wraps a juror so that it keeps the limits.
func (l Limits) Juror(j jury.Juror) jury.Juror {
	if l.Each <= 0 && l.Until.IsZero() {
		return j
	}
	return timed{j, l}
}

type timed struct {
	juror  jury.Juror
	limits Limits
}

// A lateError says that the time is over.
type lateError string

func (e lateError) Error() string        { return string(e) }
func (e lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// deadline returns the moment at which a call that begins now must end, and the error for a call that does not.
func (l Limits) deadline() (time.Time, error) {
	const over = lateError("the time for the whole trial is up")
	if l.Each <= 0 {
		return l.Until, over
	}
	each := time.Now().Add(l.Each)
	if !l.Until.IsZero() && l.Until.Before(each) {
		return l.Until, over
	}
	return each, lateError(fmt.Sprintf("no answer within %v", l.Each))
}

// Answer implements jury.Juror. It returns the late error if the juror takes longer than the limits allow.
func (t timed) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	until, late := t.limits.deadline()
	if !time.Now().Before(until) {
		return jury.Answer{}, late // the juror was not asked, so there is no cost
	}
	asking, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	type result struct {
		answer jury.Answer
		err    error
	}
	done := make(chan result, 1) // buffered, so that a late juror can send after Answer has returned
	go func() {
		answer, err := t.juror.Answer(asking, b)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && ctx.Err() == nil && errors.Is(asking.Err(), context.DeadlineExceeded) {
			r.err = late // whichever error the juror returned
		}
		return r.answer, r.err
	case <-asking.Done():
	}
	if ctx.Err() != nil {
		return jury.Answer{}, ctx.Err()
	}
	select {
	case r := <-done:
		return jury.Answer{Origin: jury.Origin{Metadata: r.answer.Origin.Metadata}}, late
	case <-ctx.Done():
		return jury.Answer{}, ctx.Err()
	case <-time.After(grace):
		return jury.Answer{}, late
	}
}

// Stands reports whether a finding's quotation is literally in the message that the finding names: in its text, or in
// the name or arguments of one of its calls. A finding that does not stand never counts.
func Stands(c *subject.Case, f jury.Finding) bool {
	m := c.Message(f.Message)
	return m != nil && strings.TrimSpace(f.Quote) != "" && m.Holds(f.Quote)
}

// SafetyAxis is the default rubric's axis for leaks, planted instructions and harm.
const SafetyAxis = "safety"

// OnRubric puts findings on axes that the rubric has. A rubric is data and may lack an axis that a finding names.
// Such a finding goes to the heaviest axis.
func OnRubric(rubric jury.Rubric, findings []jury.Finding) []jury.Finding {
	placed := slices.Clone(findings)
	for i, f := range placed {
		if !slices.ContainsFunc(rubric, func(a jury.Axis) bool { return a.ID == f.Axis }) {
			placed[i].Axis = slices.MaxFunc(rubric, func(a, b jury.Axis) int { return a.Max - b.Max }).ID
		}
	}
	return placed
}

// A Vendor is the maker of models. The zero value stands for an unknown one.
type Vendor string

// vendorNames match how a vendor or its models are named.
var vendorNames = []struct {
	Vendor
	name Pattern
}{
	{"openai", NewPattern(`(?i)\b(openai|chatgpt|gpt-?\d\w*|o[134](-mini|-pro|-preview)?(-\d[\d-]*)?$)`)},
	{"anthropic", NewPattern(`(?i)\b(anthropic|claude)\b`)},
	{"gemini", NewPattern(`(?i)\b(gemini|google (deepmind|ai)|vertex ai)\b|^google`)},
	{"meta", NewPattern(`(?i)\b(meta-)?llama`)},
	{"mistral", NewPattern(`(?i)\b(mistral|mixtral|magistral|ministral)`)},
	{"qwen", NewPattern(`(?i)\bqwen`)},
	{"deepseek", NewPattern(`(?i)\bdeepseek`)},
	{"xai", NewPattern(`(?i)\bgrok\b`)},
}

// VendorsIn returns the vendors that a text names.
func VendorsIn(text string) (list []Vendor) {
	for _, v := range vendorNames {
		if v.name().MatchString(text) {
			list = append(list, v.Vendor)
		}
	}
	return list
}

// vendorsOf returns the vendors of the accused's model: as its records name the model, and as its card names model or
// vendor. A card is what the agent says of itself, so no vendor in it proves nothing.
func vendorsOf(c *subject.Case) (list []Vendor) {
	for _, text := range append([]string{string(c.Card.Text), c.Card.Organization}, c.Models...) {
		list = append(list, VendorsIn(text)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// SameVendor lists the jurors, and the judge, whose model is of a vendor of the accused's model. Models tend to favour
// what is written like their own words. It returns nil if neither records nor the card name a model or vendor.
func SameVendor(s *jury.Settings, c *subject.Case) (ids []string) {
	accused := vendorsOf(c)
	for _, seat := range s.Everyone() {
		if seat.Provider == jury.Offline {
			continue
		}
		own := VendorsIn(seat.Model)
		if len(own) == 0 {
			own = []Vendor{Vendor(strings.ToLower(seat.Provider))}
		}
		if slices.ContainsFunc(own, func(v Vendor) bool { return slices.Contains(accused, v) }) {
			ids = append(ids, seat.JurorID)
		}
	}
	return ids
}

// A Pattern is a regular expression that is compiled when it is first used. Several goroutines may call it at once.
type Pattern func() *regexp.Regexp

var (
	mu    sync.Mutex
	known []Pattern
)

// NewPattern returns a pattern, for a variable of a package. An expression that does not compile panics at its first use, so a
// test has all of them compiled by [CompilePatterns].
func NewPattern(expression string) Pattern {
	p := Pattern(sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) }))
	mu.Lock()
	defer mu.Unlock()
	known = append(known, p)
	return p
}

// CompilePatterns compiles every pattern of this program, and returns how many there are. It panics if one does not compile.
func CompilePatterns() int {
	mu.Lock()
	defer mu.Unlock()
	for _, compiled := range known {
		compiled()
	}
	return len(known)
}
