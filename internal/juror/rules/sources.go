package rules

import (
	"math"
	"strings"

	"jurat/internal/juror/phrase"
	"jurat/internal/subject"
)

// sources says where a value first occurred in some texts. It compares values without punctuation and case, and
// numbers by any of their longer runs of digits. So "27/815/0815" equals "278150815", and "+49 151 23456" equals
// "015123456".
type sources struct {
	first map[string]int // the number of the message, by mark
	user  map[string]int // the same for the user's words alone
}

func newSources() *sources { return &sources{map[string]int{}, map[string]int{}} }

// never is greater than the number of any message.
const never = math.MaxInt

// add indexes a text of a message. It indexes the values of JSON separately, because escapes hide where a word
// begins.
func (s *sources) add(text string, m *subject.Message) {
	texts := []string{text}
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		for _, l := range leaves("", decode(t)) {
			texts = append(texts, l.text)
		}
	}
	for _, one := range texts {
		for _, mark := range phrase.Marks(one) {
			note(s.first, mark, m.Number)
			if m.Role == subject.User {
				note(s.user, mark, m.Number)
			}
		}
	}
}

func note(first map[string]int, mark string, n int) {
	if _, there := first[mark]; !there {
		first[mark] = n
	}
}

// of returns the number of the first message that has a value or one of its numbers, or never.
func (s *sources) of(value string) int {
	marks := wholeMarks(value)
	if !strings.Contains(value, "@") {
		marks = append(marks, phrase.DigitRun.FindAllString(value, -1)...)
	}
	return firstOf(s.first, marks)
}

// ofWhole returns the number of the first message that has the whole value, or never.
func (s *sources) ofWhole(value string) int { return firstOf(s.first, wholeMarks(value)) }
func (s *sources) ofUser(value string) int  { return firstOf(s.user, wholeMarks(value)) }

func wholeMarks(value string) []string {
	marks := []string{phrase.Bare(value)}
	if strings.Contains(value, "@") {
		return marks
	}
	return append(marks, phrase.LongNumbers(value)...)
}

func firstOf(first map[string]int, marks []string) int {
	found := never
	for _, mark := range marks {
		if n, ok := first[mark]; ok {
			found = min(found, n)
		}
	}
	return found
}

// known reports whether a value occurred, before message n, in what user, policy or tools gave the agent.
func (r *reading) known(value string, n int) bool { return r.given.of(value) < n }
