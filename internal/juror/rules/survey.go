package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"jurat/internal/juror/phrase"
	"jurat/internal/subject"
	"jurat/jury"
)

// A survey is a list of ids under a name that a tool gave. It tracks which of them the agent has not opened yet.
type survey struct {
	noun   string
	sought bool // the agent had listed or searched for them
	total  int
	closed map[string]bool // by bare id
	order  []string
}

// missing lists the first ids that the agent has not opened.
func (s *survey) missing() []string {
	var list []string
	for _, id := range s.order {
		if s.closed[phrase.Bare(id)] && len(list) < 10 {
			list = append(list, id)
		}
	}
	return list
}

// surveyIn returns the first member of a result that is a list of ids, of at least so many, by the noun in its name.
func surveyIn(m *subject.Message, least int) *survey {
	for _, one := range recordsOf(m) {
		for _, name := range sortedKeys(one.fields) {
			words := phrase.NameWords(name)
			items, ok := one.fields[name].([]any)
			if !ok || len(items) < least || len(words) == 0 {
				continue
			}
			s := &survey{noun: phrase.Stem(phrase.Listed(words)), total: len(items), closed: map[string]bool{}}
			for _, item := range items {
				id, _ := item.(string)
				if object, ok := item.(map[string]any); ok && len(object) == 1 {
					id = leaves("", object)[0].text
				}
				if len(id) >= 4 && strings.ContainsAny(id, "0123456789") && !strings.Contains(id, " ") {
					s.closed[phrase.Bare(id)] = true
					s.order = append(s.order, id)
				}
			}
			if len(s.closed) == s.total {
				return s
			}
		}
	}
	return nil
}

var givesUp = regexp.MustCompile(`(?i)\b(?:could not|couldn't|cannot|can't|unable to|was not able to|wasn't able to|not able to|did not|didn't|do not|don't) (?:find|locate|see|identify|determine|help)\b|\b(?:have|has) no (?:record|information|trace)s?\b|\b(?:there (?:is|are|was|were)|i (?:see|find|found)) no\b|\bno (?:[a-z]+ ){1,3}(?:was |were )?(?:found|listed|on file)\b`)

// gaveUpUnopened: a tool listed the ids of records, and the agent says that it finds nothing, or hands over, although
// some of the listed records were never opened. It applies only where the user's words or the agent's are about records
// of that kind, where the user named none of them, and where such records can be opened.
func gaveUpUnopened(r *reading) []jury.Finding {
	var last *survey
	opened, about := false, map[string]bool{}
	for m, calls := range r.each() {
		switch m.Role {
		case subject.User:
			for word := range phrase.Stems(m.Text) {
				about[word] = true
			}
			if last.names(m.Text) {
				last = nil
			}
		case subject.Tool:
			if s := surveyIn(m, 2); s != nil && last == nil {
				last, opened = s, false
				last.sought = slices.ContainsFunc(phrase.NameWords(m.ToolName), func(w string) bool { return w == "list" || w == "search" || w == "find" })
			}
		case subject.Assistant:
			if last != nil && last.names(m.Text) {
				last = nil // the agent offers them to the user
			}
			s := phrase.SentenceWith(m.Text, givesUp)
			if s != "" && last.unopened() && (last.sought || phrase.Stems(s)[last.noun] || about[last.noun]) && !r.opensLater(m.Number, last) {
				return []jury.Finding{last.givenUp(m.Number, clip(s))}
			}
		}
		for _, k := range calls {
			for _, l := range k.args {
				if last != nil && last.closed[phrase.Bare(l.text)] {
					delete(last.closed, phrase.Bare(l.text))
					opened = true
				}
			}
			if k.kind == handover && last.unopened() && about[last.noun] && opened {
				return []jury.Finding{last.givenUp(k.msg, k.quoted())}
			}
		}
	}
	return nil
}

func (s *survey) unopened() bool { return s != nil && len(s.closed) > 0 }

// names reports whether a text names one of the survey's records that are still closed.
func (s *survey) names(text string) bool {
	if s == nil {
		return false
	}
	for _, mark := range phrase.Marks(text) {
		if s.closed[mark] {
			return true
		}
	}
	return false
}

func (s *survey) givenUp(msg int, quote string) jury.Finding {
	return jury.Finding{Message: msg, Quote: quote, Severity: jury.Major,
		Explanation: fmt.Sprintf("The agent gives up, although a tool had listed %s, of which %s was never opened.", count(s.total, "record"), strings.Join(s.missing(), ", "))}
}

// opensLater reports whether a call after a message opens a record of the survey.
func (r *reading) opensLater(n int, s *survey) bool {
	for k := range r.eachCall() {
		for _, l := range k.args {
			if k.msg > n && s.closed[phrase.Bare(l.text)] {
				return true
			}
		}
	}
	return false
}
