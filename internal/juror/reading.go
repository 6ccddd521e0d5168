package juror

import (
	"context"
	"iter"
	"regexp"
	"strings"
	"time"

	"jurat/internal/subject"
)

// A reading is a case with what every rule needs of it, worked out once. It is for one goroutine while rules look into
// it; after [reading.settle] it only reads.
type reading struct {
	ctx       context.Context
	c         *subject.Case
	calls     []*call
	policy    string   // the system messages, one after the other
	sentences []string // of the policy
	now       time.Time
	records   []record // objects that tools returned, in order
	lower     []string // the messages' texts in lower case
	byRole    map[subject.Role][]*subject.Message
	latest    map[subject.Role][]int // by n: number of the latest message of a role with a text, up to message n; 0 if none
	memo      memo
}

func read(c *subject.Case) *reading { return readWithin(context.Background(), c) }

func readWithin(ctx context.Context, c *subject.Case) *reading {
	r := &reading{ctx: ctx, c: c, byRole: map[subject.Role][]*subject.Message{}}
	var policy []string
	for i := range c.Messages {
		if r.late() {
			return r
		}
		m := &c.Messages[i]
		r.lower = append(r.lower, strings.ToLower(m.Text))
		r.byRole[m.Role] = append(r.byRole[m.Role], m)
		switch m.Role {
		case subject.System:
			policy = append(policy, m.Text)
		case subject.Tool:
			r.records = append(r.records, recordsOf(m)...)
		}
		for j := range m.ToolCalls {
			k := newCall(c, m, &m.ToolCalls[j])
			k.place = len(r.calls)
			r.calls = append(r.calls, k)
		}
	}
	r.latest = latestOf(c)
	r.policy = strings.Join(policy, "\n")
	r.sentences = sentencesOf(r.policy)
	r.now = statedNow(r.policy)
	return r
}

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

// late reports whether nobody waits for the rules any more. Then they may return anything: what they find is not used.
func (r *reading) late() bool { return r.ctx.Err() != nil }

// settle drops what only the rules needed. What is left is read and never changed.
func (r *reading) settle() {
	r.memo, r.lower, r.records, r.ctx = memo{}, nil, nil, nil
}

// said returns the messages of a role, in order.
func (r *reading) said(role subject.Role) []*subject.Message { return r.byRole[role] }

// each goes through the messages of a role until the time is up.
func (r *reading) each(role subject.Role) iter.Seq[*subject.Message] {
	return func(yield func(*subject.Message) bool) {
		for _, m := range r.byRole[role] {
			if r.late() || !yield(m) {
				return
			}
		}
	}
}

// eachSentence goes through what they say, sentence by sentence.
func (r *reading) eachSentence(role subject.Role) iter.Seq2[*subject.Message, string] {
	return func(yield func(*subject.Message, string) bool) {
		for m := range r.each(role) {
			for _, s := range r.sentencesIn(m) {
				if r.late() || !yield(m, s) {
					return
				}
			}
		}
	}
}

// eachCall goes through the calls.
func (r *reading) eachCall() iter.Seq[*call] {
	return func(yield func(*call) bool) {
		for _, k := range r.calls {
			if r.late() || !yield(k) {
				return
			}
		}
	}
}

// before returns the latest message of a role with a text, before message n. It knows the user and the agent.
func (r *reading) before(n int, role subject.Role) *subject.Message {
	return r.c.Message(r.latest[role][max(0, min(n-1, len(r.c.Messages)))])
}

var sentenceEnd = regexp.MustCompile(`[.!?]+["')*]*(\s+|$)|[。！？]|\n+`)

// sentencesOf cuts a text into sentences that are substrings of it, to the letter.
func sentencesOf(text string) []string {
	var list []string
	start := 0
	add := func(end int) {
		if s := strings.TrimSpace(text[start:end]); s != "" {
			list = append(list, s)
		}
	}
	for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
		if listNumber(text[start:at[0]]) {
			continue // "1. Cancel" is one sentence
		}
		add(at[1])
		start = at[1]
	}
	add(len(text))
	return list
}

var onlyNumber = regexp.MustCompile(`^\s*[#*\-]*\s*\d{1,3}$`)

func listNumber(s string) bool { return onlyNumber.MatchString(s) }

var nowStated = regexp.MustCompile(`(?i)(?:current (?:date and time|date|time|datetime)|today(?:'s date)?|date today|it is now|now)\s*(?:\(\w+\))?\s*(?:is|:|=)\s*(?:now\s+)?(?:[A-Z][a-z]+day,?\s+)?([A-Za-z0-9 ,:T\-]{8,40})`)

// statedNow finds the present that the policy states; zero if it states none.
func statedNow(policy string) time.Time {
	for _, m := range nowStated.FindAllStringSubmatch(policy, -1) {
		if at, ok := dateIn(m[1]); ok {
			return at
		}
	}
	return time.Time{}
}

var (
	isoDate  = regexp.MustCompile(`\b(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::\d{2})?)?`)
	longDate = regexp.MustCompile(`\b(January|February|March|April|May|June|July|August|September|October|November|December) (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})`)
)

// dateIn reads the first date of a text: 2024-05-15, 2024-05-15T15:00:00, or May 15, 2024. Zones are left out, so
// whoever compares allows for a day.
func dateIn(text string) (time.Time, bool) {
	if m := isoDate.FindStringSubmatch(text); m != nil {
		if m[2] != "" {
			at, err := time.Parse("2006-01-02 15:04", m[1]+" "+m[2])
			return at, err == nil
		}
		at, err := time.Parse(time.DateOnly, m[1])
		return at, err == nil
	}
	if m := longDate.FindStringSubmatch(text); m != nil {
		at, err := time.Parse("January 2 2006", m[1]+" "+m[2]+" "+m[3])
		return at, err == nil
	}
	return time.Time{}, false
}

// clip keeps a quotation short enough to read; what remains still stands to the letter.
func clip(s string) string {
	const most = 280
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
