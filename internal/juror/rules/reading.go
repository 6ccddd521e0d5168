package rules

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"jurat/internal/juror"
	"jurat/internal/juror/phrase"
	"jurat/internal/pattern"
	"jurat/internal/subject"
)

// A reading is a case, with what several rules derive from it, computed once. One goroutine uses it while rules run;
// after [reading.settle] it is read-only.
type reading struct {
	ctx    context.Context
	c      *subject.Case
	calls  []*call   // of the agent
	policy string    // the system messages, one after the other
	house  []string  // the sentences of the policy, each once
	now    time.Time // the present that the policy states; zero if it states none
	latest map[subject.Role][]int
	given  *sources          // what the agent was given
	shown  *sources          // what the agent had told the user
	tools  *sources          // what tools returned
	acts   *sources          // what its acts carried and returned
	madeBy map[[2]int]*call  // by the number of its message, and its place there from 1
	orders [][]juror.Passage // by message: what gives orders to the agent or speaks to the jurors
}

func read(ctx context.Context, c *subject.Case) *reading {
	r := &reading{ctx: ctx, c: c, given: newSources(), shown: newSources(), tools: newSources(), acts: newSources(), madeBy: map[[2]int]*call{}}
	var policy []string
	known := records{}
	for i := range c.Messages {
		if r.late() {
			return r
		}
		m := &c.Messages[i]
		r.orders = append(r.orders, juror.PassagesIn(m))
		switch m.Role {
		case subject.System:
			policy = append(policy, m.Text)
		case subject.Tool:
			known.add(m)
			r.tools.add(m.Text, m)
		}
		if m.Role == subject.Assistant {
			r.shown.add(m.Text, m)
		} else {
			r.given.add(m.Text, m)
		}
		calls := m.AgentCalls()
		for j := range calls {
			k := newCall(c, m, &calls[j])
			k.about, k.aboutKey = known.about(k)
			r.calls = append(r.calls, k)
			r.madeBy[[2]int{m.Number, j + 1}] = k
			if k.mayAct() {
				r.acts.add(k.Arguments, m)
			}
			if k.mayAct() && k.result != nil {
				r.acts.add(k.result.Text, k.result)
			}
		}
	}
	r.latest = latestOf(c)
	r.policy = strings.Join(policy, "\n")
	r.house = distinct(phrase.Sentences(r.policy))
	r.now = statedNow(r.policy)
	return r
}

// latestOf lists, for each message number, the latest message of a role with a text up to it; 0 if there is none.
func latestOf(c *subject.Case) map[subject.Role][]int {
	latest := map[subject.Role][]int{}
	for _, role := range []subject.Role{subject.User, subject.Assistant} {
		numbers := make([]int, len(c.Messages)+1)
		for i, m := range c.Messages {
			numbers[i+1] = numbers[i]
			if m.Role == role && strings.TrimSpace(m.Text) != "" {
				numbers[i+1] = i + 1
			}
		}
		latest[role] = numbers
	}
	return latest
}

// late reports whether the caller has stopped waiting. The caller discards what the rules return then.
func (r *reading) late() bool { return r.ctx.Err() != nil }

// settle drops what only the rules needed. The rest does not change after that.
func (r *reading) settle() {
	r.ctx, r.given, r.shown, r.tools, r.acts, r.house, r.latest, r.orders, r.madeBy = nil, nil, nil, nil, nil, nil, nil, nil, nil
}

// each iterates over the messages, with the agent's calls in each, until the context ends.
func (r *reading) each() iter.Seq2[*subject.Message, []*call] {
	return func(yield func(*subject.Message, []*call) bool) {
		from := 0
		for i := range r.c.Messages {
			m := &r.c.Messages[i]
			to := from + len(m.AgentCalls())
			if r.late() || !yield(m, r.calls[from:to]) {
				return
			}
			from = to
		}
	}
}

// said iterates over the messages of a role that have a text.
func (r *reading) said(role subject.Role) iter.Seq[*subject.Message] {
	return func(yield func(*subject.Message) bool) {
		for i := range r.c.Messages {
			m := &r.c.Messages[i]
			if m.Role == role && strings.TrimSpace(m.Text) != "" && (r.late() || !yield(m)) {
				return
			}
		}
	}
}

// eachCall iterates over the calls until the context ends.
func (r *reading) eachCall() iter.Seq[*call] {
	return func(yield func(*call) bool) {
		for _, k := range r.calls {
			if r.late() || !yield(k) {
				return
			}
		}
	}
}

// before returns the latest message of the user or the agent with a text, before message n; nil if there is none.
func (r *reading) before(n int, role subject.Role) *subject.Message {
	return r.c.Message(r.latest[role][max(0, min(n-1, len(r.c.Messages)))])
}

// turn returns the number of the user's turn that message n belongs to.
func (r *reading) turn(n int) int {
	if u := r.before(n, subject.User); u != nil {
		return u.Number
	}
	return 0
}

func distinct(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

var nowStated = pattern.New(`(?i)(?:current (?:date and time|date|time|datetime)|today(?:'s date)?|it is now|now|(?:^|[.\n]\s*)(?:the )?date)\s*(?:\(\w+\))?\s*(?:is|:|=)\s*(?:now\s+)?(?:[A-Z][a-z]+day,?\s+)?([A-Za-z0-9 ,:T\-]{8,40})`)

// dateAlone matches a present that stands at the beginning of a sentence: "It is 2026-06-22.", "Now 2026-07-09."
var dateAlone = pattern.New(`(?i)(?:^|[.\n]\s*)(?:(?:it is|it's|now|date|today),? )?(\d{4}-\d{2}-\d{2})(?:[T ]\d{2}:\d{2})?\s*(?:\.|\n|$)`)

// statedNow finds the present that the policy states; zero if it states none.
func statedNow(policy string) time.Time {
	for _, m := range nowStated.FindAllStringSubmatch(policy, -1) {
		if at, ok := phrase.Date(m[1]); ok {
			return at
		}
	}
	if m := dateAlone.FindStringSubmatch(policy); m != nil {
		at, _ := phrase.Date(m[1]) // no date: zero
		return at
	}
	return time.Time{}
}

// clip shortens a quotation so that it is readable. The rest is still an exact quotation.
func clip(s string) string {
	const most = 280
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
