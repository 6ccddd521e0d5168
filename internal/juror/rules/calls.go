package rules

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"jurat/internal/juror"
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

// quoted is the text that a finding about the call quotes: its arguments, or its name if it has none.
func (k *call) quoted() string {
	if strings.TrimSpace(k.Arguments) == "" || k.Arguments == "{}" {
		return k.Name
	}
	return clip(k.Arguments)
}

// quoteValue quotes an argument's value as the call writes it. If that fails, it quotes all arguments.
func (k *call) quoteValue(a leaf) string {
	for _, form := range []string{strconv.Quote(a.key) + ": " + strconv.Quote(a.text), strconv.Quote(a.key) + ":" + strconv.Quote(a.text), a.text} {
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
	any := func(s set) bool { return slices.ContainsFunc(words, func(w string) bool { return s[w] }) }
	if any(handVerbs) && any(people) || len(words) == 1 && handingOver[words[0]] {
		return handover, ""
	}
	for i, word := range words {
		switch {
		case readVerbs[word] && i+1 < len(words) && (words[i+1] == "in" || words[i+1] == "out"): // check_in
			return writeCall, stem(word)
		case readVerbs[word] && i+2 < len(words) && words[i+1] == "and" && actVerbs[words[i+2]]: // validate_and_apply
			continue
		case readVerbs[word]:
			return readCall, stem(word)
		case !actVerbs[word]:
			continue
		case alsoNouns[word] && readNouns[words[len(words)-1]]: // order_status
			return readCall, stem(word)
		case any(lightNouns):
			return lightCall, stem(word)
		}
		return writeCall, stem(word)
	}
	if any(readNouns) {
		return readCall, ""
	}
	return otherCall, ""
}

var (
	errorText  = juror.NewPattern(`(?i)^\W*(error\b|err:|exception|traceback|failed\b|failure|fatal|http (4|5)\d\d|(4|5)\d\d (bad|unauthorized|forbidden|not found|internal|service|gateway|conflict|too many)|permission denied|access denied|timed? ?out|request (failed|timed out)|unable to|could not|cannot )`)
	notFound   = juror.NewPattern(`(?i)\b(not found|does not exist|no such|timed out|permission denied|is invalid)\b`)
	badStatus  = setOf(`error failed failure denied declined rejected timeout timed_out unauthorized forbidden unavailable invalid not_found aborted`)
	serverCode = juror.NewPattern(`^[45]\d\d$`)
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
		list, isList := object[name].([]any)
		if v, there := object[name]; there && v != nil && v != false && v != "" && r.text(name) != "0" && r.text(name) != "none" && (!isList || len(list) > 0) {
			return true
		}
	}
	says := func(text string, names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return r.text(name) == text })
	}
	if code := r.text("exit_code"); says("false", "success", "ok", "succeeded") || says("true", "isError", "is_error") || code != "" && code != "0" {
		return true
	}
	// A status inside a record (a payment of last year, declined) is not the call's status. Such records have more members.
	return slices.ContainsFunc([]string{"status", "result", "outcome", "state"}, func(name string) bool { return badStatus[strings.ToLower(r.text(name))] && len(object) <= 6 }) ||
		slices.ContainsFunc([]string{"status_code", "status", "code"}, func(name string) bool { return serverCode.MatchString(r.text(name)) })
}

// A leaf is a scalar somewhere in a JSON value, under the nearest member name.
type leaf struct{ key, text string }

// decode reads JSON that a tool printed; it need not be canonical. It returns nil for any other text.
func decode(text string) any {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || len(trimmed) > subject.MaxFile {
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

func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
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
		len(value) <= 20 && !strings.ContainsAny(value, " .:") && (hasDigit(value) || strings.ContainsAny(value, "_-")) && strings.IndexFunc(value, unicode.IsLetter) >= 0
}

// recordsOf returns the objects of a result: the result itself or the elements of its array, and the objects inside.
func recordsOf(m *subject.Message) (list []*record) {
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		switch v := v.(type) {
		case map[string]any:
			list = append(list, &record{m.Number, v})
			for _, name := range sortedKeys(v) {
				if depth > 0 {
					walk(v[name], depth-1)
				}
			}
		case []any:
			for _, item := range v {
				if depth > 0 {
					walk(item, depth-1)
				}
			}
		}
	}
	walk(decode(m.Text), 2)
	return list
}

// A reference is an identifier and the name of its member.
type reference struct{ key, id string }

// records holds the latest record under each identifier.
type records map[reference]*record

// add stores the records of a result. If several share an identifier, the outermost counts.
func (k records) add(m *subject.Message) {
	list := recordsOf(m)
	slices.Reverse(list)
	for _, one := range list {
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
		id := scalar(c.object[name])
		for _, key := range []string{name, "id"} {
			one := k[reference{key, id}]
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
