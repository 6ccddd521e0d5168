package rules

import (
	"slices"
	"strings"

	"jurat/internal/juror/phrase"
	"jurat/internal/pattern"
	"jurat/internal/subject"
)

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
	k := &call{ToolCall: tc, msg: m.Number, words: phrase.NameWords(tc.Name), result: c.Message(tc.Result)}
	k.kind, k.verb = classify(k.words)
	arguments := decode(tc.Arguments)
	k.args = leaves("", arguments)
	k.object, _ = arguments.(map[string]any)
	k.failed = k.result != nil && (k.result.Failed || failedResult(k.result.Text))
	return k
}

// done reports whether the call has a result that is not an error.
func (k *call) done() bool { return k.result != nil && !k.failed }

// mayAct reports whether the call may have changed something, failed or not.
func (k *call) mayAct() bool { return k.kind != readCall && k.kind != handover }

// stems are the stems of the words in the call's name.
func (k *call) stems() map[string]bool {
	set := map[string]bool{}
	for _, word := range k.words {
		set[phrase.Stem(word)] = true
	}
	return set
}

// spokenIn reports whether words, by their stems, speak of what the call does: by its verb, by another verb for the same
// act, or, where the verb is a formality, by what is submitted: submit_exchange is an exchange.
func (k *call) spokenIn(stems map[string]bool) bool {
	if k.verb == "" {
		return namesAct(stems, k)
	}
	return phrase.SayAct(stems, k.verb) || formal[k.verb] && slices.ContainsFunc(k.words, func(word string) bool {
		return phrase.AlsoNouns[word] && phrase.SayAct(stems, phrase.Stem(word))
	})
}

// formal are the stems of verbs that say only that something is set going.
var formal = stemsIn(phrase.Set(`submit create make place process request file issue add initiate start perform execute insert open apply`))

// quoted is the text that a finding about the call quotes: its arguments, or its name if it has none.
func (k *call) quoted() string {
	if strings.TrimSpace(k.Arguments) == "" || k.Arguments == "{}" {
		return k.Name
	}
	return clip(k.Arguments)
}

var (
	people      = phrase.Set(`human humans agent agents person operator representative support supervisor specialist staff advisor team department desk queue`)
	handVerbs   = phrase.Set(`transfer hand handoff handover escalate connect forward route refer`)
	handingOver = phrase.Set(`handoff handover escalate`)
)

// classify reads a tool's name. The first word that is a verb decides.
func classify(words []string) (callKind, string) {
	any := func(set map[string]bool) bool {
		return slices.ContainsFunc(words, func(w string) bool { return set[w] })
	}
	if any(handVerbs) && any(people) || len(words) == 1 && handingOver[words[0]] {
		return handover, ""
	}
	for i, word := range words {
		switch {
		case phrase.ReadVerbs[word] && i+1 < len(words) && (words[i+1] == "in" || words[i+1] == "out"): // check_in
			return writeCall, phrase.Stem(word)
		case phrase.ReadVerbs[word] && i+2 < len(words) && words[i+1] == "and" && phrase.ActVerbs[words[i+2]]: // validate_and_apply
			continue
		case phrase.ReadVerbs[word]:
			return readCall, phrase.Stem(word)
		case !phrase.ActVerbs[word]:
			continue
		case phrase.AlsoNouns[word] && phrase.ReadNouns[words[len(words)-1]]: // order_status
			return readCall, phrase.Stem(word)
		case any(phrase.LightNouns):
			return lightCall, phrase.Stem(word)
		}
		return writeCall, phrase.Stem(word)
	}
	if any(phrase.ReadNouns) {
		return readCall, ""
	}
	return otherCall, ""
}

var (
	errorText  = pattern.New(`(?i)^\W*(error\b|err:|exception|traceback|failed\b|failure|fatal|http (4|5)\d\d|(4|5)\d\d (bad|unauthorized|forbidden|not found|internal|service|gateway|conflict|too many)|permission denied|access denied|timed? ?out|request (failed|timed out)|unable to|could not|cannot )`)
	notFound   = pattern.New(`(?i)\b(not found|does not exist|no such|timed out|permission denied|is invalid)\b`)
	badStatus  = phrase.Set(`error failed failure denied declined rejected timeout timed_out unauthorized forbidden unavailable invalid not_found aborted`)
	serverCode = pattern.New(`^[45]\d\d$`)
)

// failedResult recognizes errors by the shapes in which tools report them.
func failedResult(text string) bool {
	text = strings.TrimSpace(text)
	object, ok := decode(text).(map[string]any)
	if !ok {
		return errorText.MatchString(text) || len(text) < 160 && !strings.HasPrefix(text, "[") && notFound.MatchString(text)
	}
	r := record{fields: object}
	for _, name := range []string{"error", "errors", "exception", "errorMessage", "error_message", "error_code"} {
		if v, there := object[name]; there && v != nil && v != false && v != "" && r.text(name) != "0" && r.text(name) != "none" && !emptyList(v) {
			return true
		}
	}
	for _, name := range []string{"success", "ok", "succeeded"} {
		if r.text(name) == "false" {
			return true
		}
	}
	if r.text("isError") == "true" || r.text("is_error") == "true" {
		return true
	}
	if code := r.text("exit_code"); code != "" && code != "0" {
		return true
	}
	for _, name := range []string{"status", "result", "outcome", "state"} {
		// A status inside a record (a payment of last year, declined) is not the call's status. Such records have
		// more members.
		if badStatus[strings.ToLower(r.text(name))] && len(object) <= 6 {
			return true
		}
	}
	return serverCode.MatchString(r.text("status_code")) || serverCode.MatchString(r.text("status")) || serverCode.MatchString(r.text("code"))
}

func emptyList(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) == 0
}
