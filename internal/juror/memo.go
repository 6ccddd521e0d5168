package juror

import (
	"strings"

	"jurat/internal/subject"
)

// A memo is what rules ask of a reading again and again, worked out when it is first asked for. Without it every rule
// that looks back over the conversation would take time with the square of its length.
type memo struct {
	given, bare lazy[*source]   // what the agent was given
	told, acts  lazy[*haystack] // what it said, and its calls
	deeds       lazy[deeds]

	sentences    map[int][]string // of a message, as all the following are by its number
	words        map[int]lexicon
	yes, no      map[int]bool
	chose, asks  map[int]bool
	latin        map[int]bool
	reports      map[int]bool
	house        lazy[[]string]
	lexicons     map[string]lexicon
	prohibits    lazy[bool]
	private      lazy[bool]
	strict       lazy[bool]
	demands      map[string]string
	demanding    lazy[[]demand]
	excuses      map[string]int
	requests     lazy[*requests]
	bans         lazy[banList]
	agreed       lazy[[]int]
	asking       map[string][]int
	approval     lazy[int]
	acted        lazy[map[string]*call]
	sums         lazy[[]sum]
	amended      lazy[int]
	numbers      lazy[numberList]
	claims       lazy[[]claim]
	backings     map[string]*backing
	nouns        map[string]*backing
	contradicted lazy[[]contradiction]
	about        map[*call]*record
	answers      map[*call]map[string]any
	referred     lazy[map[reference][]int]
	countIndex   lazy[*countIndex]
	counts       map[string][]counted
	dates        map[string]*dateList
	tiers        lazy[tierList]
	statuses     lazy[map[spot]int]
	inner        map[inner]bool
	features     map[string]*feature
	used         map[*record][]leaf
	owned        lazy[map[owned]bool]
	surveys      lazy[[]surveyedFrom]
	allAsked     lazy[int]
}

// A lazy value is worked out once.
type lazy[T any] struct {
	known bool
	value T
}

func (l *lazy[T]) get(work func() T) T {
	if !l.known {
		l.value, l.known = work(), true
	}
	return l.value
}

// once does the same for each key.
func once[K comparable, V any](known *map[K]V, key K, work func() V) V {
	if v, ok := (*known)[key]; ok {
		return v
	}
	if *known == nil {
		*known = map[K]V{}
	}
	v := work()
	(*known)[key] = v
	return v
}

// A lexicon is the words of a text as the rules compare them.
type lexicon struct {
	families, stems map[string]bool
}

func lexiconOf(text string) lexicon {
	l := lexicon{map[string]bool{}, map[string]bool{}}
	for _, word := range wordsOf(text) {
		l.families[verbFamily(word)] = true
		l.stems[stem(word)] = true
	}
	return l
}

// names reports whether the text names what the tool acts on (refund_order: order), verbs aside.
func (l lexicon) names(k *call) bool {
	for _, word := range k.words {
		if len(word) >= 4 && l.stems[stem(word)] {
			return true
		}
	}
	return false
}

// hasVerb reports whether the text speaks of the tool's very verb.
func (l lexicon) hasVerb(k *call) bool {
	for _, verb := range k.verbs {
		if l.stems[verb] {
			return true
		}
	}
	return false
}

// wordsIn is the lexicon of a message.
func (r *reading) wordsIn(m *subject.Message) lexicon {
	return once(&r.memo.words, m.Number, func() lexicon { return lexiconOf(m.Text) })
}

// lexicon is the lexicon of a sentence of the policy.
func (r *reading) lexicon(s string) lexicon {
	return once(&r.memo.lexicons, s, func() lexicon { return lexiconOf(s) })
}

func (r *reading) sentencesIn(m *subject.Message) []string {
	return once(&r.memo.sentences, m.Number, func() []string { return sentencesOf(m.Text) })
}

func (r *reading) yes(m *subject.Message) bool {
	return once(&r.memo.yes, m.Number, func() bool { return saysYes(m.Text) })
}

func (r *reading) no(m *subject.Message) bool {
	return once(&r.memo.no, m.Number, func() bool { return saysNo(m.Text) })
}

func (r *reading) chose(m *subject.Message) bool {
	return once(&r.memo.chose, m.Number, func() bool { return choice.MatchString(m.Text) })
}

func (r *reading) asks(m *subject.Message) bool {
	return once(&r.memo.asks, m.Number, func() bool { return strings.ContainsAny(m.Text, "?？") })
}

func (r *reading) inLatin(m *subject.Message) bool {
	return once(&r.memo.latin, m.Number, func() bool { return latin(m.Text) })
}

// house lists the sentences of the policy, each once: long logs repeat their instructions.
func (r *reading) house() []string {
	return r.memo.house.get(func() []string {
		seen := map[string]bool{}
		var list []string
		for _, s := range r.sentences {
			if !seen[s] {
				seen[s] = true
				list = append(list, s)
			}
		}
		return list
	})
}
