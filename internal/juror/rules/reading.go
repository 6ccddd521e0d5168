package rules

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"jurat/internal/juror"
	"jurat/internal/subject"
)

// A reading is a case as the checks see it, made in one pass from front to back. Nothing changes it afterwards.
type reading struct {
	c           *subject.Case
	steps       []*step // one for each message
	calls       []*call // of the agent
	user, agent *subject.Message
	house       []string  // the sentences of the policy, each once
	now         time.Time // the present that the policy states; zero if it states none

	// In which message a value stood first: of all that the agent was given, of what the user said, and of what the agent said.
	given, users, shown sources
}

// A step is a message with the agent's calls in it.
type step struct {
	*subject.Message
	calls       []*call
	answers     *call            // of a result: the agent's call that it answers; nil if that is not known
	user, agent *subject.Message // the latest message of each before this one that has words; nil if there is none
	orders      []juror.Passage  // what gives orders to the agent or speaks to the jurors
}

// read returns the context's error if it ends before the case does.
func read(ctx context.Context, c *subject.Case) (*reading, error) {
	r := &reading{c: c, given: sources{}, users: sources{}, shown: sources{}}
	known, made, policy := records{}, map[[2]int]*call{}, ""
	for i := range c.Messages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m := &c.Messages[i]
		s := &step{Message: m, answers: made[[2]int{m.CallNumber, m.CallPlace}], user: r.user, agent: r.agent, orders: juror.PassagesIn(m)}
		r.steps = append(r.steps, s)
		spoken := strings.TrimSpace(m.Text) != ""
		switch m.Role {
		case subject.System:
			policy += m.Text + "\n"
		case subject.Tool:
			known.add(m)
		case subject.User:
			r.users.add(m.Text, m.Number)
			if spoken {
				r.user = m
			}
		case subject.Assistant:
			r.shown.add(m.Text, m.Number)
			if spoken {
				r.agent = m
			}
		}
		if m.Role != subject.Assistant {
			r.given.add(m.Text, m.Number)
		}
		for place, tc := range m.AgentCalls() {
			k := newCall(c, s, &tc)
			k.about, k.aboutKey = known.about(k)
			s.calls = append(s.calls, k)
			made[[2]int{m.Number, place + 1}] = k
		}
		r.calls = append(r.calls, s.calls...)
	}
	for _, s := range sentences(policy) {
		if !slices.Contains(r.house, s) {
			r.house = append(r.house, s)
		}
	}
	r.now = statedNow(r.house)
	return r, nil
}

// turn is the number of the user's message that was the latest at this step; 0 if there was none.
func (s *step) turn() int {
	if s.user == nil {
		return 0
	}
	return s.user.Number
}

// since reports whether, from message n on, the user calls a tool, or after it the agent acts or says something of a kind.
func (r *reading) since(n int, says func(text string) bool) bool {
	return slices.ContainsFunc(r.steps[n-1:], func(s *step) bool {
		return s.Role == subject.User && len(s.ToolCalls) > 0 || s.acts() || s.Role == subject.Assistant && says(plain(s.Text))
	})
}

// acts reports whether the agent does more at this step than look something up.
func (s *step) acts() bool {
	return slices.ContainsFunc(s.calls, (*call).mayAct)
}

var nowStated = juror.NewPattern(`(?i)^\W*(?:it is|it's|now|today|date)?\W*\d{4}-|\b(?:current|today|now|it is|the date)\b`)

// statedNow finds the present that a policy states; zero if it states none.
func statedNow(house []string) time.Time {
	for _, s := range house {
		if at, ok := dateIn(s); ok && nowStated.MatchString(s) {
			return at
		}
	}
	return time.Time{}
}

// sources say in which message a value first stood, by its marks. They compare values without punctuation and case, and
// numbers by any of their longer runs of digits. So "27/815/0815" equals "278150815", and "+49 151 23456" equals "015123456".
type sources map[string]int

// never is greater than the number of any message.
const never = math.MaxInt

// add indexes a text of a message. It indexes the values of JSON separately, because escapes hide where a word begins.
func (s sources) add(text string, n int) {
	texts := []string{text}
	for _, l := range leaves("", decode(text)) {
		texts = append(texts, l.text)
	}
	for _, one := range texts {
		for _, mark := range marks(one) {
			if _, there := s[mark]; !there {
				s[mark] = n
			}
		}
	}
}

// before reports whether a mark stood in a message before this one.
func (s sources) before(mark string, msg int) bool {
	n, there := s[mark]
	return there && n < msg
}

// of returns the number of the first message that has a value or one of its numbers, or never.
func (s sources) of(value string) int {
	list := []string{bare(value)}
	if !strings.Contains(value, "@") {
		list = append(list, numbers(value)...)
	}
	found := never
	for _, mark := range list {
		if n, ok := s[mark]; ok {
			found = min(found, n)
		}
	}
	return found
}
