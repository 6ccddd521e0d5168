package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm/wire"
)

// readChat reads OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat.
func readChat(r *reading) {
	wanted := 0 // answers; 0: unknown
	if o := r.request(); o != nil {
		wanted = 1
		messages := conversation[[]wire.ChatMessage](r, o, "messages")
		r.prompt = slices.Grow(r.prompt, len(messages))
		for _, m := range messages {
			r.prompt = append(r.prompt, r.chat(m))
		}
		if present(o["n"]) {
			wanted, _ = strconv.Atoi(text(o["n"])) // in canonical form, 2.0 is 2
		}
	}
	a, ok := answered(r, explainOpenAI, wire.ReadChatStream)
	if !ok {
		return
	}
	if r.unended && len(a.Choices) < wanted {
		r.out.Complete = false
	}
	r.out.ProviderID = a.ID
	if len(a.Choices) == 0 {
		r.nothing(a.Error)
	}
	r.failure(a.Error)
	for _, c := range a.Choices {
		r.failure(c.Error)
		if role := c.Message.Role; role != "" && role != "assistant" {
			r.problem("answer: its message has the role %q: read as the model's", role)
		}
		c.Message.Role = "assistant"
		said := append(executed(c.Message.Executed), r.chat(c.Message))
		r.answers = append(r.answers, answer{c.Index, c.FinishReason, said, []string{c.Message.Thought()}})
	}
	if n := len(r.answers); n > 1 && wanted == 1 {
		r.problem("answer: %d answers to a request for one: read as its parts", n)
		r.unite()
	}
}

// unite makes one answer of several, as GitHub Copilot parts what the model says from the tools that it calls. What the server ran comes first.
func (r *reading) unite() {
	slices.SortStableFunc(r.answers, func(a, b answer) int { return cmp.Compare(a.number, b.number) })
	first := r.answers[0].said
	one, whole := answer{number: r.answers[0].number}, message{Role: "assistant", Name: first[len(first)-1].Name, ToolCallID: first[len(first)-1].ToolCallID}
	var refusal strings.Builder
	for _, a := range r.answers {
		last := len(a.said) - 1
		part := a.said[last]
		one.said = append(one.said, a.said[:last]...)
		whole.Content, whole.ToolCalls = append(whole.Content, part.Content...), append(whole.ToolCalls, part.ToolCalls...)
		whole.FunctionCall = cmp.Or(whole.FunctionCall, part.FunctionCall)
		refusal.WriteString(part.Refusal)
		for _, text := range a.thought {
			if text != "" {
				one.thought = append(one.thought, text)
			}
		}
		if one.finish == "" || part.ToolCalls != nil {
			one.finish = cmp.Or(a.finish, one.finish)
		}
	}
	whole.Content, whole.Refusal = whole.Content.joined(), refusal.String()
	one.said = append(one.said, whole)
	r.answers = []answer{one}
}

// valuesIn returns the elements of an array; nil for any other value.
func valuesIn(v jsontext.Value) (list []jsontext.Value) {
	if v.Kind() != jsontext.KindBeginArray || json.Unmarshal(v, &list, lenient) != nil {
		return nil
	}
	return list
}

// failure notes an error beside an answer.
func (r *reading) failure(v jsontext.Value) {
	if present(v) && r.out.Error == "" {
		r.out.Error = cmp.Or(short(explainOpenAI(object{"error": v}.value())), "an error in an answer with a status of success")
	}
}

// executed makes messages of the tools that the server ran.
func executed(v jsontext.Value) []message {
	t := turn{role: "assistant"}
	for _, v := range valuesIn(v) {
		var tool wire.ChatExecuted
		if json.Unmarshal(v, &tool, lenient) != nil {
			t.say(unknown("executed_tools", v))
			continue
		}
		id := fmt.Sprintf(Numbered+"%d", tool.Index+1)
		t.call(function(id, tool.Type, string(tool.Arguments)))
		returned := text(tool.Output)
		if rest := objectOf(tool.Raw); !present(tool.Output) && len(rest) > 0 {
			returned = text(rest.value())
		} else if tool.Output.Kind() == jsontext.KindString {
			returned = object{"": tool.Output}.word("")
		}
		t.result(message{Name: tool.Type, ToolCallID: id, Content: content{textPart(returned)}})
	}
	return t.end()
}

// nothing notes why a whole answer has nothing in it.
func (r *reading) nothing(failure jsontext.Value) {
	switch {
	case present(failure):
		r.out.Error = cmp.Or(short(explainOpenAI(r.call.Response)), "an error in an answer with a status of success")
	case r.out.Complete && r.body() == whole:
		r.fail("answer: it has none of the members of an answer")
	}
}

// explainOpenAI reads an error's body.
func explainOpenAI(body []byte) string {
	said, ok := wire.ReadOpenAIError(body)
	if !ok {
		return ""
	}
	return colon(cmp.Or(said.Code, said.Type), said.Message)
}

// colon joins a kind and its message, of which either may be missing.
func colon(kind, message string) string {
	if kind != "" && message != "" {
		return kind + ": " + message
	}
	return kind + message
}

// chat reads a chat message.
func (r *reading) chat(m wire.ChatMessage) message {
	said := message{Role: m.Role, Name: m.Name, Refusal: m.Refusal, ToolCalls: m.ToolCalls, FunctionCall: m.FunctionCall, ToolCallID: m.ToolCallID}
	if said.ToolCalls = slices.DeleteFunc(said.ToolCalls, func(c call) bool { return c == call{} }); len(said.ToolCalls) == 0 { // a null among them
		said.ToolCalls = nil
	}
	for i := range said.ToolCalls {
		if c := &said.ToolCalls[i]; c.Type == "" {
			c.Type = "function"
		}
	}
	said.Content = r.parts(m.Content)
	for _, v := range valuesIn(m.Images) {
		var p wire.Part
		if json.Unmarshal(v, &p, lenient) == nil {
			said.Content = append(said.Content, r.filePart(p))
		}
	}
	said.Content = append(said.Content, heard(m.Audio)...)
	return said
}

// heard reads what a model spoke: its text, and the sound.
func heard(v jsontext.Value) (list content) {
	o := objectOf(v)
	if words := o.word("transcript"); words != "" {
		list = append(list, textPart(words))
	}
	if data := o.word("data"); data != "" {
		list = append(list, inline("input_audio", "", "", data))
	}
	return list
}

// parts reads content of OpenAI's two forms.
func (r *reading) parts(c wire.Content) (list content) {
	if c.Parts == nil {
		if c.Text == "" {
			return nil
		}
		return content{textPart(c.Text)}
	}
	list = make(content, 0, len(c.Parts))
	for _, p := range c.Parts {
		switch p.Type {
		case "text", "input_text", "output_text", "":
			list = append(list, textPart(p.Text))
		case "refusal":
			list = append(list, textPart(p.Refusal))
		case "thinking", "reasoning":
		default:
			if p.Type != "reference" || !isModels(r.call.Protocol) { // Mistral's numbers of sources
				list = append(list, r.filePart(p))
			}
		}
	}
	return list
}

// filePart reads a part that is a picture, a sound or a file.
func (r *reading) filePart(p wire.Part) part {
	o := objectOf(p.Raw)
	switch p.Type {
	case "image_url", "video_url":
		return at(p.Type, "", cmp.Or(objectOf(o[p.Type]).word("url"), o.word(p.Type)))
	case "input_image":
		if id := o.word("file_id"); id != "" {
			return file(p.Type, "", id)
		}
		return at(p.Type, "", o.word("image_url"))
	case "input_audio":
		in := objectOf(o["input_audio"])
		return inline(p.Type, "", in.word("format"), in.word("data"))
	case "file", "input_file":
		if in := objectOf(o["file"]); in != nil {
			o = in
		}
		name := short(o.word("filename"))
		if id := o.word("file_id"); id != "" {
			return file(p.Type, name, id)
		}
		return at(p.Type, name, cmp.Or(o.word("file_url"), o.word("file_data")))
	}
	return unknown(p.Type, p.Raw)
}
