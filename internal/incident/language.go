package incident

import (
	"fmt"
	"strings"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// Lang is a language of statements, by its two letters (ISO 639-1). The zero value is English.
type Lang string

const (
	English  Lang = "en"
	Japanese Lang = "ja"
	Russian  Lang = "ru"
)

// Langs lists every language that statements are written in.
func Langs() []Lang { return []Lang{English, Japanese, Russian} }

// A sentence is a template: {name} stands for what is inserted. It is whole, or a whole clause where a language can
// join clauses without inflecting them: word order and cases are the translator's, never the program's.
type sentence string

// with inserts values, given as name and value by turns. What is inserted is not searched for placeholders again, so
// that text from a record cannot ask for another value.
func (s sentence) with(pairs ...any) string {
	var old []string
	for i := 0; i+1 < len(pairs); i += 2 {
		old = append(old, fmt.Sprintf("{%v}", pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	return strings.NewReplacer(old...).Replace(string(s))
}

// byStatus has a sentence for each answer that can be met where it is used.
type byStatus map[verify.Status]sentence

// A language is everything that a statement says in it. The table of each language has every member, with the same
// placeholders.
type language struct {
	name string // in itself

	between sentence // stands between two sentences of a paragraph

	actions   map[evidence.ActionType]string
	roles     map[evidence.Role]string
	positions map[jury.Position]string // with the identifier, which is what was sealed
	methods   map[jury.Method]string   // likewise
	approvals map[evidence.ApprovalStatus]string

	questions map[verify.Guarantee]question
	statuses  map[verify.Status]string
	kinds     map[verify.Kind]string
	clocks    map[verify.Clock]string

	// Who produced it: {action}, {role}, {actor}, {model}, {version}; {because} is from the table of that name.
	recorded          sentence
	recordedWithModel sentence
	notProved         sentence
	notProvedModel    sentence
	refuted           sentence

	// When: {time} is the author's word in claimed, and proved in the others.
	claimed      sentence
	timeRefuted  sentence
	timeUnproved sentence
	independent  sentence
	operator     sentence

	// Who else could have signed: of a record, and of all acts of a trial.
	keyOfActor     sentence
	keyOfOperator  sentence
	keysOfOperator sentence
	keyUnproved    sentence // {reason}

	// Sealed how.
	sealed           sentence
	place            sentence
	contentNotProved sentence
	contentRefuted   sentence

	// Under what, and where to check it.
	configuration sentence
	context       sentence
	contextApart  sentence
	check         sentence
	checkTrial    sentence // {submission}, {judgment}: record ids

	// What a person decided, and delivered: {status}, {original}, {actor}, {time}, {record}.
	reviewed       sentence // of one record
	decided        sentence
	decidedVerdict sentence // with {position}
	decidedOpen    sentence
	decidedDoubted sentence
	decidedWhy     sentence // {why}: in the reviewer's words
	delivered      sentence

	// What a trial came to: {position}, {actor}, {status}; {jury}, {score} and {method} are the jury's.
	outcome map[jury.Decider]sentence
	open    map[jury.Decider]sentence // what nobody has passed or failed
	doubted sentence
	unknown sentence // {count} decisions in the file, of which nothing is stated

	// Who sat: {seat}, {model}, {provider}, {reported}.
	sat        sentence // {items}
	seatRules  sentence
	seatModel  sentence
	seatOther  sentence
	seatSilent sentence

	// because says of a guarantee what is missing or false, so that {reason}, which verification gives in English,
	// need not be understood.
	because  map[verify.Guarantee]byStatus
	noReason sentence

	// A trial.
	noActs       sentence
	acts         sentence
	actsProved   sentence
	actsDoubted  map[verify.Guarantee]byStatus
	procedure    map[verify.Guarantee]byStatus
	noJudgment   sentence
	unreadable   sentence
	judged       sentence
	judgedStated byStatus

	// What takes away from a judgment: as a fact, and as what the file states.
	degraded           sentence
	degradedStated     sentence
	inconclusive       sentence
	inconclusiveStated sentence

	// The disclaimer: {items} are those of notShown, joined with nor.
	disclaimer sentence
	nor        sentence
	notShown   map[string]string // by the report's words
}

// languageOf returns the table of a language; English for one that has none.
func languageOf(l Lang) *language {
	switch l {
	case Japanese:
		return &japanese
	case Russian:
		return &russian
	}
	return &english
}

// join makes a paragraph of sentences, leaving out those that are not to be said.
func (l *language) join(sentences ...string) string {
	var said []string
	for _, s := range sentences {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, string(l.between))
}

func (l *language) action(a evidence.ActionType) string {
	return named(l.actions, a, strings.ReplaceAll(string(a), "_", " "))
}

func (l *language) role(r evidence.Role) string { return named(l.roles, r, string(r)) }

func (l *language) position(p jury.Position) string { return named(l.positions, p, word(string(p))) }

func (l *language) approval(s evidence.ApprovalStatus) string {
	return named(l.approvals, s, word(string(s)))
}

func (l *language) method(m jury.Method) string { return named(l.methods, m, word(string(m))) }

// disclaim says what the report does not prove. Where a language has no words for an item, the report's own are better
// than none.
func (l *language) disclaim(report *verify.Report) string {
	var items []string
	for _, item := range report.NotShown {
		items = append(items, named(l.notShown, item, item))
	}
	return l.disclaimer.with("items", strings.Join(items, string(l.nor)))
}

// named is a key's name in a language, or what is to stand there if it has none.
func named[K comparable, V any](names map[K]V, key K, otherwise V) V {
	if name, ok := names[key]; ok {
		return name
	}
	return otherwise
}

// ActionName is what an action type is called in a language; English, where there is no such language.
func ActionName(lang Lang, action evidence.ActionType) string {
	return named(languageOf(lang).actions, action, string(action))
}

// RoleName is what a role is called in a language; English, where there is no such language.
func RoleName(lang Lang, role evidence.Role) string { return languageOf(lang).role(role) }

// Name is what a language calls itself.
func (l Lang) Name() string { return languageOf(l).name }
