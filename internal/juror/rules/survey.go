package rules

import (
	"fmt"
	"slices"
	"strings"

	"jurat/internal/juror/phrase"
	"jurat/internal/pattern"
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

// surveyIn returns the first list of ids in a result, of at least so many, by the noun in its name.
func surveyIn(m *subject.Message, least int) *survey {
	if items, ok := decode(m.Text).([]any); ok {
		return surveyOf(phrase.NameWords(m.ToolName), items, least)
	}
	for _, one := range recordsOf(m) {
		for _, name := range sortedKeys(one.fields) {
			items, _ := one.fields[name].([]any)
			if s := surveyOf(phrase.NameWords(name), items, least); s != nil {
				return s
			}
		}
	}
	return nil
}

// surveyOf returns the survey of a list, if each of its items is an id, or an object that says little beyond its id.
func surveyOf(name []string, items []any, least int) *survey {
	if len(items) < least || len(name) == 0 {
		return nil
	}
	s := &survey{noun: phrase.Stem(phrase.Listed(name)), total: len(items), closed: map[string]bool{}}
	for _, item := range items {
		id := idOf(item)
		if id == "" {
			return nil
		}
		s.closed[phrase.Bare(id)] = true
		s.order = append(s.order, id)
	}
	if len(s.closed) != s.total {
		return nil
	}
	return s
}

// idOf returns the id that an item is, or that an object has which says nothing else, or only a letter's subject, sender
// and date: what it is about must be opened to be read.
func idOf(item any) string {
	object, ok := item.(map[string]any)
	if !ok {
		id, _ := item.(string)
		return longID(id, 4)
	}
	_, headed := object["subject"]
	least, found := 4, ""
	if headed {
		least = 2
	}
	for _, key := range sortedKeys(object) {
		switch id, _ := object[key].(string); {
		case found == "" && (len(object) == 1 || key == "id" || strings.HasSuffix(key, "_id")):
			found = longID(id, least)
		case !headed || !letterHead[key]:
			return ""
		}
	}
	return found
}

var letterHead = phrase.Set(`subject from sender to date time sent received unread`)

// longID returns a text that can be an id, and "" for others.
func longID(id string, least int) string {
	if len(id) >= least && hasDigit(id) && !strings.Contains(id, " ") {
		return id
	}
	return ""
}

var givesUp = pattern.New(`(?i)\b(?:could not|couldn't|cannot|can't|unable to|was not able to|wasn't able to|not able to|did not|didn't|do not|don't) (?:find|locate|see|identify|determine|help)\b|\b(?:have|has) no (?:record|information|trace)s?\b|\b(?:there (?:is|are|was|were)|i (?:see|find|found)) no\b|\bno (?:[a-z]+ ){1,3}(?:was |were )?(?:found|listed|on file)\b`)

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
			if opened && strings.HasSuffix(strings.ToLower(givesUp.FindString(phrase.Plain(s))), "help") {
				s = "" // the agent has looked, and cannot help for another reason
			}
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
