package rules

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"jurat/internal/juror"
	"jurat/internal/subject"
)

// A reading is a case, with what several checks derive from it, computed once. One goroutine uses it while checks run.
type reading struct {
	ctx    context.Context
	c      *subject.Case
	calls  []*call   // of the agent
	house  []string  // the sentences of the policy, each once
	now    time.Time // the present that the policy states; zero if it states none
	latest map[subject.Role][]int
	given  sources           // what the agent was given
	users  sources           // what the user said
	shown  sources           // what the agent had told the user
	orders [][]juror.Passage // by message: what gives orders to the agent or speaks to the jurors
	madeBy map[[2]int]*call  // by the number of its message, and its place there from 1
}

func read(ctx context.Context, c *subject.Case) *reading {
	r := &reading{ctx: ctx, c: c, given: sources{}, users: sources{}, shown: sources{}, madeBy: map[[2]int]*call{}}
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
		case subject.User:
			r.users.add(m.Text, m.Number)
		case subject.Assistant:
			r.shown.add(m.Text, m.Number)
		}
		if m.Role != subject.Assistant {
			r.given.add(m.Text, m.Number)
		}
		calls := m.AgentCalls()
		for j := range calls {
			k := newCall(c, m, &calls[j])
			k.about, k.aboutKey = known.about(k)
			r.calls = append(r.calls, k)
			r.madeBy[[2]int{m.Number, j + 1}] = k
		}
	}
	r.latest = latestOf(c)
	text := strings.Join(policy, "\n")
	r.house, r.now = distinct(sentences(text)), statedNow(text)
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

// late reports whether the caller has stopped waiting. The caller discards what the checks return then.
func (r *reading) late() bool { return r.ctx.Err() != nil }

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
	seen := set{}
	return slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

var (
	nowStated = juror.NewPattern(`(?i)(?:current (?:date and time|date|time|datetime)|today(?:'s date)?|it is now|now|(?:^|[.\n]\s*)(?:the )?date)\s*(?:\(\w+\))?\s*(?:is|:|=)\s*(?:now\s+)?(?:[A-Z][a-z]+day,?\s+)?([A-Za-z0-9 ,:T\-]{8,40})`)
	// dateAlone matches a present that stands at the beginning of a sentence: "It is 2026-06-22.", "Now 2026-07-09."
	dateAlone = juror.NewPattern(`(?i)(?:^|[.\n]\s*)(?:(?:it is|it's|now|date|today),? )?(\d{4}-\d{2}-\d{2})(?:[T ]\d{2}:\d{2})?\s*(?:\.|\n|$)`)
)

// statedNow finds the present that the policy states; zero if it states none.
func statedNow(policy string) time.Time {
	for _, m := range append(nowStated.FindAllStringSubmatch(policy, -1), dateAlone.FindAllStringSubmatch(policy, 1)...) {
		if at, ok := dateIn(m[1]); ok {
			return at
		}
	}
	return time.Time{}
}

// sources say in which message a value first occurred in some texts, by its marks. They compare values without punctuation
// and case, and numbers by any of their longer runs of digits. So "27/815/0815" equals "278150815", and "+49 151 23456"
// equals "015123456".
type sources map[string]int

// never is greater than the number of any message.
const never = math.MaxInt

// add indexes a text of a message. It indexes the values of JSON separately, because escapes hide where a word begins.
func (s sources) add(text string, n int) {
	texts := []string{text}
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		for _, l := range leaves("", decode(t)) {
			texts = append(texts, l.text)
		}
	}
	for _, one := range texts {
		for _, mark := range marks(one) {
			if _, there := s[mark]; !there {
				s[mark] = n
			}
		}
	}
}

// of returns the number of the first message that has a value or one of its numbers, or never.
func (s sources) of(value string) int {
	list := []string{bare(value)}
	if !strings.Contains(value, "@") {
		list = append(append(list, longNumbers(value)...), digitRun.FindAllString(value, -1)...)
	}
	found := never
	for _, mark := range list {
		if n, ok := s[mark]; ok {
			found = min(found, n)
		}
	}
	return found
}
