package observe

import (
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

// failure notes an error beside an answer.
func (r *reading) failure(v jsontext.Value) {
	if present(v) && r.out.Error == "" {
		r.out.Error = cmp.Or(convo.Short(explainOpenAI(object{"error": v}.Value())), "an error in an answer with a status of success")
	}
}

// executed makes messages of the tools that the server ran.
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

// nothing notes why a whole answer has nothing in it.
func (r *reading) nothing(failure jsontext.Value) {
	switch {
	case present(failure):
		r.out.Error = cmp.Or(convo.Short(explainOpenAI(r.call.Response)), "an error in an answer with a status of success")
	case r.out.Complete && r.body() == whole:
		r.fail("answer: it has none of the members of an answer")
	}
}

// explainOpenAI reads an error's body.
func explainOpenAI(body []byte) string {
	said, ok := convo.ReadOpenAIError(body)
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
