package observe

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm/wire"
)

// readChat reads OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat.
func readChat(r *reading) {
	if o := r.request(); o != nil {
		r.out.Model = o.word("model")
		messages := conversation[[]wire.ChatMessage](r, o, "messages")
		r.prompt = slices.Grow(r.prompt, len(messages))
		for _, m := range messages {
			r.prompt = append(r.prompt, r.chat(m))
		}
		r.chatTools(o)
		if len(o["web_search_options"]) > 0 {
			r.refer("tool", "web_search")
		}
		r.parameters(o, "model", "messages")
	}
	a, ok := answered(r, explainOpenAI, wire.ReadChatStream)
	if !ok {
		return
	}
	r.out.ModelVersion, r.out.SystemFingerprint, r.out.ProviderID = a.Model, a.SystemFingerprint, a.ID
	r.usage(a.Usage)
	if len(a.Choices) == 0 {
		r.nothing(a.Error)
	}
	for _, c := range a.Choices {
		if role := c.Message.Role; role != "" && role != "assistant" {
			r.problem("answer: its message has the role %q: read as the model's", role)
		}
		c.Message.Role = "assistant"
		m := r.chat(c.Message)
		r.answers = append(r.answers, answer{c.Index, c.FinishReason, []message{m}, []string{c.Message.ReasoningContent}})
	}
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
	for i := range said.ToolCalls {
		if c := &said.ToolCalls[i]; c.Type == "" {
			c.Type = "function"
		}
	}
	said.Content = r.parts(m.Content)
	return said
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
			list = append(list, r.filePart(p))
		}
	}
	return list
}

// filePart reads a part that is a picture, a sound or a file.
func (r *reading) filePart(p wire.Part) part {
	o := objectOf(p.Raw)
	switch p.Type {
	case "image_url", "video_url":
		return r.at(p.Type, "", cmp.Or(objectOf(o[p.Type]).word("url"), o.word(p.Type)))
	case "input_image":
		if id := o.word("file_id"); id != "" {
			return r.file(p.Type, "", id)
		}
		return r.at(p.Type, "", o.word("image_url"))
	case "input_audio":
		in := objectOf(o["input_audio"])
		return inline(p.Type, "", in.word("format"), in.word("data"))
	case "file", "input_file":
		if in := objectOf(o["file"]); in != nil {
			o = in
		}
		name := short(o.word("filename"))
		if id := o.word("file_id"); id != "" {
			return r.file(p.Type, name, id)
		}
		return r.at(p.Type, name, cmp.Or(o.word("file_url"), o.word("file_data")))
	}
	return unknown(p.Type, p.Raw)
}

// chatTools replaces the definitions of tools by their names, and names those that the provider runs.
func (r *reading) chatTools(o object) {
	for _, list := range []string{"tools", "functions"} {
		if _, there := o[list]; !there {
			continue
		}
		names := []string{}
		for _, tool := range member[[]object](r, o, "request", list) {
			kind := tool.word("type")
			name := cmp.Or(objectOf(tool["function"]).word("name"), objectOf(tool["custom"]).word("name"), tool.word("name"), kind)
			names = append(names, name)
			if list == "tools" && kind != "function" && kind != "custom" {
				r.refer("tool", kind)
			}
		}
		o.names(list, names)
	}
}

// names replaces a member by a list of names.
func (o object) names(member string, names []string) {
	if doc, err := json.Marshal(names, jsontext.AllowInvalidUTF8(true)); err == nil {
		o[member] = doc
	}
}
