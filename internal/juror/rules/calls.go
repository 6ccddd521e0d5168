package rules

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/juror"
	"jurat/internal/subject"
)

// callKind is what a tool does, judged by its name.
type callKind int

const (
	otherCall callKind = iota // the name does not tell, or it acts without consequences: a note, a draft, a cart, a one-time code
	readCall                  // looks something up, thinks, computes
	writeCall                 // consequential
)

// A call is a tool call of the agent, with what its name and result tell.
type call struct {
	*subject.ToolCall
	at       *step    // that makes it
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

func newCall(c *subject.Case, at *step, tc *subject.ToolCall) *call {
	k := &call{ToolCall: tc, at: at, words: nameWords(tc.Name), result: c.Message(tc.Result)}
	k.kind, k.verb = classify(k.words)
	arguments := decode(tc.Arguments)
	k.args = leaves("", arguments)
	k.object, _ = arguments.(map[string]any)
	k.failed = k.result != nil && (k.result.Failed || failedResult(k.result.Text))
	return k
}

// mayAct reports whether the call may have changed something, failed or not.
func (k *call) mayAct() bool { return k.kind != readCall }

// quoted is what a finding about the call quotes: its arguments, or its name if it has none.
func (k *call) quoted() string {
	if strings.TrimSpace(k.Arguments) == "" || k.Arguments == "{}" {
		return k.Name
	}
	return clip(k.Arguments)
}

// Consequential reports whether a call has consequences, by the name of its tool.
func Consequential(call *subject.ToolCall) bool {
	kind, _ := classify(nameWords(call.Name))
	return kind == writeCall
}

// classify reads a tool's name. The first word that is a verb decides.
func classify(words []string) (callKind, string) {
	for i, word := range words {
		next := append(words[i+1:], "")[0]
		switch {
		case readVerbs[word] && (next == "in" || next == "out"): // check_in
			return writeCall, stem(word)
		case readVerbs[word], alsoNouns[word] && readNouns[words[len(words)-1]]: // order_status
			return readCall, stem(word)
		case actVerbs[word] && slices.ContainsFunc(words, func(w string) bool { return lightNouns[w] }):
			return otherCall, stem(word)
		case actVerbs[word]:
			return writeCall, stem(word)
		}
	}
	if slices.ContainsFunc(words, func(w string) bool { return readNouns[w] }) {
		return readCall, ""
	}
	return otherCall, ""
}

var (
	errorText = juror.NewPattern(`(?i)^\W*(error\b|err:|exception|traceback|failed\b|failure|fatal|http (4|5)\d\d` +
		`|(4|5)\d\d (bad|unauthorized|forbidden|not found|internal|service|gateway|conflict|too many)` +
		`|permission denied|access denied|timed? ?out|request (failed|timed out)|unable to|could not|cannot )`)
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
	// A status inside a record (a payment of last year, declined) is not the call's status. Such records have more members.
	for _, name := range sortedKeys(object) {
		text := strings.ToLower(scalar(object[name]))
		switch name {
		case "error", "errors", "exception", "errorMessage", "error_message", "error_code":
			ok = len(leaves("", object[name])) == 0 || text == "0" || text == "none" || text == "false"
		case "success", "ok", "succeeded":
			ok = text != "false"
		case "isError", "is_error":
			ok = text != "true"
		case "exit_code":
			ok = text == "" || text == "0"
		case "status", "result", "outcome", "state", "status_code", "code":
			ok = !serverCode.MatchString(text) && (len(object) > 6 || !badStatus[text])
		}
		if !ok {
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

// objects lists the objects in a value, each before those inside of it.
func objects(v any) (list []map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		list = append(list, v)
		for _, name := range sortedKeys(v) {
			list = append(list, objects(v[name])...)
		}
	case []any:
		for _, item := range v {
			list = append(list, objects(item)...)
		}
	}
	return list
}

// A record is an object that a tool returned, and the number of the message.
type record struct {
	msg    int
	fields map[string]any
}

func (r *record) text(name string) string { return scalar(r.fields[name]) }

// A reference is an identifier and the name of its member.
type reference struct{ key, id string }

// records holds the latest record under each identifier.
type records map[reference]*record

// add stores the records of a result. If several share an identifier, the outermost counts.
func (k records) add(m *subject.Message) {
	for _, fields := range slices.Backward(objects(decode(m.Text))) {
		for key, value := range fields {
			if id := scalar(value); len(id) >= 2 && len(id) <= 20 && !strings.ContainsAny(id, " .:") && strings.ContainsAny(id, "0123456789_-") {
				k[reference{key, id}] = &record{m.Number, fields}
			}
		}
	}
}

// about returns the record that a call acts on, and the name of the identifier that shows it. That is the identifier
// that the call's name mentions, or the only one among the arguments. It returns nil if that is unclear.
func (k records) about(c *call) (only *record, onlyKey string) {
	found := 0
	for _, name := range sortedKeys(c.object) {
		for _, key := range []string{name, "id"} {
			one := k[reference{key, scalar(c.object[name])}]
			if one == nil {
				continue
			}
			if slices.ContainsFunc(nameWords(name), func(w string) bool { return w != "id" && slices.Contains(c.words, w) }) {
				return one, key
			}
			found, only, onlyKey = found+1, one, key
			break
		}
	}
	if found != 1 {
		return nil, ""
	}
	return only, onlyKey
}
