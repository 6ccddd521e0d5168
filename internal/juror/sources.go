package juror

import (
	"math"
	"sort"
	"strings"

	"jurat/internal/subject"
)

// origins are the kinds of message, as bits, that a search for where a text comes from may be confined to.
type origins int

const (
	anyoneElse origins = 1 << iota // not the agent
	fromUser
	fromTool
	fromCard // speaks of a payment card
)

// never is the number of a message that does not exist, after all that do.
const never = math.MaxInt

// A source finds where a text was first given to the agent.
type source struct {
	*haystack
	numbers []int
	kinds   []origins
	firsts  map[sought]int
}

type sought struct {
	text string
	from origins
}

// first returns the number of the first message of a kind that holds a text, or never.
func (s *source) first(text string, from origins) int {
	return once(&s.firsts, sought{text, from}, func() int {
		for _, i := range s.holding(text) {
			if s.kinds[i]&from != 0 {
				return s.numbers[i]
			}
		}
		return never
	})
}

// sourceOf makes a source of what the agent was given, in some form.
func (r *reading) sourceOf(form func(m *subject.Message) string) *source {
	s := &source{}
	var texts []string
	for i := range r.c.Messages {
		m := &r.c.Messages[i]
		if m.Role != subject.Assistant {
			texts = append(texts, form(m))
			s.numbers = append(s.numbers, m.Number)
			s.kinds = append(s.kinds, r.originOf(m))
		}
	}
	s.haystack = newHaystack(texts)
	return s
}

func (r *reading) originOf(m *subject.Message) origins {
	kind := anyoneElse
	switch m.Role {
	case subject.User:
		kind |= fromUser
	case subject.Tool:
		kind |= fromTool
	}
	for _, word := range []string{"card", "pan", "cvv"} {
		if strings.Contains(r.lower[m.Number-1], word) {
			kind |= fromCard
		}
	}
	return kind
}

// given searches what the agent was given, in lower case.
func (r *reading) given() *source {
	return r.memo.given.get(func() *source {
		return r.sourceOf(func(m *subject.Message) string { return r.lower[m.Number-1] })
	})
}

// bare searches the same without punctuation.
func (r *reading) bare() *source {
	return r.memo.bare.get(func() *source {
		return r.sourceOf(func(m *subject.Message) string { return bareText(m.Text) })
	})
}

// known reports whether a text occurs in what the agent was given before message n: by user, policy or tools.
func (r *reading) known(text string, n int) bool {
	return r.given().first(strings.ToLower(text), anyoneElse) < n
}

// userKnew reports whether the user wrote a text before message n.
func (r *reading) userKnew(text string, n int) bool {
	return r.given().first(strings.ToLower(text), fromUser) < n
}

// saying lists the agent's messages that hold a text.
func (r *reading) saying(text string) []*subject.Message {
	said := r.said(subject.Assistant)
	told := r.memo.told.get(func() *haystack {
		var texts []string
		for _, m := range said {
			texts = append(texts, m.Text)
		}
		return newHaystack(texts)
	})
	var list []*subject.Message
	for _, i := range told.holding(text) {
		list = append(list, said[i])
	}
	return list
}

// sayingAfter returns the first of them after message n, or nil.
func (r *reading) sayingAfter(text string, n int) *subject.Message {
	list := r.saying(text)
	i := sort.Search(len(list), func(i int) bool { return list[i].Number > n })
	if i == len(list) {
		return nil
	}
	return list[i]
}

// having lists the places in r.calls of the calls that have a word in their name or arguments: see [call.has].
func (r *reading) having(word string) []int {
	acts := r.memo.acts.get(func() *haystack {
		var texts []string
		for _, k := range r.calls {
			texts = append(texts, k.lowName+seam+k.lowArgs)
		}
		return newHaystack(texts)
	})
	return acts.holding(strings.ToLower(word))
}

// anyHaving reports whether a call between two messages has a word and suits.
func (r *reading) anyHaving(word string, after, before int, suits func(*call) bool) bool {
	list := r.having(word)
	i := sort.Search(len(list), func(i int) bool { return r.calls[list[i]].msg > after })
	for ; i < len(list) && r.calls[list[i]].msg < before; i++ {
		if suits(r.calls[list[i]]) {
			return true
		}
	}
	return false
}

// havingAll lists the calls that have all of some words.
func (r *reading) havingAll(words []string) []*call {
	var fewest []int
	for i, word := range words {
		if list := r.having(word); i == 0 || len(list) < len(fewest) {
			fewest = list
		}
	}
	var calls []*call
	for _, i := range fewest {
		if r.calls[i].hasAll(words) {
			calls = append(calls, r.calls[i])
		}
	}
	return calls
}
