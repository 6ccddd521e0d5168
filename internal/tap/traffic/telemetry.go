package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/observed"
	"jurat/internal/tap/convo"
	"jurat/internal/tap/traffic/otlp"
)

// OTLP is the protocol of calls that telemetry tells of. The Request is one span, or events of one, as package otlp writes it, and there is no
// Response. What a Projection of it says is the sender's word.
const OTLP = observed.OTLP

// A telling is a reading of what telemetry tells of one act. Two conventions are read: OpenTelemetry's own for GenAI, in attributes and in
// events; and OpenInference's.
type telling struct {
	*reading
	kind   otlp.Kind
	said   map[string]*otlp.Value // attributes
	taken  map[string]bool        // names of attributes that were read
	whole  map[string]bool        // names of attributes that are whole JSON, which nobody has cut
	events []event
	failed bool
	asking *convo.Node     // OpenInference's parameters; nil: there are none
	cut    map[string]bool // prompt or response: it was told, and cannot be read
}

type event struct {
	name string
	said otlp.Attributes
	body *otlp.Value
}

func readTelemetry(r *reading) {
	if len(r.call.Request) == 0 {
		r.fail("telemetry: it is empty")
		return
	}
	data, ok := decode[otlp.Data](r, "telemetry", r.call.Request)
	if !ok {
		r.out.State = Failed
		return
	}
	t := &telling{reading: r, said: map[string]*otlp.Value{}, taken: map[string]bool{}, whole: map[string]bool{}, cut: map[string]bool{}}
	for i := range data.ResourceSpans {
		t.resource(&data.ResourceSpans[i].Resource)
		for _, scope := range data.ResourceSpans[i].ScopeSpans {
			for j := range scope.Spans {
				t.span(&scope.Spans[j])
			}
		}
	}
	for i := range data.ResourceLogs {
		t.resource(&data.ResourceLogs[i].Resource)
		for _, scope := range data.ResourceLogs[i].ScopeLogs {
			for j := range scope.LogRecords {
				l := &scope.LogRecords[j]
				t.dropped("attributes of an event", l.DroppedAttributesCount)
				t.event(event{l.EventOf(), l.Attributes, l.Body})
			}
		}
	}
	t.tell()
}

func (t *telling) resource(r *otlp.Resource) {
	t.dropped("attributes of the resource", r.DroppedAttributesCount)
}

// attribute is how the name of an attribute or an event stands among what is not told, which nobody can erase.
func attribute(name string) string {
	if !observed.IsPlain(name) {
		return "(a name that is not kept)"
	}
	return name
}

func (t *telling) dropped(what string, count otlp.Count) {
	if count > 0 {
		t.problem("%d %s, which the sender dropped", count, what)
	}
}

func (t *telling) span(s *otlp.Span) {
	t.kind, t.failed = otlp.KindOf(s.Attributes), s.Status.Code == otlp.Failed
	t.dropped("attributes of the span", s.DroppedAttributesCount)
	t.dropped("events of the span", s.DroppedEventsCount)
	t.sampled(s.TraceState)
	t.attributes(s.Attributes)
	for i := range s.Events {
		e := &s.Events[i]
		t.dropped("attributes of an event", e.DroppedAttributesCount)
		t.event(event{e.Name, e.Attributes, nil})
	}
	if t.failed {
		t.out.Error = convo.Short(cmp.Or(s.Status.Message, t.text("error.type"), "the span has the status of an error"))
	}
}

// sampled notes that the sender tells of a part of its traces alone, by the W3C trace state of OpenTelemetry's samplers.
func (t *telling) sampled(state string) {
	for entry := range strings.SplitSeq(state, ",") {
		values, is := strings.CutPrefix(strings.TrimSpace(entry), "ot=")
		for value := range strings.SplitSeq(values, ";") {
			if threshold, has := strings.CutPrefix(value, "th:"); is && has && strings.Trim(threshold, "0") != "" {
				t.problem("other traces: the sender tells of a sample of them alone (tracestate %s)", attribute(value))
			}
		}
	}
}

func (t *telling) attributes(list otlp.Attributes) {
	for i := range list {
		a := &list[i]
		if t.said[a.Key] != nil {
			t.problem("%s: it stands there more than once: the last one is read", attribute(a.Key))
		}
		t.said[a.Key] = &a.Value
	}
}

// event adds an event. One with the details of an operation has attributes as the span has.
func (t *telling) event(e event) {
	if e.name != otlp.Details {
		t.events = append(t.events, e)
		return
	}
	for i := range e.said {
		t.said[e.said[i].Key] = &e.said[i].Value
	}
	if e.body != nil && e.body.KVList != nil {
		t.attributes(e.body.KVList.Values)
	}
}

func (t *telling) tell() {
	t.facts()
	t.out.ProviderID = t.text("gen_ai.response.id")
	t.out.Finish = cmp.Or(t.finish(), t.text("llm.finish_reason"))
	if t.kind == otlp.Tool {
		t.tool()
	} else {
		t.first(t.asked, t.askedInEvents, t.askedOpenInference, t.askedAtAll)
		t.first(t.answered, t.answeredInEvents, t.answeredOpenInference, t.answeredAtAll)
	}
	t.absent()
	t.out.Complete = len(t.answers) > 0 && !t.failed
	t.limits()
	t.unread()
}

// facts notes what of the attributes is no part of what was said, and is read as facts.
func (t *telling) facts() {
	for _, prefix := range []string{"gen_ai.request.", "gen_ai.usage.", "llm.token_count.", "llm.request.model_name", "llm.response.model_name", "llm.model_name", "gen_ai.operation.name", "gen_ai.provider.name",
		"gen_ai.system", "llm.provider", "llm.system", "gen_ai.agent.name", "llm.tools.", "gen_ai.openai.response.system_fingerprint"} {
		t.under(prefix)
	}
	asking, _ := t.document("", "llm.invocation_parameters")
	t.asking = convo.ObjectOf(asking)
	t.document("", "gen_ai.tool.definitions")
}

func (t *telling) first(ways ...func() bool) {
	for _, tells := range ways {
		if tells() {
			return
		}
	}
}

func (t *telling) absent() {
	const why = "not told here: the sender's instrumentation must be set to record content, or it tells of it in events"
	if t.kind == "" && t.prompt != nil != (len(t.answers) > 0) {
		return // events may be of one direction
	}
	if t.prompt == nil && !t.cut["prompt"] {
		t.problem("prompt: %s", why)
	}
	if len(t.answers) == 0 && !t.cut["response"] && !t.failed {
		t.problem("response: %s", why)
	}
}

func (t *telling) take(name string) *otlp.Value {
	t.taken[name] = true
	return t.said[name]
}

func (t *telling) text(name string) string {
	if v := t.take(name); v != nil && v.String != nil {
		return *v.String
	}
	return ""
}

// under lists the attributes whose names begin with a prefix, sorted, without the prefix, and notes that they were read.
func (t *telling) under(prefix string) []string {
	var list []string
	for name := range t.said {
		if rest, is := strings.CutPrefix(name, prefix); is {
			list, t.taken[name] = append(list, rest), true
		}
	}
	slices.Sort(list)
	return list
}

func (t *telling) finish() string {
	v := t.take("gen_ai.response.finish_reasons")
	if v == nil {
		return ""
	}
	if v.Array != nil {
		for _, e := range v.Array.Values {
			if e.String != nil {
				return *e.String
			}
		}
	}
	var list []string
	if v.String != nil && json.Unmarshal([]byte(*v.String), &list) == nil && len(list) > 0 {
		return list[0]
	}
	return ""
}

func (t *telling) firstText(names ...string) (text string) {
	for _, name := range names {
		text = cmp.Or(text, t.text(name))
	}
	return text
}

func (t *telling) tool() {
	name := t.firstText("gen_ai.tool.name", "tool.name", "tool_call.function.name")
	id := t.firstText("gen_ai.tool.call.id", "tool_call.id", "tool.id")
	arguments, asked := t.firstValue("gen_ai.tool.call.arguments", "tool_call.function.arguments", "input.value")
	result, answered := t.firstValue("gen_ai.tool.call.result", "output.value")
	t.under("tool.")
	if name != "" || asked {
		t.prompt = append(t.prompt, convo.Message{Role: "assistant", ToolCalls: []convo.ChatToolCall{convo.Function(id, name, arguments)}})
	}
	if !asked {
		t.cut["prompt"] = true
		t.problem("prompt: the arguments of the tool: not told")
	}
	if answered {
		t.answers = []answer{{said: []convo.Message{{Role: "tool", ToolCallID: id, Name: "", Content: convo.Pieces{convo.Words(result)}, IsError: t.failed}}}}
	}
}

// firstValue returns the first of several attributes as a text: a string as it is, and everything else as JSON.
func (t *telling) firstValue(names ...string) (text string, there bool) {
	for _, name := range names {
		if v := t.take(name); v != nil && !there {
			text, there = textOf(v), true
			t.mark(name, v)
		}
	}
	return text, there
}

// mark notes a value that is whole JSON, or that the sender has hidden.
func (t *telling) mark(name string, v *otlp.Value) {
	if v.String == nil {
		return
	}
	if *v.String == hidden {
		t.problem("%s: the sender has hidden it", attribute(name))
	}
	if s := strings.TrimLeft(*v.String, " \n\r\t"); slices.ContainsFunc([]string{`{"`, `[{`, `["`}, func(of string) bool { return strings.HasPrefix(s, of) }) {
		t.whole[name] = isWhole(*v.String)
		if !t.whole[name] {
			t.problem("%s: it begins as JSON, and has no end as JSON has it: it may have been cut off", attribute(name))
		}
	}
}

// hidden is what OpenInference writes for what it was told to hide.
const hidden = "__REDACTED__"

func isWhole(text string) bool {
	return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// document returns an attribute that is JSON, as a string or as values. there says that it was told: it is nil if it could not be read. That
// is noted, and, if the attribute is the prompt or the response, that this cannot be read.
func (t *telling) document(direction, name string) (v jsontext.Value, there bool) {
	value := t.take(name)
	if value == nil {
		return nil, false
	}
	if value.String == nil {
		return valueOf(value), true
	}
	if text := *value.String; isWhole(text) {
		t.whole[name] = true
		return jsontext.Value(text), true
	} else if text == hidden {
		t.problem("%s: the sender has hidden it", name)
	} else {
		t.out.State = Failed
		t.problem("%s: what is told has %d characters and is not whole JSON: it was cut off or damaged, and is left out", name, len([]rune(text)))
	}
	t.cut[direction] = true
	return nil, true
}

// limits notes values that a limit of the sender may have cut. No span says what its limit is. A value is doubted that is the longest and as
// long as another one, or as long as limits usually are.
func (t *telling) limits() {
	byLength, longest, texts := map[int][]string{}, 0, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(t.said)) {
		v := t.said[name]
		if v.String == nil || t.whole[name] || len(*v.String) < shortestLimit {
			continue
		}
		n := len([]rune(*v.String))
		if longest = max(longest, n); !texts[*v.String] {
			texts[*v.String], byLength[n] = true, append(byLength[n], name)
		}
	}
	usual := longest&(longest-1) == 0 || longest >= 1000 && longest%1000 == 0 || longest%1024 == 0 || longest == 4095 || longest == 8191
	if list := byLength[longest]; longest >= shortestLimit && (len(list) > 1 || usual) {
		for _, name := range list {
			t.problem("%s: it has %d characters, as long as a limit may be: it may have been cut off", attribute(name), longest)
		}
	}
}

// shortestLimit is the length below which no value is doubted: nobody sets so low a limit.
const shortestLimit = 64

// unread names attributes that tell something of a model, and that no convention here has.
func (t *telling) unread() {
	same := []string{"gen_ai.response.", "llm.input_messages.", "llm.output_messages."} // another convention tells the same
	if t.prompt != nil && len(t.answers) > 0 {
		same = append(same, "gen_ai.prompt.", "gen_ai.completion.", "ai.")
	}
	for _, prefix := range same {
		t.under(prefix)
	}
	for _, e := range t.events {
		if strings.HasPrefix(e.name, "gen_ai.") && !otlp.HasContent(e.name) {
			t.problem("an event that is not read here: %s", attribute(e.name))
		}
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(t.said)) {
		v := t.said[name]
		telling := v.String != nil && *v.String != "" || v.Array != nil || v.KVList != nil || v.Bytes != nil
		if telling && !t.taken[name] && slices.ContainsFunc([]string{"gen_ai.", "llm.", "ai."}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			names = append(names, attribute(name))
		}
	}
	if n := len(names); n > mostUnread {
		names = append(names[:mostUnread], fmt.Sprintf("and %d more", n-mostUnread))
	}
	if names != nil {
		t.problem("attributes that are not read here: %s", strings.Join(names, ", "))
	}
}

const mostUnread = 10

// valueOf writes a value as JSON. A whole number that JSON's readers would round is a string.
func valueOf(v *otlp.Value) jsontext.Value { return written(plain(v)) }

func written(v any) jsontext.Value {
	doc, err := json.Marshal(v, lenient, json.Deterministic(true))
	if err != nil {
		return nil
	}
	return doc
}

// maxExact is the greatest whole number that all readers of JSON read alike.
const maxExact = 1 << 53

func plain(v *otlp.Value) any {
	switch {
	case v.String != nil:
		return *v.String
	case v.Bool != nil:
		return *v.Bool
	case v.Int != nil && -maxExact < *v.Int && *v.Int < maxExact:
		return int64(*v.Int)
	case v.Int != nil:
		return *v.Int
	case v.Double != nil:
		return *v.Double
	case v.Bytes != nil:
		return *v.Bytes
	case v.Array != nil:
		list := make([]any, len(v.Array.Values))
		for i := range v.Array.Values {
			list[i] = plain(&v.Array.Values[i])
		}
		return list
	case v.KVList != nil:
		members := map[string]any{}
		for i := range v.KVList.Values {
			members[v.KVList.Values[i].Key] = plain(&v.KVList.Values[i].Value)
		}
		return members
	}
	return nil
}

func textOf(v *otlp.Value) string {
	if v.String != nil {
		return *v.String
	}
	return convo.TextOf(valueOf(v))
}

func objects(n *convo.Node) []*convo.Node {
	return slices.DeleteFunc(slices.Clone(n.OneOrMore()), func(one *convo.Node) bool { return one.Kind != '{' })
}
