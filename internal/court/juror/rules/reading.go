package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"jurat/internal/court/juror"
	"jurat/internal/court/subject"
)

// A reading is a case, with what several checks derive from it, computed once. One goroutine uses it while checks run.
type reading struct {
	ctx    context.Context
	c      *subject.Case
	calls  []*call           // of the agent
	house  []string          // the sentences of the policy
	now    time.Time         // the present that the policy states; zero if it states none
	latest []spoken          // before each message, and at the end
	given  sources           // what the agent was given
	users  sources           // what the user said
	shown  sources           // what the agent had told the user
	orders [][]juror.Passage // by message: what gives orders to the agent or speaks to the jurors
	madeBy map[[2]int]*call  // by the number of its message, and its place there from 1
}

// spoken are the numbers of the latest messages with a text; 0: none.
type spoken struct{ user, agent int }

func read(ctx context.Context, c *subject.Case) *reading {
	r := &reading{ctx: ctx, c: c, given: sources{}, users: sources{}, shown: sources{}, madeBy: map[[2]int]*call{}, latest: make([]spoken, 1)}
	var policy strings.Builder
	known, last := records{}, spoken{}
	for i := range c.Messages {
		if r.late() {
			return r
		}
		m := &c.Messages[i]
		r.orders = append(r.orders, juror.PassagesIn(m))
		said := strings.TrimSpace(m.Text) != ""
		switch m.Role {
		case subject.System:
			policy.WriteString(m.Text + "\n")
		case subject.Tool:
			known.add(m)
		case subject.User:
			if r.users.add(m.Text, m.Number); said {
				last.user = m.Number
			}
		case subject.Assistant:
			if r.shown.add(m.Text, m.Number); said {
				last.agent = m.Number
			}
		}
		if m.Role != subject.Assistant {
			r.given.add(m.Text, m.Number)
		}
		r.latest = append(r.latest, last)
		calls := m.AgentCalls()
		for j := range calls {
			k := newCall(c, m, &calls[j])
			k.about, k.aboutKey = known.about(k)
			r.calls = append(r.calls, k)
			r.madeBy[[2]int{m.Number, j + 1}] = k
		}
	}
	r.house, r.now = distinct(sentences(policy.String())), statedNow(policy.String())
	return r
}

func distinct(list []string) []string {
	seen := set{}
	return slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// late reports whether the caller has stopped waiting. The caller discards what the checks return then.
func (r *reading) late() bool { return r.ctx.Err() != nil }

// each iterates over the messages, with the agent's calls in each, until the context ends.
func (r *reading) each() iter.Seq2[*subject.Message, []*call] {
	return func(yield func(*subject.Message, []*call) bool) {
		from := 0
		for i := range r.c.Messages {
			m := &r.c.Messages[i]
			to := from + len(m.AgentCalls())
			if r.late() || !yield(m, r.calls[from:to]) {
				return
			}
			from = to
		}
	}
}

func (r *reading) eachCall() iter.Seq[*call] {
	return func(yield func(*call) bool) {
		for _, k := range r.calls {
			if r.late() || !yield(k) {
				return
			}
		}
	}
}

// before returns the latest message of the user or the agent with a text, before message n; nil if there is none.
func (r *reading) before(n int, role subject.Role) *subject.Message {
	last := r.latest[max(0, n-1)]
	if role == subject.User {
		return r.c.Message(last.user)
	}
	return r.c.Message(last.agent)
}

func (r *reading) turn(n int) int { return r.latest[max(0, n-1)].user }

var (
	nowStated = juror.NewPattern(`(?i)(?:current (?:date and time|date|time|datetime)|today(?:'s date)?|it is now|now|(?:^|[.\n]\s*)(?:the )?date)` +
		`\s*(?:\(\w+\))?\s*(?:is|:|=)\s*(?:now\s+)?(?:[A-Z][a-z]+day,?\s+)?([A-Za-z0-9 ,:T\-]{8,40})`)
	// dateAlone matches a present that stands at the beginning of a sentence: "It is 2026-06-22.", "Now 2026-07-09."
	dateAlone = juror.NewPattern(`(?i)(?:^|[.\n]\s*)(?:(?:it is|it's|now|date|today),? )?(\d{4}-\d{2}-\d{2})(?:[T ]\d{2}:\d{2})?\s*(?:\.|\n|$)`)
)

// statedNow finds the present that the policy states; zero if it states none.
func statedNow(policy string) time.Time {
	for _, m := range append(nowStated().FindAllStringSubmatch(policy, -1), dateAlone().FindAllStringSubmatch(policy, 1)...) {
		if at, ok := dateIn(m[1]); ok {
			return at
		}
	}
	return time.Time{}
}

// sources say in which message a value first occurred in some texts, by its marks. They compare values without punctuation
// and case, and numbers by any of their longer runs of digits. So "27/815/0815" equals "278150815", and "+49 151 23456"
// equals "015123456".
type sources map[string]int

// never is greater than the number of any message.
const never = math.MaxInt

// add indexes a text of a message. It indexes the values of JSON separately, because escapes hide where a word begins.
func (s sources) add(text string, n int) {
	list := marks(text)
	for _, l := range leaves("", decode(text)) {
		list = append(list, marks(l.text)...)
	}
	for _, mark := range list {
		if _, there := s[mark]; !there {
			s[mark] = n
		}
	}
}

// of returns the number of the first message that has a value or one of its numbers, or never.
func (s sources) of(value string) int {
	list := []string{bare(value)}
	if !strings.Contains(value, "@") {
		list = append(list, numbersIn(value)...)
	}
	found := never
	for _, mark := range list {
		if n, ok := s[mark]; ok {
			found = min(found, n)
		}
	}
	return found
}

// callKind is what a tool does, judged by its name.
type callKind int

const (
	otherCall callKind = iota // the name does not tell
	readCall                  // looks something up, thinks, computes
	lightCall                 // changes something without consequences: a note, a draft, a cart, a one-time code
	writeCall                 // consequential
	handover                  // gives the conversation to a person
)

// A call is a tool call, with what its name and result tell.
type call struct {
	*subject.ToolCall
	msg      int      // number of the message that makes it
	words    []string // of its name
	kind     callKind
	verb     string // stem of the verb in its name
	args     []leaf
	object   map[string]any   // the arguments, where they are an object
	result   *subject.Message // nil if the log has none
	failed   bool
	about    *record // what it acts on; nil if unclear
	aboutKey string  // the name of the identifier that shows it
}

func newCall(c *subject.Case, m *subject.Message, tc *subject.ToolCall) *call {
	k := &call{ToolCall: tc, msg: m.Number, words: nameWords(tc.Name), result: c.Message(tc.Result)}
	k.kind, k.verb = classify(k.words)
	arguments := decode(tc.Arguments)
	k.args = leaves("", arguments)
	k.object, _ = arguments.(map[string]any)
	k.failed = k.result != nil && (k.result.Failed || failedResult(k.result.Text))
	return k
}

// mayAct reports whether the call may have changed something, failed or not.
func (k *call) mayAct() bool { return k.kind != readCall && k.kind != handover }

func (k *call) acts() bool { return k.kind != readCall }

// quoted is the text that a finding about the call quotes: its arguments, or its name if it has none.
func (k *call) quoted() string {
	if strings.TrimSpace(k.Arguments) == "" || k.Arguments == "{}" {
		return k.Name
	}
	return clip(k.Arguments)
}

// quoteValue quotes an argument's value as the call writes it. If that fails, it quotes all arguments.
func (k *call) quoteValue(a leaf) string {
	key, value := strconv.Quote(a.key)+":", strconv.Quote(a.text)
	for _, form := range []string{key + " " + value, key + value, a.text} {
		if len(form) <= 280 && strings.Contains(k.Arguments, form) {
			return form
		}
	}
	return k.quoted()
}

// Consequential reports whether a call has consequences, by the name of its tool.
func Consequential(call *subject.ToolCall) bool {
	kind, _ := classify(nameWords(call.Name))
	return kind == writeCall
}

// classify reads a tool's name. The first word that is a verb decides.
func classify(words []string) (callKind, string) {
	if anyOf(words, handVerbs) && anyOf(words, people) || len(words) == 1 && handingOver[words[0]] {
		return handover, ""
	}
	for i, word := range words {
		direction := i+1 < len(words) && (words[i+1] == "in" || words[i+1] == "out") // check_in
		switch {
		case readVerbs[word] && i+2 < len(words) && words[i+1] == "and" && actVerbs[words[i+2]]: // validate_and_apply
			continue
		case readVerbs[word] && !direction, alsoNouns[word] && readNouns[words[len(words)-1]]: // order_status
			return readCall, stem(word)
		case !readVerbs[word] && !actVerbs[word]:
			continue
		case anyOf(words, lightNouns) && !(readVerbs[word] && direction):
			return lightCall, stem(word)
		}
		return writeCall, stem(word)
	}
	if anyOf(words, readNouns) {
		return readCall, ""
	}
	return otherCall, ""
}

func anyOf(words []string, s set) bool {
	return slices.ContainsFunc(words, func(w string) bool { return s[w] })
}

var (
	errorText = juror.NewPattern(`(?i)^\W*(error\b|err:|exception|traceback|failed\b|failure|fatal|http (4|5)\d\d|(4|5)\d\d (bad|unauthorized|forbidden` +
		`|not found|internal|service|gateway|conflict|too many)|permission denied|access denied|timed? ?out|request (failed|timed out)|unable to|could not|cannot )`)
	notFound   = juror.NewPattern(`(?i)\b(not found|does not exist|no such|timed out|permission denied|is invalid)\b`)
	badStatus  = setOf(`error failed failure denied declined rejected timeout timed_out unauthorized forbidden unavailable invalid not_found aborted`)
	noError    = setOf(`<nil> [] false 0 none`)
	serverCode = juror.NewPattern(`^[45]\d\d$`)
)

// failedResult recognizes errors by the shapes in which tools report them.
func failedResult(text string) bool {
	text = strings.TrimSpace(text)
	object, ok := decode(text).(map[string]any)
	if !ok {
		return errorText().MatchString(text) || len(text) < 160 && !strings.HasPrefix(text, "[") && notFound().MatchString(text)
	}
	for name, v := range object {
		said, failed := strings.ToLower(scalar(v)), false
		switch name {
		case "error", "errors", "exception", "errorMessage", "error_message", "error_code":
			text := strings.ToLower(fmt.Sprint(v)) // an object tells of an error, too
			failed = text != "" && !noError[text]
		case "success", "ok", "succeeded":
			failed = said == "false"
		case "isError", "is_error":
			failed = said == "true"
		case "exit_code":
			failed = said != "" && said != "0"
		case "status_code", "code":
			failed = serverCode().MatchString(said)
		case "status", "result", "outcome", "state":
			// A status inside a record (a payment of last year, declined) is not the call's status. Such records have more members.
			failed = badStatus[said] && len(object) <= 6 || name == "status" && serverCode().MatchString(said)
		}
		if failed {
			return true
		}
	}
	return false
}

// A leaf is a scalar somewhere in a JSON value, under the nearest member name.
type leaf struct{ key, text string }

// decode reads JSON that a tool printed; it need not be canonical. It returns nil for any other text.
func decode(text string) any {
	trimmed := strings.TrimSpace(text)
	if len(trimmed) > subject.MaxFile || !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(trimmed)))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.InputOffset() != int64(len(trimmed)) {
		return nil
	}
	return v
}

// leaves lists the scalars of a value in an order that does not depend on map iteration.
func leaves(key string, v any) (list []leaf) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			list = append(list, leaves(name, v[name])...)
		}
	case []any:
		for _, item := range v {
			list = append(list, leaves(key, item)...)
		}
	default:
		if text := scalar(v); text != "" {
			list = append(list, leaf{key, text})
		}
	}
	return list
}

// scalar is a text, a number or a truth value as a text; "" for anything else.
func scalar(v any) string {
	switch v.(type) {
	case string, json.Number, bool:
		return fmt.Sprint(v)
	}
	return ""
}

func sortedKeys(fields map[string]any) []string { return slices.Sorted(maps.Keys(fields)) }

// A record is an object that a tool returned.
type record struct {
	msg    int
	fields map[string]any
}

func (r *record) text(name string) string { return scalar(r.fields[name]) }

// isID reports whether a member identifies the record or what it belongs to, by its name or the look of its value.
func isID(name, value string) bool {
	words := nameWords(name)
	return len(words) > 0 && slices.Contains([]string{"id", "number", "no"}, words[len(words)-1]) ||
		len(value) <= 20 && !strings.ContainsAny(value, " .:") && strings.ContainsAny(value, "_-0123456789") && strings.ContainsFunc(value, unicode.IsLetter)
}

// recordsOf returns the objects of a result, each before those inside it. Deeper ones are parts of others, and no records.
func recordsOf(m *subject.Message) (list []*record) {
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		if depth < 0 {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			list = append(list, &record{m.Number, v})
			for _, name := range sortedKeys(v) {
				walk(v[name], depth-1)
			}
		case []any:
			for _, item := range v {
				walk(item, depth-1)
			}
		}
	}
	walk(decode(m.Text), 2)
	return list
}

type reference struct{ key, id string }

// records holds the latest record under each identifier.
type records map[reference]*record

// add stores the records of a result. If several share an identifier, the outermost counts.
func (k records) add(m *subject.Message) {
	for _, one := range slices.Backward(recordsOf(m)) {
		for key := range one.fields {
			if id := one.text(key); len(id) >= 2 && isID(key, id) {
				k[reference{key, id}] = one
			}
		}
	}
}

// about returns the record that a call acts on, and the name of the identifier that shows it. That is the identifier
// that the call's name mentions, or the only one among the arguments. It returns nil if that is unclear.
func (k records) about(c *call) (only *record, onlyKey string) {
	found := set{} // by the identifier's name
	for _, name := range sortedKeys(c.object) {
		for _, key := range []string{name, "id"} {
			one := k[reference{key, scalar(c.object[name])}]
			if one == nil {
				continue
			}
			if slices.ContainsFunc(nameWords(name), func(w string) bool { return w != "id" && slices.Contains(c.words, w) }) {
				return one, key
			}
			found[key], only, onlyKey = true, one, key
		}
	}
	if len(found) != 1 {
		return nil, ""
	}
	return only, onlyKey
}
