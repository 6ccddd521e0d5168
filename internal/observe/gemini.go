package observe

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence/observed"
	"jurat/internal/llm/wire"
)

// readGenerate reads Gemini's generateContent: https://ai.google.dev/api/generate-content.
func readGenerate(r *reading) {
	g := &gemini{reading: r}
	if o := r.request(); o != nil {
		if isCodeAssist(r.call.Path) {
			o = objectOf(o["request"])
		}
		g.request(o)
	}
	a, ok := answered(r, explainGoogle, wire.ReadGenerateStream)
	if !ok {
		return
	}
	a = a.Opened()
	r.out.ProviderID = a.ResponseID
	r.out.Finish = a.PromptFeedback.BlockReason
	if present(a.Error) {
		r.out.Error = cmp.Or(short(explainGoogle(object{"error": a.Error}.value())), "an error in an answer with a status of success")
	} else if len(a.Candidates) == 0 && r.out.Finish == "" && r.body() == whole {
		r.fail("answer: it has no candidates, and no reason why")
	}
	calls := g.calls
	for _, c := range a.Candidates {
		if c == nil {
			r.fail("answer: a candidate is null")
			continue
		}
		g.calls = calls
		said := answer{number: c.Index, finish: c.FinishReason}
		said.said = g.content("assistant", c.Content.Parts, &said.thought)
		r.answers = append(r.answers, said)
	}
}

func explainGoogle(body []byte) string {
	var list []struct { // a request for a JSON array gets its error in one
		Error wire.GoogleError `json:"error"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) && json.Unmarshal(body, &list, lenient) == nil && len(list) > 0 {
		return colon(list[0].Error.Status, list[0].Error.Message)
	}
	said, ok := wire.ReadGoogleError(body)
	if !ok {
		return ""
	}
	return colon(said.Status, said.Message)
}

// isCodeAssist reports whether a path is of Google's Code Assist, which puts request and answer into envelopes.
func isCodeAssist(path string) bool {
	_, last, _ := cutLast(pathOf(path))
	return strings.HasPrefix(last, "v1internal:")
}

// A gemini reads contents. Calls without an id get a number.
type gemini struct {
	*reading
	calls int
}

// either returns a member that may be written in either spelling.
func (r *reading) either(o object, name, other string) string {
	if _, there := o[other]; !there {
		return name
	}
	if _, both := o[name]; both {
		r.problem("request: it has both %s and %s", name, other)
	}
	return other
}

func (g *gemini) request(o object) {
	system := g.either(o, "systemInstruction", "system_instruction")
	g.either(o, "cachedContent", "cached_content")
	if s := member[wire.GenerateContent](g.reading, o, "request", system); len(s.Parts) > 0 {
		g.prompt = append(g.prompt, g.content("system", s.Parts, nil)...)
	}
	for _, c := range conversation[wire.OneOrMore[wire.GenerateContent]](g.reading, o, "contents") {
		g.prompt = append(g.prompt, g.content(roleOf(c.Role), c.Parts, nil)...)
	}
}

func roleOf(role string) string {
	switch role {
	case "":
		return "user"
	case "model":
		return "assistant"
	case "function":
		return "user" // its parts are results
	}
	return role
}

// content reads the parts of a turn. It appends the thoughts to the list, if there is one.
func (g *gemini) content(role string, parts []wire.GeneratePart, thoughts *[]string) []message {
	t := turn{role: role}
	var thought strings.Builder
	for i := range parts {
		p := &parts[i]
		if p.Thought {
			thought.WriteString(p.Text)
			continue
		}
		g.part(&t, p)
	}
	if thoughts != nil && thought.Len() > 0 {
		*thoughts = append(*thoughts, thought.String())
	}
	return t.end()
}

// codeTool is the vendor's tool that runs code.
const codeTool = "code_execution"

func (g *gemini) part(t *turn, p *wire.GeneratePart) {
	if f := p.FunctionCall; f != nil {
		t.call(function(g.id(f.ID), f.Name, text(f.Args)))
	}
	if f := p.FunctionResponse; f != nil {
		failed := present(objectOf(f.Response)["error"])
		shown := content{textPart(text(f.Response))}
		for _, v := range valuesIn(f.Parts) {
			var inner wire.GeneratePart
			if json.Unmarshal(v, &inner, lenient) == nil && inner.InlineData != nil {
				shown = append(shown, inline(kindOf(inner.InlineData.MIMEType), "", inner.InlineData.MIMEType, inner.InlineData.Data))
			} else {
				shown = append(shown, unknown("part", v))
			}
		}
		t.result(message{Name: f.Name, ToolCallID: f.ID, Content: shown, IsError: failed})
	}
	if c := p.ToolCall; c != nil {
		t.call(function(g.id(c.ID), c.Type, text(c.Args)))
	}
	if c := p.ToolResponse; c != nil {
		t.result(message{Name: c.Type, ToolCallID: c.ID, Content: content{textPart(text(c.Response))}})
	}
	if c := p.ExecutableCode; c != nil {
		t.call(function(g.id(c.ID), codeTool, c.Code))
	}
	if c := p.CodeResult; c != nil {
		t.result(message{Name: codeTool, ToolCallID: c.ID, Content: content{textPart(c.Output)}, IsError: c.Outcome != "" && c.Outcome != "OUTCOME_OK"})
	}
	if d := p.InlineData; d != nil {
		t.say(inline(kindOf(d.MIMEType), "", d.MIMEType, d.Data))
	}
	if f := p.FileData; f != nil {
		t.say(part{Type: kindOf(f.MIMEType), attachment: &attachment{MediaType: short(f.MIMEType), URL: observed.Address(f.URI)}})
	}
	if p.Text != "" {
		t.say(textPart(p.Text))
	}
	g.rest(t, p)
}

// partDetails are members that say how a part is to be read, and are not shown.
var partDetails = []string{"videoMetadata", "video_metadata", "mediaResolution", "media_resolution", "mediaProcessing", "media_processing", "partMetadata", "part_metadata"}

// rest shows parts of a kind that this package does not know.
func (g *gemini) rest(t *turn, p *wire.GeneratePart) {
	o := objectOf(p.Raw)
	for _, name := range partDetails {
		delete(o, name)
	}
	for _, name := range sortedNames(o) {
		t.say(unknown(short(name), o[name]))
	}
}

// kindOf returns the kind of a part for a media type, or for its first half alone.
func kindOf(mediaType string) string {
	switch kind, _, _ := strings.Cut(mediaType, "/"); kind {
	case "image":
		return "image_url"
	case "audio":
		return "input_audio"
	case "video":
		return "video_url"
	}
	return "file"
}

// Numbered begins the ids of calls to which nobody gave one: no vendor's ids have it.
const Numbered = "#"

// id gives a call without an id a number.
func (g *gemini) id(given string) string {
	g.calls++
	return cmp.Or(given, fmt.Sprintf(Numbered+"%d", g.calls))
}
