package juror

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"jurat/internal/subject"
	"jurat/jury"
)

var totalClaim = regexp.MustCompile(`(?i)\b(you (?:currently )?have|there (?:are|is)|i (?:found|see)|these are)\b[^.\n]{0,30}\b(one|two|three|four|five|six|seven|eight|nine|only|all(?: of)?|\d{1,2})\b[^.\n]{3,}`)

var wantsAll = regexp.MustCompile(`(?i)\b(all|every|each|any|both)\b`)

// surveyIncomplete: asked about all, shown a list of ids by a tool, the agent opens some of them, leaves the others
// closed, and then says how many there are.
func surveyIncomplete(r *reading) []jury.Finding {
	var found []jury.Finding
	for m := range r.each(subject.Assistant) {
		at := totalClaim.FindString(m.Text)
		if at == "" || len(m.ToolCalls) > 0 {
			continue
		}
		s := r.surveyed(m.Number)
		if s == nil || s.whole < m.Number || !r.askedForAll(m.Number) || r.namesClosed(m, s) {
			continue
		}
		closed := s.closed(m.Number)
		opened := len(s.ids) - len(closed)
		found = append(found, jury.Finding{Message: m.Number, Quote: clip(at), Severity: jury.Major,
			Explanation: fmt.Sprintf("A tool had listed %d items; the agent looked at %d and never at %s, and yet says how many there are.", opened+len(closed), opened, strings.Join(closed, ", "))})
		break
	}
	return found
}

func (r *reading) askedForAll(n int) bool {
	return n > r.memo.allAsked.get(func() int {
		for u := range r.each(subject.User) {
			if wantsAll.MatchString(u.Text) {
				return u.Number
			}
		}
		return never
	})
}

// A survey is a list of ids that a tool gave, and when the agent opened each.
type survey struct {
	ids    []string
	opened []int         // by id, the number of the message; never if it did not
	second int           // when it had opened two of them
	whole  int           // when it had opened all
	named  map[int][]int // by number of an agent's message: which ids it names
}

// closed lists the ids that the agent had not opened before message n.
func (s *survey) closed(n int) []string {
	var list []string
	for i, id := range s.ids {
		if s.opened[i] >= n {
			list = append(list, id)
		}
	}
	return list
}

// namesClosed reports whether a message names an id that the agent had not opened before.
func (r *reading) namesClosed(m *subject.Message, s *survey) bool {
	if s.named == nil {
		s.named = map[int][]int{}
		for i, id := range s.ids {
			for _, a := range r.saying(id) {
				s.named[a.Number] = append(s.named[a.Number], i)
			}
		}
	}
	return slices.ContainsFunc(s.named[m.Number], func(i int) bool { return s.opened[i] >= m.Number })
}

// surveyed returns the last list of ids that a tool gave and of which the agent had opened at least two before message
// n; nil if there is none.
func (r *reading) surveyed(n int) *survey {
	list := r.memo.surveys.get(r.surveys)
	i := sort.Search(len(list), func(i int) bool { return list[i].from >= n })
	if i == 0 {
		return nil
	}
	return list[i-1].last
}

// surveyedFrom says which list is the last one after a message.
type surveyedFrom struct {
	from int
	last *survey
}

func (r *reading) surveys() []surveyedFrom {
	var list []surveyedFrom
	place := map[*survey]int{}
	for _, one := range r.records {
		for _, ids := range idLists(one.fields) {
			if s := r.survey(one.msg, ids); s.second < never && !r.late() {
				place[s] = len(list)
				list = append(list, surveyedFrom{s.second, s})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b surveyedFrom) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(list); i++ {
		if before := list[i-1].last; place[before] > place[list[i].last] {
			list[i].last = before
		}
	}
	return list
}

// survey finds out when each id of a list in message n was opened.
func (r *reading) survey(n int, ids []string) *survey {
	s := &survey{ids: ids}
	for _, id := range ids {
		s.opened = append(s.opened, r.openedAfter(n, id))
	}
	times := slices.Sorted(slices.Values(s.opened))
	s.second, s.whole = times[1], times[len(times)-1]
	return s
}

func (r *reading) openedAfter(n int, id string) int {
	opened := never
	r.anyHaving(id, n, never, func(k *call) bool {
		if !strings.Contains(k.Arguments, id) { // in other letters, or in the tool's name
			return false
		}
		opened = k.msg
		return true
	})
	return opened
}

// idLists returns the members that are arrays of three or more strings that look like identifiers.
func idLists(fields map[string]any) [][]string {
	var lists [][]string
	for _, name := range sortedKeys(fields) {
		items, ok := fields[name].([]any)
		if !ok || len(items) < 3 {
			continue
		}
		var ids []string
		for _, item := range items {
			if s, ok := item.(string); ok && len(s) >= 4 && strings.ContainsAny(s, "0123456789") && !strings.Contains(s, " ") {
				ids = append(ids, s)
			}
		}
		if len(ids) == len(items) {
			lists = append(lists, ids)
		}
	}
	return lists
}
