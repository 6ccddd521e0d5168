package observed

import (
	"bytes"
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// The protocols of which facts are read, beside those that begin with MCP.
const (
	OpenAIChat        = "openai.chat"
	OpenAIResponses   = "openai.responses"
	AnthropicMessages = "anthropic.messages"
	GeminiGenerate    = "gemini.generate"
	A2A03             = "a2a/0.3"
	A2A10             = "a2a/1.0"
	MCP               = "mcp/"
	OTLP              = "otlp"

	// Imported begins the protocol of an act from a file that others wrote, such as import/promptfoo. Its bytes are no call: no facts are read of it.
	Imported = "import/"
)

// Facts are what the bytes of a call say of it, and a record may state: names, numbers and switches, but no words of anybody. They are found at
// known places, by docs/facts.md; what was said is a view of the bytes.
type Facts struct {
	Model, ModelVersion string         // as requested; as the provider reported it
	Parameters, Usage   jsontext.Value // objects; nil: none
	Finish              string         // why the model stopped, in the provider's word
	Calls               []evidence.ObservedUse
	ContextByReference  []string // what the provider kept or fetched, and the bytes only name
	Referred            []string // the same with the texts that may not stand in clear; no record states it
	Answer              string   // the provider's id of the answer; no record states it
}

const (
	mostListed   = 1_000 // calls, references, messages of MCP
	mostValues   = evidence.MaxValues
	mostStreamed = 8 * evidence.MaxValues // a stream writes a dozen values for each word
)

// FactsOf finds the facts in the bytes of an act. Bytes that are sealed encoded say nothing. It reports false for a protocol of which none are read.
func FactsOf(o *evidence.Observed, request, response []byte) (Facts, bool) {
	f := finding{path: pathOf(o.Path), referred: map[string]bool{}}
	for i, one := range []struct {
		part  *evidence.ObservedBody
		bytes []byte
	}{{o.Request, request}, {o.Response, response}} {
		if one.part == nil || one.part.Decoded != "" {
			one.bytes = nil
		}
		if evidence.Values(one.bytes) > MostValues(one.bytes) {
			return Facts{}, read(o.Protocol) != nil
		}
		f.bodies[i] = one.bytes
	}
	find := read(o.Protocol)
	if find == nil {
		return Facts{}, false
	}
	if o.Status >= 300 {
		f.bodies[1] = nil
	}
	find(&f)
	return f.out, true
}

// MostValues is how many values are read of a body. A stream writes a dozen of them for each word, and what is read of it is little more than the words.
func MostValues(body []byte) int {
	begin := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	if bytes.HasPrefix(begin, []byte("{")) || bytes.HasPrefix(begin, []byte("[")) {
		return mostValues
	}
	return mostStreamed
}

func read(protocol string) func(*finding) {
	switch protocol {
	case OpenAIChat, OpenAIResponses, AnthropicMessages:
		return (*finding).models
	case GeminiGenerate:
		return (*finding).gemini
	case A2A03, A2A10:
		return (*finding).a2a
	case OTLP:
		return (*finding).telemetry
	}
	if strings.HasPrefix(protocol, MCP) {
		return (*finding).mcp
	}
	return nil
}

// finding collects facts.
type finding struct {
	path     string
	bodies   [2][]byte
	referred map[string]bool
	out      Facts
}

// request is the request, if it is one object; nil: it is not.
func (f *finding) request() object {
	if list := documents(f.bodies[0]); len(list) == 1 {
		o, _ := list[0].(object)
		return o
	}
	return nil
}

// Where answers of models, and the events of streams, have facts.
const (
	versionAt = "model message.model response.model modelVersion response.modelVersion"
	usageAt   = "choices[].usage x_groq.usage usage message.usage response.usage usageMetadata response.usageMetadata"
	finishAt  = "choices[].finish_reason stop_reason message.stop_reason delta.stop_reason candidates[].finishReason response.candidates[].finishReason " +
		"promptFeedback.blockReason status incomplete_details.reason response.status response.incomplete_details.reason"
	answerAt = "id message.id response.id responseId response.responseId"
	usesAt   = "choices[].message.tool_calls[] choices[].delta.tool_calls[] choices[].message.function_call choices[].delta.function_call output[] item " +
		"response.output[] content[] message.content[] content_block candidates[].content.parts[].functionCall candidates[].content.parts[].function_call response.candidates[].content.parts[].functionCall"
)

// A naming is where a request or an answer names context that its bytes do not have.
type naming struct{ kind, at string }

var requestNames = []naming{
	{"previous_response_id", "previous_response_id"},
	{"conversation", "conversation conversation.id"},
	{"prompt", "prompt.id"},
	{"background", "background"},
	{"item", "input[item_reference].id"},
	{"audio", "messages[].audio.id"},
	{"file", "messages[].content[].file.file_id messages[].content[].file_id messages[].content[].source.file_id messages[].content[].content[].source.file_id " +
		"input[].content[].file_id input[].output[].file_id tools[].container.file_ids[] contents[].parts[].fileData.fileUri contents[].parts[].file_data.file_uri"},
	{"url", "messages[].content[].image_url messages[].content[].image_url.url messages[].content[].video_url.url messages[].content[].source.url " +
		"messages[].content[].content[].source.url input[].content[].image_url input[].content[].file_url input[].output[].image_url"},
	{"container", "container container.id tools[].container"},
	{"vector_store", "tools[].vector_store_ids[]"},
	{"mcp", "mcp_servers[].name tools[mcp].server_label"},
	{"plugin", "plugins[].id"},
	{"data_source", "data_sources[].type"},
	{"context_management", "context_management.edits[].type"},
	{"cachedContent", "cachedContent cached_content"},
}

var answerNames = []naming{
	{"search", "candidates[].groundingMetadata.webSearchQueries[] candidates[].groundingMetadata.imageSearchQueries[] candidates[].groundingMetadata.retrievalQueries[]"},
	{"url", "citations[] choices[].message.annotations[].url_citation.url choices[].delta.annotations[].url_citation.url output[].content[].annotations[].url " +
		"response.output[].content[].annotations[].url item.content[].annotations[].url content[].citations[].url delta.citation.url " +
		"candidates[].groundingMetadata.groundingChunks[].web.uri candidates[].groundingMetadata.groundingChunks[].retrievedContext.uri candidates[].urlContextMetadata.urlMetadata[].retrievedUrl"},
	{"file", "output[].content[].annotations[].file_id response.output[].content[].annotations[].file_id choices[].message.annotations[].file_citation.file_id"},
}

func (f *finding) models() {
	if o := f.request(); o != nil {
		f.out.Model = cmp.Or(word(o, "model"), modelIn(f.path))
		f.asked(o)
	} else if _, id, _ := cutLast(f.path); len(f.bodies[0]) == 0 && strings.Contains(f.path, "/responses/") {
		f.refer("response", id) // a later request for an answer that was made in the background
	}
	f.answer()
}

// gemini is models for a protocol whose path names the model. Google's Code Assist has request and model in an envelope.
func (f *finding) gemini() {
	o := f.request()
	_, last, _ := cutLast(f.path)
	if f.out.Model = modelIn(f.path); strings.HasPrefix(last, "v1internal:") {
		f.out.Model = word(o, "model")
		o, _ = o["request"].(object)
	}
	if o != nil {
		f.asked(o)
	}
	f.answer()
}

// modelIn returns the model that a path names, as Azure, Vertex AI, Bedrock and Gemini have it.
func modelIn(path string) string {
	before, last, _ := cutLast(path)
	model, verb, _ := strings.Cut(last, ":")
	switch {
	case strings.Contains(path, "/deployments/"):
		_, after, _ := strings.Cut(path, "/deployments/")
		model, _, _ = strings.Cut(after, "/")
	case last == "invoke":
		_, model, _ = cutLast(before)
	case verb == "":
		return ""
	case strings.HasSuffix(before, "tunedModels"):
		model = "tunedModels/" + model
	}
	if plain, err := url.PathUnescape(model); err == nil {
		return plain
	}
	return model
}

func (f *finding) asked(o object) {
	set := kept(o, isSetting, mostNested)
	if _, is := o["tools"].([]any); is || at(o, "input[additional_tools].tools[]") != nil {
		set["tools"] = toolsIn(objectsIn(at(o, "tools[] input[additional_tools].tools[]")))
	}
	if _, is := o["functions"].([]any); is {
		set["functions"] = toolsIn(objectsIn(o["functions"]))
	}
	f.out.Parameters = canonical(set)
	f.names(o, requestNames)
}

// toolsIn returns the names of tools. Of one that may not stand in clear nothing but its place does.
func toolsIn(tools []object) []string {
	names := []string{}
	for _, tool := range tools {
		declared := at(tool, "functionDeclarations[] function_declarations[]")
		for _, one := range declared {
			names = append(names, plainOr(word(one, "name")))
		}
		inner := at(tool, "tools[]")
		for _, one := range inner {
			names = append(names, plainOr(word(tool, "name")+"."+word(one, "name")))
		}
		if declared == nil && inner == nil {
			names = append(names, plainOr(cmp.Or(word(tool, "function.name custom.name name server_label type"), strings.Join(sortedNames(tool), "+"))))
		}
	}
	return names
}

func (f *finding) answer() {
	usage, seen := object{}, map[string]bool{}
	for _, o := range objects(f.bodies[1]) {
		f.out.ModelVersion = cmp.Or(lastWord(o, versionAt), f.out.ModelVersion)
		f.out.Finish = cmp.Or(lastWord(o, finishAt), f.out.Finish)
		f.out.Answer = cmp.Or(f.out.Answer, word(o, answerAt))
		for _, one := range at(o, usageAt) {
			counts, _ := one.(object)
			for name, count := range counts {
				if count != nil {
					usage[name] = count
				}
			}
		}
		for _, use := range at(o, usesAt) {
			f.use(use, seen)
		}
		f.names(o, answerNames)
	}
	f.out.Usage = countsInClear(usage)
	f.out.Model, f.out.ModelVersion, f.out.Finish = plainOr(f.out.Model), plainOr(f.out.ModelVersion), plainOr(f.out.Finish)
}

// ofClients are the types of calls that the agent's own program carries out.
var ofClients = setOf("function custom tool_use function_call custom_tool_call local_shell_call shell_call apply_patch_call computer_call")

// use notes a call: one that the model asks for, or, of a tool that the provider ran, a reference to what that fetched.
func (f *finding) use(v any, seen map[string]bool) {
	kind, id := word(v, "type"), word(v, "call_id id")
	own := kind == "" || ofClients[kind]
	name := word(v, "function.name custom.name name")
	switch base, run := strings.CutSuffix(kind, "_call"); {
	case !own && !run && !strings.HasSuffix(kind, "tool_use"):
		return
	case name == "" && !run || id != "" && seen[id]:
		return
	case !own:
		f.refer("tool", cmp.Or(name, base))
		return
	case name == "":
		name = base
	}
	seen[id] = true
	if len(f.out.Calls) < mostListed {
		f.out.Calls = append(f.out.Calls, evidence.ObservedUse{ID: plainOr(id), Name: plainOr(name)})
	}
}

func (f *finding) names(o object, places []naming) {
	for _, p := range places {
		for _, v := range at(o, p.at) {
			switch v := v.(type) {
			case string:
				if v != "" && !strings.HasPrefix(v, "data:") {
					f.refer(p.kind, v)
				}
			case bool:
				if v {
					f.refer(p.kind, "true")
				}
			}
		}
	}
}

func (f *finding) refer(kind, what string) {
	f.add(&f.out.ContextByReference, "clear", referenceInClear(kind, what))
	if kind == "url" || kind == "file" {
		what = Address(what)
	}
	f.add(&f.out.Referred, "whole", kind+":"+cut(what))
}

// add adds a reference to a list in which it is not yet.
func (f *finding) add(list *[]string, name, reference string) {
	if one := name + " " + reference; len(*list) < mostListed && !f.referred[one] {
		f.referred[one], *list = true, append(*list, reference)
	}
}

// mcp finds what a request of MCP asks for: methods, names and ids, but no arguments.
func (f *finding) mcp() {
	var list []any
	for _, o := range objects(f.bodies[0]) {
		if len(list) == mostListed {
			break
		}
		says := object{}
		if method := word(o, "method"); method == "" {
			name(says, "answers", idIn(o["id"]))
		} else {
			name(says, "method", method)
			if method == "tools/call" {
				name(says, "tool", word(o, "params.name"))
				use, _ := o["params"].(object)
				meta, _ := use["_meta"].(object)
				name(says, "tool_use_id", word(meta, "claudecode/toolUseId"))
			}
		}
		list = append(list, says)
	}
	switch len(list) {
	case 0:
	case 1:
		f.out.Parameters = canonical(list[0])
	default:
		f.out.Parameters = canonical(object{"batch": list})
	}
}

func idIn(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case number:
		if form, err := evidence.Canonical(v); err == nil {
			return string(form)
		}
	}
	return ""
}

func (f *finding) a2a() {
	method, task := A2AMethod(f.path)
	o := f.request()
	if o == nil && method == "" {
		return
	}
	if _, rpc := o["method"]; rpc || method == "" {
		method = word(o, "method")
		o, _ = o["params"].(object)
	}
	configuration, _ := o["configuration"].(object)
	set := object{}
	if v, there := o["historyLength"]; there {
		set["historyLength"] = v
	}
	for _, one := range []string{"blocking", "historyLength", "returnImmediately"} {
		if v, there := configuration[one]; there {
			set[one] = v
		}
	}
	set = kept(set, isSetting, mostNested)
	if list, is := configuration["acceptedOutputModes"].([]any); is {
		modes := make([]string, len(list))
		for i := range list {
			text, _ := list[i].(string)
			modes[i] = plainOr(text)
		}
		set["acceptedOutputModes"] = modes
	}
	name(set, "method", method)
	for _, one := range []string{"messageId", "contextId", "taskId"} {
		name(set, one, word(o, "message."+one))
	}
	if o["message"] == nil {
		name(set, "taskId", cmp.Or(task, word(o, "id")))
	}
	f.out.Parameters = canonical(set)
	f.names(o, []naming{{"task", "message.referenceTaskIds[]"}, {"url", "message.parts[].url message.parts[].file.uri"}})
}

// A2AMethod returns what the path of a call by HTTP with JSON asks an agent for, and the task that it names; "": the path does not say it.
func A2AMethod(path string) (method, task string) {
	path = pathOf(path)
	before, last, _ := cutLast(path)
	switch {
	case last == "message:send", last == "message:stream", last == "extendedAgentCard", last == "tasks", last == "card" && strings.HasSuffix(before, "/v1"):
		return last, ""
	case strings.Contains(path, "/tasks/") && strings.Contains(path, "/pushNotificationConfigs"):
		return "pushNotificationConfigs", ""
	case strings.HasSuffix(before, "/tasks"):
		task, action, _ := strings.Cut(last, ":")
		return strings.TrimSuffix("tasks:"+action, ":"), task
	}
	return "", ""
}

func (f *finding) telemetry() {
	told := object{}
	o := f.request()
	for _, list := range at(o, "resourceSpans[].scopeSpans[].spans[].attributes resourceSpans[].scopeSpans[].spans[].events[].attributes "+
		"resourceLogs[].scopeLogs[].logRecords[].attributes resourceLogs[].scopeLogs[].logRecords[].body.kvlistValue.values") {
		for _, one := range objectsIn(list) {
			told[word(one, "key")] = scalar(one["value"])
		}
	}
	first := func(names ...string) string {
		for _, name := range names {
			if text, _ := told[name].(string); text != "" {
				return text
			}
		}
		return ""
	}
	asked, either := textObject(first("llm.invocation_parameters")), first("llm.model_name")
	f.out.Model = plainOr(cmp.Or(first("gen_ai.request.model", "llm.request.model_name"), word(asked, "model"), either))
	version := first("gen_ai.response.model", "llm.response.model_name")
	if version == "" && word(textObject(first("output.value")), "model") == either {
		version = either
	}
	f.out.ModelVersion = plainOr(version)
	set, usage := object{}, object{}
	for _, key := range sortedNames(told) {
		if rest, is := strings.CutPrefix(key, "gen_ai.request."); is {
			set[rest] = told[key]
		}
		if v, is := told[key].(number); is {
			for _, prefix := range []string{"gen_ai.usage.", "llm.token_count."} {
				if rest, is := strings.CutPrefix(key, prefix); is {
					usage[cmp.Or(counts[rest], rest)] = v
				}
			}
		}
	}
	for name, v := range asked {
		if _, there := set[name]; !there {
			set[name] = v
		}
	}
	set = kept(set, isSetting, mostNested)
	name(set, "operation", first("gen_ai.operation.name"))
	name(set, "provider", first("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"))
	name(set, "agent", first("gen_ai.agent.name", "agent.name"))
	name(set, "server", first("server.address"))
	if list := documents([]byte(first("gen_ai.tool.definitions"))); len(list) == 1 {
		set["tools"] = toolsIn(objectsIn(list[0]))
	}
	if len(set) > 0 {
		f.out.Parameters = canonical(set)
	}
	if name := first("gen_ai.operation.name"); name != "invoke_agent" && name != "invoke_workflow" && first("openinference.span.kind") != "AGENT" {
		f.out.Usage = countsInClear(usage)
	}
}

// counts are OpenTelemetry's names of what others call otherwise.
var counts = map[string]string{"prompt": "input_tokens", "completion": "output_tokens", "total": "total_tokens", "prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}

// scalar returns a value of OTLP that is a text, a number or a switch; nil: it is another.
func scalar(v any) any {
	o, _ := v.(object)
	if text, is := o["intValue"].(string); is {
		if form, err := evidence.Canonical([]byte(text)); err == nil && jsontext.Value(form).Kind() == jsontext.KindNumber {
			return number(form)
		}
		return nil
	}
	for _, kind := range []string{"stringValue", "intValue", "doubleValue", "boolValue"} {
		if one, there := o[kind]; there {
			return one
		}
	}
	return nil
}

// textObject returns the object that a text is in JSON; nil: it is none.
func textObject(text string) object {
	if list := documents([]byte(text)); len(list) == 1 {
		o, _ := list[0].(object)
		return o
	}
	return nil
}

func sortedNames(o object) []string {
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func pathOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return strings.TrimSuffix(path, "/")
}

func cutLast(path string) (before, last string, found bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}
