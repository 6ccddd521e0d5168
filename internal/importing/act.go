package importing

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/convo"
	"jurat/internal/subject"
)

// act is what a recorder seals of an exchange at a time. Its request are the bytes of the file: what was told.
func (f *File) act(o *Options, e *Exchange, id string, now time.Time) observed.Act {
	if e.told != nil {
		return f.span(o, e, now)
	}
	prompt, response := e.said()
	part := e.Part()
	a := observed.Act{Recorder: o.Recorder, RequestID: "import-" + id, Type: evidence.ObservedSpan, At: now, Began: now, ChainID: o.Chain(e.Conversation),
		Agent: o.Agent, Vantage: evidence.Telemetry, Fidelity: evidence.ByAttributes, Protocol: observed.Imported + string(f.Format), Ended: evidence.Complete,
		Request: &observed.Body{Bytes: int64(len(part)), SHA256: evidence.DigestOf(part), Headers: f.headers(o, e), Kept: part}, Missing: f.missing(e)}
	if len(e.units) == 1 {
		a.Request.Type = "application/json"
	}
	if len(response) == 0 {
		a.Ended = evidence.UpstreamError
	}
	a.Said.Prompt, a.Said.Response = chat(prompt), answer(response)
	for _, u := range e.units {
		a.Said.Model, a.Said.ModelVersion = or(u.requested, a.Said.Model), or(u.model, a.Said.ModelVersion)
		a.ProviderRequestID = or(u.call, a.ProviderRequestID)
	}
	if usage, alone := e.usage(); alone {
		a.Said.Usage = usage
	}
	return a
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// usage returns the counts of the answer. alone is false if there are several, as what a provider reported is not added up.
func (e *Exchange) usage() (usage jsontext.Value, alone bool) {
	call, some := "", false
	for _, u := range e.units {
		if u.usage == nil {
			continue
		}
		if some && (u.call == "" || u.call != call) {
			return nil, false
		}
		usage, call, some = u.usage, u.call, true // of one answer the last counts: its earlier lines were written while it came
	}
	return usage, true
}

// headers say where in which file the part stands, and who read it.
func (f *File) headers(o *Options, e *Exchange) map[string]string {
	list := map[string]string{"file": cut(f.Name, 1000), "file-bytes": strconv.FormatInt(f.Size, 10), "file-sha256": f.SHA256.String(), "format": string(f.Format),
		"place": placeInClear(cut(e.Place(), 1000)), "conversation": cut(e.Conversation, 1000), "importer": "jurat " + o.Version}
	if e.own && observed.IsPlain(e.Entry) {
		list["entry"] = e.Entry
	}
	if at := e.when(); observed.IsPlain(at) {
		list["said-at"] = at
	}
	if f.header.writer != "" {
		list["writer"] = f.header.writer
	}
	return list
}

// ownPlace is a part of a place that no file writes.
var ownPlace = regexp.MustCompile(`^(?:line [0-9]+|document [0-9]+, span [0-9a-f-]+)$`)

// placeInClear is a place without what a file names as it likes, since nobody can erase it.
func placeInClear(place string) string {
	parts := strings.Split(place, "/")
	for i, part := range parts {
		if !ownPlace.MatchString(part) {
			parts[i] = observed.PathInClear(part)
		}
	}
	return strings.Join(parts, "/")
}

// when is when the exchange was by the word of the file: when the answer was, or else what was asked.
func (e *Exchange) when() string {
	for _, u := range slices.Backward(e.units) {
		if u.at != "" {
			return cut(u.at, 100)
		}
	}
	return ""
}

// missing lists what a file cannot have, and what this one lacks.
func (f *File) missing(e *Exchange) []string {
	list := []string{"the bytes that passed between the agent and its models", "headers, status and addresses of the calls", "attempts that failed and were repeated",
		"definitions of the tools and other parameters of the calls", "whether the file is whole and unchanged since it was written"}
	list = append(append(list, f.Format.lacks()...), e.lacks...)
	var beside []string
	var models, usage, when bool
	failed := ""
	left := map[subject.Left]bool{}
	for _, u := range e.units {
		models, usage, when = models || u.model != "", usage || u.usage != nil, when || u.at != ""
		failed = or(u.failed, failed)
		for _, l := range u.left {
			left[l] = true
		}
		beside = lacking(beside, u.lacks...)
	}
	list = append(list, beside...)
	for _, lack := range []struct {
		has  bool
		what string
	}{{models, "which model answered, by its provider's word"}, {usage, "counts of tokens"}, {when, "when it was said"}} {
		if !lack.has {
			list = append(list, lack.what)
		}
	}
	if when {
		list = append(list, "a time that anybody but the writer of the file vouches for")
	}
	if _, alone := e.usage(); !alone {
		list = append(list, "counts of tokens of each answer alone: several answers follow each other, and the entry of the file has those of each")
	}
	for _, l := range []subject.Left{subject.Reasoning, subject.Unreadable, subject.Elsewhere, subject.Judged, subject.Alternatives} {
		if left[l] {
			list = append(list, "left out: "+l.InWords())
		}
	}
	if failed != "" {
		list = append(list, "an answer: the entry of the file says that there was an error")
	}
	return list
}

// chatMessage is a message as acts have it.
type chatMessage struct {
	Role       subject.Role `json:"role"`
	Content    string       `json:"content"`
	Name       string       `json:"name,omitzero"`
	ToolCalls  []chatCall   `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitzero"`
	IsError    bool         `json:"is_error,omitzero"`
}

type chatCall struct {
	ID       string       `json:"id,omitzero"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func chatOf(m *subject.Message) chatMessage {
	c := chatMessage{Role: m.Role, Content: m.Text, Name: m.Name, ToolCallID: m.ToolCallID, IsError: m.Failed}
	if m.Role == subject.Tool {
		c.Name = m.ToolName
	}
	for _, call := range m.ToolCalls {
		c.ToolCalls = append(c.ToolCalls, chatCall{call.ID, "function", chatFunction{call.Name, call.Arguments}})
	}
	return c
}

// chat writes messages as a payload has them; nil: there are none.
func chat(messages []subject.Message) jsontext.Value {
	if len(messages) == 0 {
		return nil
	}
	list := make([]chatMessage, len(messages))
	for i := range messages {
		list[i] = chatOf(&messages[i])
	}
	return jsonOf(list)
}

// answer writes what the agent answered: a text if that is all, or else its messages; nil: it did not answer.
func answer(messages []subject.Message) jsontext.Value {
	if len(messages) == 1 && messages[0].ToolCalls == nil && messages[0].Name == "" && !messages[0].Failed {
		return jsonOf(messages[0].Text)
	}
	return chat(messages)
}

// An object is the members of a JSON object, as they stand in the file. Of a member that is there twice the last counts, as most libraries read it; what
// is sealed is read strictly.
type object = convo.Object

// cut returns at most so many bytes of a text, which are valid UTF-8.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "")
	}
	return text
}

// jsonOf writes a value of this program's own making.
func jsonOf(v any) jsontext.Value {
	doc, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err) // maps, lists and strings always have a JSON form
	}
	return doc
}
