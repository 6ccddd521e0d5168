package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/tap/convo"
)

// readChat reads OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat.
func readChat(r *reading) {
	wanted := 0 // answers; 0: unknown
	if o := r.request(); o != nil {
		wanted = 1
		c := r.reader(&r.prompt)
		r.conversation(c, o, "messages", c.Chat)
		if n := o.Get("n"); !n.Absent() {
			wanted, _ = strconv.Atoi(convo.TextOf(n.Raw())) // in canonical form, 2.0 is 2
		}
	}
	a := r.answered(explainOpenAI, convo.ReadChatStream)
	if a == nil {
		return
	}
	choices, failure := r.list(a, "choices"), a.Get("error")
	if r.unended && len(choices) < wanted {
		r.out.Complete = false
	}
	r.out.ProviderID = r.text(a, "id")
	if len(choices) == 0 {
		r.nothing(failure)
	}
	r.failure(failure)
	for _, c := range choices {
		r.failure(c.Get("error"))
		message := r.within(c, "message")
		if role := r.text(message, "role"); role != "" && role != "assistant" {
			r.problem("answer: its message has the role %q: read as the model's", role)
		}
		one := answer{r.number(c), r.text(c, "finish_reason"), executed(message.Get("executed_tools"))}
		ran := len(one.said)
		if r.answer(&one, message, (*convo.Reader).ChatMessage); len(one.said) == ran {
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

func (r *reading) failure(n *convo.Node) {
	if !n.Absent() && r.out.Error == "" {
		r.out.Error = cmp.Or(convo.Short(explainOpenAI(written(map[string]any{"error": n.Raw()}))), anError)
	}
}

const anError = "an error in an answer with a status of success"

// executed are the tools that a server of Groq ran, and what they returned.
func executed(list *convo.Node) []convo.Message {
	var said []convo.Message
	t := convo.Turn{Role: convo.Assistant, Say: func(m convo.Message, _ *convo.Node) { said = append(said, m) }}
	for _, n := range list.List() {
		if n.Kind != '{' {
			t.Add(nil, convo.Unknown("executed_tools", n.Raw()))
			continue
		}
		number, _ := strconv.Atoi(convo.Plain(n.Get("index")))
		id, name, rest := fmt.Sprintf(convo.Numbered+"%d", number+1), n.Word("type"), n.ByName("index", "type", "arguments", "output")
		t.Call(nil, convo.Function(id, name, convo.Plain(n.Get("arguments"))))
		returned := convo.Plain(n.Get("output"))
		if n.Get("output").Absent() && len(rest) > 0 {
			returned = convo.TextOf(written(rest))
		}
		t.Result(nil, convo.Message{Name: name, ToolCallID: id, Content: convo.Pieces{convo.Words(returned)}})
	}
	t.End()
	return said
}

func (r *reading) nothing(failure *convo.Node) {
	switch {
	case !failure.Absent():
		r.out.Error = cmp.Or(convo.Short(explainOpenAI(r.call.Response)), anError)
	case r.out.Complete && r.body() == whole:
		r.fail("answer: it has none of the members of an answer")
	}
}

func explainOpenAI(body []byte) string {
	said, _ := convo.ReadOpenAIError(body) // of anything else there is nothing to tell
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
	a := r.answered(explainOpenAI, convo.ReadResponsesStream)
	if a == nil {
		return
	}
	r.out.ProviderID = r.text(a, "id")
	failure, cause, status := r.within(a, "error"), r.within(a, "incomplete_details"), r.text(a, "status")
	why := convo.Short(colon(r.text(failure, "code"), r.text(failure, "message")))
	switch status {
	case "completed", "cancelled":
	case "failed":
		r.out.Error = cmp.Or(why, "the response failed")
	case "incomplete":
		status = cmp.Or(r.text(cause, "reason"), status)
	case "":
		if r.text(failure, "message") != "" {
			r.out.Error = why
		} else if r.body() == whole {
			r.fail("answer: it has no status")
			return
		}
	default: // it goes on, or will begin
		status, r.out.Complete = "", false
	}
	if !r.mustBeList(a.Get("output")) {
		return
	}
	said := answer{finish: status}
	r.answer(&said, a.Get("output"), func(c *convo.Reader, n *convo.Node) { c.Items(n, convo.Assistant) })
	for _, item := range a.Get("output").List() {
		kind, role, id := r.text(item, "type"), r.text(item, "role"), r.text(item, "id")
		if (kind == "" || kind == "message") && role != "" && role != convo.Assistant {
			r.problem("answer: a message has the role %q: read as the model's", role)
		}
		if id != "" && len(r.out.Items) < maxItems {
			r.out.Items = append(r.out.Items, convo.Short(id))
		}
	}
	r.answers = append(r.answers, said)
}

func pathOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return strings.TrimSuffix(path, "/")
}

func (r *reading) responsesRequest(o *convo.Node) {
	c := r.reader(&r.prompt)
	for _, part := range []struct{ member, role string }{{"instructions", convo.System}, {"input", convo.User}} {
		if o.Get(part.member) != nil {
			r.conversation(c, o, part.member, func(n *convo.Node) { c.Items(n, part.role) })
		}
	}
}

// readMessages reads Anthropic's Messages: https://docs.claude.com/en/api/messages.
func readMessages(r *reading) {
	if o := r.request(); o != nil {
		c := r.reader(&r.prompt)
		r.read(c, o, "system", c.AnthropicSystem)
		r.conversation(c, o, "messages", c.AnthropicMessages)
	}
	a := r.answered(explainAnthropic, convo.ReadMessagesStream)
	if a == nil {
		return
	}
	r.out.ProviderID = r.text(a, "id")
	kind := r.text(a, "type")
	if kind == "error" {
		r.out.Error = cmp.Or(convo.Short(explainAnthropic(r.call.Response)), "an error with a status of success")
		return
	}
	if kind != "message" && r.body() == whole {
		r.fail("answer: it is not a message")
		return
	}
	if !r.mustBeList(a.Get("content")) {
		return
	}
	said := answer{finish: r.text(a, "stop_reason")}
	r.answer(&said, a.Get("content"), func(c *convo.Reader, n *convo.Node) { c.AnthropicContent(convo.Assistant, n) })
	r.answers = append(r.answers, said)
}

func explainAnthropic(body []byte) string { return explainKind(body, "type") }

// explainKind is an error whose kind is a member, in words; "": it has none.
func explainKind(body []byte, member string) string {
	said := convo.ErrorBody(body).Get("error")
	if said.Word(member) == "" {
		return ""
	}
	return colon(said.Word(member), said.Word("message"))
}

// readGenerate reads Gemini's generateContent: https://ai.google.dev/api/generate-content.
func readGenerate(r *reading) {
	c := r.reader(&r.prompt)
	if o := r.request(); o != nil {
		if _, last, _ := cutLast(pathOf(r.call.Path)); strings.HasPrefix(last, "v1internal:") { // of Google's Code Assist
			o = o.Within("request")
		}
		r.either(o, "cachedContent", "cached_content")
		r.read(c, o, r.either(o, "systemInstruction", "system_instruction"), c.GeminiSystem)
		r.conversation(c, o, "contents", c.Contents)
	}
	a := r.answered(explainGoogle, convo.ReadGenerateStream)
	if a == nil {
		return
	}
	failure := a.Get("error")
	if inside := a.Get("response"); !inside.Absent() { // of Google's Code Assist
		a, failure = inside, cmp.Or(inside.First("error"), failure)
	}
	candidates := r.list(a, "candidates")
	r.out.ProviderID = r.text(a, "responseId")
	r.out.Finish = r.text(r.within(a, "promptFeedback"), "blockReason")
	if !failure.Absent() {
		r.out.Error = cmp.Or(convo.Short(explainGoogle(written(map[string]any{"error": failure.Raw()}))), anError)
	} else if len(candidates) == 0 && r.out.Finish == "" && r.body() == whole {
		r.fail("answer: it has no candidates, and no reason why")
	}
	for _, candidate := range candidates {
		if candidate.Absent() {
			r.fail("answer: a candidate is null")
			continue
		}
		said := answer{number: r.number(candidate), finish: r.text(candidate, "finishReason")}
		r.answer(&said, candidate.Get("content"), func(in *convo.Reader, n *convo.Node) {
			in.Calls = c.Calls
			in.Content(n, convo.Assistant)
		})
		r.answers = append(r.answers, said)
	}
}

func explainGoogle(body []byte) string { return explainKind(body, "status") }

// either returns a member that may be written in either spelling.
func (r *reading) either(o *convo.Node, name, other string) string {
	if o.Get(other) == nil {
		return name
	}
	if o.Get(name) != nil {
		r.problem("request: it has both %s and %s", name, other)
	}
	return other
}
