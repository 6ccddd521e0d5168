package observe

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/convo"
)

// readChat reads OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat.
func readChat(r *reading) {
	wanted := 0 // answers; 0: unknown
	if o := r.request(); o != nil {
		wanted = 1
		c := r.reader(&r.prompt)
		r.conversation(c, o, "messages", c.Chat)
		if present(o["n"]) {
			wanted, _ = strconv.Atoi(convo.TextOf(o["n"])) // in canonical form, 2.0 is 2
		}
	}
	a, root, ok := answered(r, explainOpenAI, convo.ReadChatStream)
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
	for i, c := range a.Choices {
		r.failure(c.Error)
		if role := c.Message.Role; role != "" && role != "assistant" {
			r.problem("answer: its message has the role %q: read as the model's", role)
		}
		one := answer{c.Index, c.FinishReason, executed(c.Message.Executed)}
		ran := len(one.said)
		if r.answer(&one, root.Get("choices").Element(i).Get("message"), (*convo.Reader).ChatMessage); len(one.said) == ran {
			one.said = append(one.said, convo.Message{Role: convo.Assistant}) // it has none
		}
		r.answers = append(r.answers, one)
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
	one, whole := answer{number: r.answers[0].number}, convo.Message{Role: "assistant", Name: first[len(first)-1].Name, ToolCallID: first[len(first)-1].ToolCallID}
	var refusal strings.Builder
	for _, a := range r.answers {
		last := len(a.said) - 1
		part := a.said[last]
		one.said = append(one.said, a.said[:last]...)
		whole.Content, whole.ToolCalls = append(whole.Content, part.Content...), append(whole.ToolCalls, part.ToolCalls...)
		whole.FunctionCall = cmp.Or(whole.FunctionCall, part.FunctionCall)
		refusal.WriteString(part.Refusal)
		if one.finish == "" || part.ToolCalls != nil {
			one.finish = cmp.Or(a.finish, one.finish)
		}
	}
	whole.Content, whole.Refusal = whole.Content.Joined(), refusal.String()
	one.said = append(one.said, whole)
	r.answers = []answer{one}
}

func (r *reading) failure(v jsontext.Value) {
	if present(v) && r.out.Error == "" {
		r.out.Error = cmp.Or(convo.Short(explainOpenAI(object{"error": v}.Value())), "an error in an answer with a status of success")
	}
}

func executed(v jsontext.Value) []convo.Message {
	var said []convo.Message
	t := convo.Turn{Role: convo.Assistant, Say: func(m convo.Message, _ *convo.Node) { said = append(said, m) }}
	for _, v := range convo.Values(v) {
		var tool convo.ChatExecuted
		if json.Unmarshal(v, &tool, lenient) != nil {
			t.Add(nil, convo.Unknown("executed_tools", v))
			continue
		}
		id := fmt.Sprintf(convo.Numbered+"%d", tool.Index+1)
		t.Call(nil, convo.Function(id, tool.Type, strings.ToValidUTF8(string(tool.Arguments), "\ufffd")))
		returned := convo.TextOf(tool.Output)
		if rest := convo.ObjectOf(tool.Raw); !present(tool.Output) && len(rest) > 0 {
			returned = convo.TextOf(rest.Value())
		} else if tool.Output.Kind() == jsontext.KindString {
			returned = object{"": tool.Output}.Word("")
		}
		t.Result(nil, convo.Message{Name: tool.Type, ToolCallID: id, Content: convo.Pieces{convo.Words(returned)}})
	}
	t.End()
	return said
}

func (r *reading) nothing(failure jsontext.Value) {
	switch {
	case present(failure):
		r.out.Error = cmp.Or(convo.Short(explainOpenAI(r.call.Response)), "an error in an answer with a status of success")
	case r.out.Complete && r.body() == whole:
		r.fail("answer: it has none of the members of an answer")
	}
}

func explainOpenAI(body []byte) string {
	said, ok := convo.ReadOpenAIError(body)
	if !ok {
		return ""
	}
	return colon(cmp.Or(said.Code, said.Type), said.Message)
}

func colon(kind, message string) string {
	if kind != "" && message != "" {
		return kind + ": " + message
	}
	return kind + message
}

// readResponses reads OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses.
func readResponses(r *reading) {
	_, id, _ := cutLast(pathOf(r.call.Path))
	if later := len(r.call.Request) == 0 && id != "responses"; !later { // later: it asks for an answer that was made in the background
		r.responsesRequest(r.request())
	}
	a, root, ok := answered(r, explainOpenAI, convo.ReadResponsesStream)
	if !ok {
		return
	}
	r.out.ProviderID = a.ID
	switch a.Status {
	case "completed", "cancelled":
	case "failed":
		r.out.Error = cmp.Or(convo.Short(colon(a.Error.Code, a.Error.Message)), "the response failed")
	case "incomplete":
		a.Status = cmp.Or(a.IncompleteDetails.Reason, a.Status)
	case "":
		if a.Error.Message != "" {
			r.out.Error = convo.Short(colon(a.Error.Code, a.Error.Message))
		} else if r.body() == whole {
			r.fail("answer: it has no status")
			return
		}
	default: // it goes on, or will begin
		a.Status, r.out.Complete = "", false
	}
	said := answer{finish: a.Status}
	r.answer(&said, root.Get("output"), func(c *convo.Reader, n *convo.Node) { c.Items(n, convo.Assistant) })
	for i := range a.Output {
		item := &a.Output[i]
		if (item.Type == "" || item.Type == "message") && item.Role != "" && item.Role != convo.Assistant {
			r.problem("answer: a message has the role %q: read as the model's", item.Role)
		}
		if item.ID != "" && len(r.out.Items) < maxItems {
			r.out.Items = append(r.out.Items, convo.Short(item.ID))
		}
	}
	r.answers = append(r.answers, said)
}

func pathOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return strings.TrimSuffix(path, "/")
}

func (r *reading) responsesRequest(o object) {
	c := r.reader(&r.prompt)
	for _, part := range []struct{ member, role string }{{"instructions", convo.System}, {"input", convo.User}} {
		if _, there := o[part.member]; there {
			r.conversation(c, o, part.member, func(n *convo.Node) { c.Items(n, part.role) })
		}
	}
}

func present(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != jsontext.KindNull }

// readMessages reads Anthropic's Messages: https://docs.claude.com/en/api/messages.
func readMessages(r *reading) {
	if o := r.request(); o != nil {
		c := r.reader(&r.prompt)
		r.read(c, o, "system", c.AnthropicSystem)
		r.conversation(c, o, "messages", c.AnthropicMessages)
	}
	a, root, ok := answered(r, explainAnthropic, convo.ReadMessagesStream)
	if !ok {
		return
	}
	r.out.ProviderID = a.ID
	if a.Type == "error" {
		r.out.Error = cmp.Or(convo.Short(explainAnthropic(r.call.Response)), "an error with a status of success")
		return
	}
	if a.Type != "message" && r.body() == whole {
		r.fail("answer: it is not a message")
		return
	}
	said := answer{finish: a.StopReason}
	r.answer(&said, root.Get("content"), func(c *convo.Reader, n *convo.Node) { c.AnthropicContent(convo.Assistant, n) })
	r.answers = append(r.answers, said)
}

func explainAnthropic(body []byte) string {
	said, ok := convo.ReadAnthropicError(body)
	if !ok {
		return ""
	}
	return colon(said.Type, said.Message)
}

// readGenerate reads Gemini's generateContent: https://ai.google.dev/api/generate-content.
func readGenerate(r *reading) {
	c := r.reader(&r.prompt)
	if o := r.request(); o != nil {
		if isCodeAssist(r.call.Path) {
			o = convo.ObjectOf(o["request"])
		}
		r.either(o, "cachedContent", "cached_content")
		r.read(c, o, r.either(o, "systemInstruction", "system_instruction"), c.GeminiSystem)
		r.conversation(c, o, "contents", c.Contents)
	}
	a, root, ok := answered(r, explainGoogle, convo.ReadGenerateStream)
	if !ok {
		return
	}
	if a.Inside != nil { // read again, as the struct may have merged two of them
		root = root.Get("response")
		inside, _ := decode[convo.GenerateAnswer](r, "answer", root.Raw())
		a.Inside = &inside
	}
	a = a.Opened()
	r.out.ProviderID = a.ResponseID
	r.out.Finish = a.PromptFeedback.BlockReason
	if present(a.Error) {
		r.out.Error = cmp.Or(convo.Short(explainGoogle(object{"error": a.Error}.Value())), "an error in an answer with a status of success")
	} else if len(a.Candidates) == 0 && r.out.Finish == "" && r.body() == whole {
		r.fail("answer: it has no candidates, and no reason why")
	}
	for i, candidate := range a.Candidates {
		if candidate == nil {
			r.fail("answer: a candidate is null")
			continue
		}
		said := answer{number: candidate.Index, finish: candidate.FinishReason}
		r.answer(&said, root.Get("candidates").Element(i).Get("content"), func(in *convo.Reader, n *convo.Node) {
			in.Calls = c.Calls
			in.Content(n, convo.Assistant)
		})
		r.answers = append(r.answers, said)
	}
}

func explainGoogle(body []byte) string {
	var list []struct { // a request for a JSON array gets its error in one
		Error convo.GoogleError `json:"error"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) && json.Unmarshal(body, &list, lenient) == nil && len(list) > 0 {
		return colon(list[0].Error.Status, list[0].Error.Message)
	}
	said, ok := convo.ReadGoogleError(body)
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
