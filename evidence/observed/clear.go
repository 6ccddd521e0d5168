package observed

import (
	"bytes"
	"iter"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// What a record says in clear cannot be erased: the model, the parameters, the usage, and references to context kept elsewhere. So nothing stands
// there that a caller, a provider or a sender writes freely, but numbers and truths of known settings, words of a closed list, and names of one word.
// All else that a request or an answer says is in its bytes, which are sealed apart as messages are.

// No regular expressions are used here: they would be 80 KB of the packed verifier for browsers.

const longestName = 128

func isLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func consistsOf(text, signs string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return !isLetter(c) && (c < '0' || c > '9') && !strings.ContainsRune(signs, c) })
}

// IsPlain reports whether a text is a name that may stand in clear: at most 128 letters of ASCII, digits and signs, without white space. No
// sentence, no URL and no mail address is one.
func IsPlain(text string) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(text, "/"), "/") {
		if part == "" || !consistsOf(part, "_.:@$+=~-") || hasMailAddress(part) {
			return false
		}
	}
	return len(text) <= longestName
}

// hasMailAddress reports whether something stands before an @, and two letters after a point behind it.
func hasMailAddress(part string) bool {
	_, domain, more := strings.Cut(part[1:], "@")
	for more {
		if _, domain, more = strings.Cut(domain, "."); more && len(domain) > 1 && isLetter(rune(domain[0])) && isLetter(rune(domain[1])) {
			return true
		}
	}
	return false
}

// settings are the members of requests that parameters may have.
var settings = setOf(`temperature top_p topP top_k topK min_p top_a n seed random_seed candidateCount candidate_count choice.count max_tokens
	max_completion_tokens max_output_tokens maxOutputTokens max_tool_calls presence_penalty presencePenalty frequency_penalty frequencyPenalty repetition_penalty
	logprobs top_logprobs responseLogprobs response_logprobs stream stream_options include_usage include_obfuscation store background parallel_tool_calls
	disable_parallel_tool_use truncation service_tier tool_choice function_call type mode reasoning reasoning_effort effort summary verbosity text format
	response_format json_schema strict modalities thinking thinking_config thinkingConfig budget_tokens thinking_budget thinkingBudget thinking_level
	thinkingLevel include_thoughts includeThoughts enable_thinking enable_search generation_config generationConfig response_mime_type responseMimeType
	response_modalities responseModalities media_resolution mediaResolution tool_config toolConfig function_calling_config functionCallingConfig output_config
	speed display web_search_options search_context_size search_parameters prompt_cache_retention safe_prompt safety_settings safetySettings category threshold
	blocking returnImmediately historyLength`)

// closedWords are the texts that settings and counts may have.
var closedWords = setOf(`auto none required any tool function custom allowed_tools minimal low medium high xhigh max concise detailed default flex priority
	scale batch on_demand standard standard_only fast disabled enabled adaptive summarized omitted text json_object json_schema audio image video ephemeral 24h
	in_memory in-memory on off global us eu application/json text/plain text/x.enum AUTO ANY NONE VALIDATED TEXT IMAGE AUDIO VIDEO DOCUMENT MINIMAL LOW MEDIUM
	HIGH ON_DEMAND PROVISIONED_THROUGHPUT OFF MEDIA_RESOLUTION_LOW MEDIA_RESOLUTION_MEDIUM MEDIA_RESOLUTION_HIGH HARM_CATEGORY_HARASSMENT
	HARM_CATEGORY_HATE_SPEECH HARM_CATEGORY_SEXUALLY_EXPLICIT HARM_CATEGORY_DANGEROUS_CONTENT HARM_CATEGORY_CIVIC_INTEGRITY BLOCK_NONE BLOCK_ONLY_HIGH
	BLOCK_MEDIUM_AND_ABOVE BLOCK_LOW_AND_ABOVE`)

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for _, one := range strings.Fields(list) {
		set[one] = true
	}
	return set
}

func isSetting(name string) bool { return settings[name] }

// isCounter reports whether a member of usage may stand in clear. Providers count more each year, so their names are no closed list.
func isCounter(name string) bool {
	return name != "" && len(name) <= longestName && isLetter(rune(name[0])) && consistsOf(name, "_.")
}

// mostNested is how deep settings and counts are nested: what is deeper does not stand in clear.
const mostNested = 8

// inClear returns what of a value may stand in clear, with the members that may be there; false: nothing.
func inClear(v any, may func(member string) bool, depth int) (any, bool) {
	if depth == 0 {
		return nil, false
	}
	switch v := v.(type) {
	case string:
		return v, closedWords[v]
	case number:
		form, err := evidence.Canonical(v)
		return number(form), err == nil
	case object:
		return kept(v, may, depth-1), true
	case []any:
		list := make([]any, len(v))
		for i := range v {
			stays := false
			if list[i], stays = inClear(v[i], may, depth-1); !stays { // a list without one of its elements would say something else
				return nil, false
			}
		}
		return list, true
	}
	return v, true
}

func kept(o object, may func(member string) bool, depth int) object {
	clear := object{}
	for name, v := range o {
		if !may(name) {
			continue
		}
		if its, stays := inClear(v, may, depth); stays {
			clear[name] = its
		}
	}
	return clear
}

// countsInClear returns what of the counts of a provider may stand in clear; nil: nothing.
func countsInClear(counts object) jsontext.Value {
	if clear := kept(counts, isCounter, mostNested-1); len(clear) > 0 {
		return canonical(clear)
	}
	return nil
}

// UsageInClear returns what of the counts of a provider, in JSON, may stand in clear; nil: nothing.
func UsageInClear(reported jsontext.Value) jsontext.Value {
	if list := documents(reported); len(list) == 1 {
		counts, _ := list[0].(object)
		return countsInClear(counts)
	}
	return nil
}

// referenceInClear is a reference to context as it stands in clear: of a text that is no name, of an address and of a question its
// kind alone. One word may be a question, too.
func referenceInClear(kind, what string) string {
	if kind == "search" || kind == "url" || !IsPlain(what) {
		return kind
	}
	return kind + ":" + what
}

// Address is an address without what may be a secret in it: user, password, query and fragment. It is cut if it is long.
func Address(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(an address that is not valid)"
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	return cut(u.String())
}

const longestReference = 2 << 10

// cut cuts a text that somebody else may have written.
func cut(text string) string {
	if len(text) > longestReference {
		text = text[:longestReference] + "…"
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// name adds a name to what parameters say, if it may stand in clear.
func name(o object, member, text string) {
	if IsPlain(text) {
		o[member] = text
	}
}

// plainOr returns a text that may stand in clear; "": it is none.
func plainOr(text string) string {
	if IsPlain(text) {
		return text
	}
	return ""
}

// masked stands in a path for a part that is no name.
const masked = "*"

// PathInClear is a path as a record has it: each part that is no name is "*". A secret that is one word stays: nothing tells it from an id.
func PathInClear(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if part != "" && !IsPlain(colonEscaped.Replace(part)) {
			parts[i] = masked
		}
	}
	return strings.Join(parts, "/")
}

// colonEscaped are what programs write in paths to Bedrock, whose models have names with colons, and addresses with slashes.
var colonEscaped = strings.NewReplacer("%3A", ":", "%3a", ":", "%2F", "-", "%2f", "-")

// A value of JSON is an object, []any, string, number, bool or nil here.
type (
	object = map[string]any
	number = jsontext.Value // as it stands
)

// documents reads the objects and arrays of JSON with which a body begins, as most libraries do: of members with one name the last counts, and
// U+FFFD stands for what is broken in a text.
func documents(body []byte) (list []any) {
	d := jsontext.NewDecoder(bytes.NewBuffer(bytes.TrimPrefix(body, []byte("\ufeff"))), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for d.PeekKind() == jsontext.KindBeginObject || d.PeekKind() == jsontext.KindBeginArray {
		v, err := value(d)
		if err != nil {
			break
		}
		list = append(list, v)
	}
	return list
}

func value(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindBeginObject:
		o := object{}
		for d.PeekKind() != jsontext.KindEndObject {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			its := name.String()
			if o[its], err = value(d); err != nil {
				return nil, err
			}
		}
		_, err := d.ReadToken()
		return o, err
	case jsontext.KindBeginArray:
		list := []any{}
		for d.PeekKind() != jsontext.KindEndArray {
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.ReadToken()
		return list, err
	case jsontext.KindString:
		return token.String(), nil
	case jsontext.KindNumber:
		return number(token.String()), nil
	case jsontext.KindNull:
		return nil, nil
	}
	return token.Bool(), nil
}

// objects returns the objects that a body has: its documents, and those in an array. A body with none may be a stream of events, each with such data.
func objects(body []byte) (list []object) {
	for _, v := range documents(body) {
		list = append(list, objectsIn(v)...)
	}
	if list != nil {
		return list
	}
	for data := range eventData(body) {
		if string(data) == "[DONE]" {
			break
		}
		for _, v := range documents(data) {
			list = append(list, objectsIn(v)...)
		}
	}
	return list
}

// objectsIn returns the object that a value is, or those in the array that it is.
func objectsIn(v any) (list []object) {
	if o, is := v.(object); is {
		return []object{o}
	}
	elements, _ := v.([]any)
	for _, element := range elements {
		if o, is := element.(object); is {
			list = append(list, o)
		}
	}
	return list
}

func eventData(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		body = bytes.TrimPrefix(body, []byte("\ufeff"))
		body = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		var lines [][]byte
		for line := range bytes.SplitSeq(append(body, '\n', '\n'), []byte("\n")) {
			field, value, _ := bytes.Cut(line, []byte(":"))
			if string(field) == "data" {
				lines = append(lines, bytes.TrimPrefix(value, []byte(" ")))
			}
			if len(line) == 0 && lines != nil {
				if !yield(bytes.Join(lines, []byte("\n"))) {
					return
				}
				lines = nil
			}
		}
	}
}

// at returns what is at places in a value. A place is names with points between them; after a name, [] stands for each element of an array, and
// [KIND] for each whose type is KIND.
func at(v any, places string) (found []any) {
	for place := range strings.FieldsSeq(places) {
		found = append(found, reached(v, strings.Split(place, "."))...)
	}
	return found
}

func reached(v any, steps []string) []any {
	if len(steps) == 0 {
		return []any{v}
	}
	name, kind, each := strings.Cut(strings.TrimSuffix(steps[0], "]"), "[")
	o, _ := v.(object)
	next, there := o[name]
	switch {
	case !there:
		return nil
	case !each:
		return reached(next, steps[1:])
	}
	var found []any
	elements, _ := next.([]any)
	for _, element := range elements {
		if kind == "" || word(element, "type") == kind {
			found = append(found, reached(element, steps[1:])...)
		}
	}
	return found
}

// word returns the first text at places that is not empty; "": there is none.
func word(v any, places string) string {
	for _, one := range at(v, places) {
		if text, is := one.(string); is && text != "" {
			return text
		}
	}
	return ""
}

func lastWord(v any, places string) (last string) {
	for _, one := range at(v, places) {
		if text, is := one.(string); is && text != "" {
			last = text
		}
	}
	return last
}

// canonical writes a value that was put together here; nil: it has no canonical form.
func canonical(v any) jsontext.Value {
	doc, err := json.Marshal(v, json.Deterministic(true))
	if err == nil {
		doc, err = evidence.Canonical(doc)
	}
	if err != nil {
		return nil
	}
	return doc
}
