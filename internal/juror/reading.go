package juror

import (
	"regexp"
	"strings"
	"time"

	"jurat/internal/subject"
)

// A reading is a case with what every rule needs of it, worked out once.
type reading struct {
	c         *subject.Case
	calls     []*call
	policy    string   // the system messages, one after the other
	sentences []string // of the policy
	now       time.Time
	records   []record // objects that tools returned, in order
	lower     []string // the messages' texts in lower case
}

func read(c *subject.Case) *reading {
	r := &reading{c: c}
	var policy []string
	for i := range c.Messages {
		m := &c.Messages[i]
		r.lower = append(r.lower, strings.ToLower(m.Text))
		switch m.Role {
		case subject.System:
			policy = append(policy, m.Text)
		case subject.Tool:
			r.records = append(r.records, recordsOf(m)...)
		}
		for j := range m.ToolCalls {
			r.calls = append(r.calls, newCall(c, m, &m.ToolCalls[j]))
		}
	}
	r.policy = strings.Join(policy, "\n")
	r.sentences = sentencesOf(r.policy)
	r.now = statedNow(r.policy)
	return r
}

// said returns the messages of a role, in order.
func (r *reading) said(role subject.Role) []*subject.Message {
	var list []*subject.Message
	for i := range r.c.Messages {
		if r.c.Messages[i].Role == role {
			list = append(list, &r.c.Messages[i])
		}
	}
	return list
}

// before returns the latest message of a role with a text, before message n.
func (r *reading) before(n int, role subject.Role) *subject.Message {
	for i := min(n-1, len(r.c.Messages)) - 1; i >= 0; i-- {
		if m := &r.c.Messages[i]; m.Role == role && strings.TrimSpace(m.Text) != "" {
			return m
		}
	}
	return nil
}

// known reports whether a text occurs in what the agent was given before message n: by user, policy or tools.
func (r *reading) known(text string, n int) bool {
	text = strings.ToLower(text)
	for i := range r.c.Messages[:n-1] {
		if r.c.Messages[i].Role != subject.Assistant && strings.Contains(r.lower[i], text) {
			return true
		}
	}
	return false
}

// userKnew reports whether the user wrote a text before message n.
func (r *reading) userKnew(text string, n int) bool {
	text = strings.ToLower(text)
	for _, m := range r.said(subject.User) {
		if m.Number < n && strings.Contains(r.lower[m.Number-1], text) {
			return true
		}
	}
	return false
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
