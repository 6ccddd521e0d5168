package importing

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/convo"
	"jurat/internal/subject"
)

// read has package subject read the conversations of a value, as it would for a trial.
func (r *reader) readCases(place string, data []byte, form subject.Form) ([]subject.Brought, error) {
	return subject.ReadTranscripts(r.Name+":"+place, data, subject.Options{Form: form})
}

// form is the form of conversations that the caller named; "": the one that each shows.
func (r *reader) form() subject.Form {
	if !r.header.given {
		return ""
	}
	switch r.Format {
	case Chat:
		return subject.ChatForm
	case Responses, Anthropic, Gemini, A2A:
		return subject.Form(r.Format)
	}
	return ""
}

// conversation reads a conversation in a form of package subject. A line of JSON Lines may be a message of one conversation: then the
// whole file is read as one.
func (r *reader) conversation(number int, place string, v jsontext.Value) error {
	o := convo.ObjectOf(v)
	if r.header.lines && o != nil && !o.IsConversation() {
		return r.bad(place, fmt.Errorf("expected a conversation in each line, as in the first"))
	}
	found, err := r.readCases(place, v, r.form())
	if err != nil {
		return r.bad(place, err)
	}
	name := r.label
	if id := first(o, "conversation_id", "session_id", "thread_id", "id"); id != "" {
		name += "-" + id
	} else if number > 0 {
		name += "-" + strconv.Itoa(number)
	}
	top := unit{requested: o.Brief("model")}
	if o.Has("usage", '{') {
		top.usage = o["usage"]
	}
	return r.cases(name, place, v, found, top)
}

// first returns the first member that is a string or a number.
func first(o object, names ...string) string {
	for _, name := range names {
		if text := o.Brief(name); text != "" {
			return text
		}
	}
	return ""
}

// cases gives the exchanges of conversations that were read from one value. What top says is said of each answer; its usage is that of the last.
func (r *reader) cases(name, place string, data []byte, found []subject.Brought, top unit) error {
	for _, b := range found {
		if err := b.Err(); err != nil {
			if err := r.bad(place, err); err != nil {
				return err
			}
			continue
		}
		conversation := name
		if len(found) > 1 {
			conversation += "-" + b.Name
		}
		if err := r.exchanges(conversation, place, r.unitsOf(data, b.Case, top)); err != nil {
			return err
		}
	}
	return nil
}

// exchanges gives the exchanges of one conversation.
func (r *reader) exchanges(conversation, place string, units []unit) error {
	g := &gathering{conversation: conversation}
	for _, u := range units {
		u.place = or(u.place, place)
		if err := r.give(g.add(u)); err != nil {
			return err
		}
	}
	return r.give(g.end())
}

// unitsOf are the messages of a case, with the bytes that they were read from. Messages from one place are one unit.
func (r *reader) unitsOf(data []byte, c *subject.Case, top unit) []unit {
	var units []unit
	var from, to int64
	for _, m := range c.Messages {
		begin, end, _ := c.Span(m.Number)
		inside := len(units) > 0 && begin >= from && end <= to
		if !inside {
			from, to = begin, end
			units = append(units, unit{raw: data[begin:end]})
		}
		u := &units[len(units)-1]
		u.messages = append(u.messages, m)
		u.left = append(u.left, c.LeftOutAt(m.Number)...)
	}
	last := -1
	for i := range units {
		u, o := &units[i], convo.ObjectOf(units[i].raw)
		u.given = r.Format == Inspect && o.Word("source") == "input"
		if u.answers() {
			u.requested, u.model, last = top.requested, or(or(u.model, o.Brief("model")), top.model), i
		}
		u.at = or(first(o, "timestamp", "created_at"), top.at)
	}
	if last >= 0 && top.usage != nil {
		units[last].usage = top.usage
	}
	if len(units) > 0 {
		u := &units[len(units)-1]
		u.failed, u.lacks = top.failed, lacking(u.lacks, top.lacks...)
	}
	return units
}

// isPromptfooResult recognises a result of promptfoo in a line of its own:
// https://www.promptfoo.dev/docs/configuration/reference/#evaluateresult.
func isPromptfooResult(o object) bool {
	return o.Has("prompt", '{') && (o.Has("response", '{') || o.Has("error", '"')) && (o.Has("vars", '{') || o.Has("testIdx", '0') || o.Has("testCase", '{'))
}

// result reads a result of promptfoo: one call, or a conversation if there are turns.
func (r *reader) result(number int, place string, v jsontext.Value) error {
	o := convo.ObjectOf(v)
	if o == nil {
		return r.bad(place, fmt.Errorf("expected a result (an object), found %s", v.Kind()))
	}
	response := o.Within("response")
	top := unit{requested: or(o.Within("provider").Brief("id"), o.Brief("provider")), failed: response.Brief("error"), lacks: changed(o, response)}
	if response.Has("tokenUsage", '{') {
		top.usage = response["tokenUsage"]
	}
	data := v
	unanswered := response["output"] == nil || response.Has("output", 'n')
	if unanswered { // of a result with an output, the error is that a check failed
		top.failed = or(o.Brief("error"), top.failed)
	}
	if unanswered && top.failed != "" { // what was asked is evidence, also without an answer
		data = jsonOf(map[string]jsontext.Value{"prompt": o["prompt"], "response": jsontext.Value(`{"output":""}`)})
	}
	found, err := r.readCases(place, append(append([]byte(`{"results":[`), data...), `]}`...), "")
	if err != nil {
		return r.bad(place, err)
	}
	if len(found) != 1 || found[0].Err() != nil {
		return r.cases("", place, nil, found, top)
	}
	name := r.label + "-" + strconv.Itoa(number)
	if id := o.Brief("id"); id != "" {
		name = id
	} else if r.header.scope != "" {
		name = r.header.scope + "-" + strconv.Itoa(number)
	}
	c := found[0].Case
	if c.Form != subject.PromptfooForm || turns(o) {
		whole := append(append([]byte(`{"results":[`), data...), `]}`...)
		return r.cases(name, place, whole, found, top)
	}
	messages := c.Messages
	if unanswered {
		messages = messages[:len(messages)-1]
	}
	u := unit{raw: v, place: place, messages: messages, requested: top.requested, usage: top.usage, failed: top.failed, lacks: top.lacks, left: c.LeftOutAt(len(c.Messages))}
	return r.give(&Exchange{Conversation: name, Entry: "1", units: []unit{u}, whole: true})
}

// changed lists how the output of a result may be other than what the agent answered to this call.
func changed(o, response object) (lacks []string) {
	for _, options := range []object{o.Within("testCase").Within("options"), o.Within("prompt").Within("config")} {
		if lacks == nil && (options["transform"] != nil || options["postprocess"] != nil) {
			lacks = lacking(lacks, "the output as the agent gave it: the evaluation changed it before it was written")
		}
	}
	if response.Has("cached", 't') {
		lacks = lacking(lacks, "a call of its own: the answer is one that was given before, and kept")
	}
	const failed = "2" // promptfoo's ResultFailureReason: 1 is a failed check, 2 an error
	if o.Brief("failureReason") == failed && response["output"] != nil && o.Brief("error") != "" {
		lacks = lacking(lacks, "whether all went well: the entry of the file says that there was an error")
	}
	return lacks
}

// turns reports whether a result has several turns.
func turns(o object) bool {
	for _, metadata := range []object{o.Within("response").Within("metadata"), o.Within("metadata")} {
		for _, name := range []string{"messages", "redteamHistory"} {
			if len(convo.Values(metadata[name])) > 0 {
				return true
			}
		}
	}
	return false
}

// sample reads a sample of Inspect. See https://inspect.aisi.org.uk/reference/inspect_ai.log.html (EvalSample).
func (r *reader) sample(number int, place string, v jsontext.Value) error {
	o := convo.ObjectOf(v)
	if o.Has("messages", '[') && len(convo.Values(o["messages"])) == 0 {
		return nil // it ended before anything was said
	}
	found, err := r.readCases(place, v, "")
	if err != nil {
		return r.bad(place, err)
	}
	output := o.Within("output")
	top := unit{requested: r.header.model, model: output.Brief("model"), at: or(o.Brief("completed_at"), o.Brief("started_at")), failed: o.Within("error").Brief("message")}
	if output.Has("usage", '{') {
		top.usage = output["usage"]
	}
	if limit := o.Within("limit").Brief("type"); limit != "" {
		top.lacks = []string{"the rest of the sample, which was ended by its limit: " + plain(limit)}
	}
	name := or(r.header.scope, r.label) + "-" + or(o.Brief("id"), strconv.Itoa(number)) + "_epoch_" + or(o.Brief("epoch"), "1")
	return r.cases(name, place, v, found, top)
}
