package subject

import (
	"cmp"
	"fmt"

	"jurat/internal/convo"
)

// readPromptfoo reads {"prompt", "output"}, or an array of them.
func (c *Case) readPromptfoo(r *convo.Reader, n *convo.Node) {
	turn := func(n *convo.Node) {
		prompt, output := n.Get("prompt"), n.Get("output")
		if n.Kind != '{' || prompt.Absent() || output.Absent() {
			r.Fail(n, "expected a turn {\"prompt\": \"…\", \"output\": \"…\"}")
			return
		}
		c.readPrompt(prompt)
		m := Message{Role: Assistant, ToolCalls: callsOnly(output)}
		if m.ToolCalls == nil {
			m.Text = convo.Plain(output)
		}
		c.say(m, output)
	}
	if n.Kind != '[' {
		turn(n)
		return
	}
	r.Each(n, convo.Thing{Name: "a turn {prompt, output} (an object)", Example: `{"prompt": "Hello", "output": "Hello!"}`}, turn)
}

// readPrompt reads a prompt: chat messages, as JSON or as JSON in a string, or a text of the user.
func (c *Case) readPrompt(n *convo.Node) {
	text := convo.Plain(n)
	if inner, err := convo.Parse(n.File(), []byte(text)); err == nil && inner.Kind == '[' {
		said := &Case{}
		r := said.reader()
		if said.readConversation(r, inner); r.Err() == nil {
			for _, m := range said.Messages {
				c.say(m, n)
			}
			return
		}
	}
	c.say(Message{Role: User, Text: text}, n)
}

// callsOnly reads an output that is a list of calls; nil: it is none.
func callsOnly(n *convo.Node) (calls []ToolCall) {
	r := new(convo.Reader)
	if n.Kind != '[' {
		return nil
	}
	for _, item := range n.Members {
		call := r.ChatCall(item)
		if item.Get("function") == nil || r.Err() != nil {
			return nil
		}
		calls = append(calls, callOf(&call))
	}
	return calls
}

// promptfoo reads results of promptfoo: {"results": {"results": [{"prompt": {"raw"}, "response": {"output"}, "vars",
// "success", "score", …}]}}. See https://www.promptfoo.dev/docs/configuration/reference/#evaluateresult. The evidence of a
// result is {"prompt", "output"}, or its messages if it has some. Variables, checks and scores stay outside the
// evidence, because variables may hold what is expected.
func (t *reader) promptfoo(results *convo.Node) error {
	all, err := t.look(results)
	if results.Kind == '{' {
		if err != nil || !all.Has("results", '[') {
			return results.Errorf("expected promptfoo's {\"results\": {\"results\": [{\"prompt\", \"response\", …}]}}")
		}
		all, err = t.look(all.Get("results"))
	}
	if err != nil {
		return err
	}
	for i, at := range all.Members {
		if err := t.more(at, "results: split the file"); err != nil {
			return err
		}
		t.promptfooResult(at, i)
	}
	return nil
}

func (t *reader) promptfooResult(at *convo.Node, i int) {
	from := &Source{Kind: "promptfoo", ID: fmt.Sprint(i + 1)}
	result, err := t.look(at)
	if err != nil {
		t.wrong(from.String(), at.Errorf("%v", err))
		return
	}
	from.ID = cmp.Or(result.Brief("id"), from.ID)
	response := t.inside(result, "response")
	if list := t.turns(response, result); list != nil {
		if err := t.room(list); err != nil {
			t.wrong(from.String(), err)
			return
		}
		t.conversation(from.String(), list, from)
		return
	}
	n, err := t.turn(at, cmp.Or(t.inside(result, "prompt").Get("raw"), result.Get("prompt")), response.Get("output"), result.Brief("error"))
	if err != nil {
		t.wrong(from.String(), err)
		return
	}
	t.build(from.String(), n, PromptfooForm, from)
}

// turns returns the messages of a result that has several; nil: it has none.
func (t *reader) turns(of ...*convo.Node) *convo.Node {
	for _, n := range of {
		metadata := t.inside(n, "metadata")
		for _, name := range []string{"messages", "redteamHistory"} {
			if list := metadata.Get(name); list != nil && list.Kind == '[' && list.End-list.Offset > int64(len("[]")) {
				return list
			}
		}
	}
	return nil
}

// turn reads a prompt and its output.
func (t *reader) turn(at, prompt, output *convo.Node, failed string) (*convo.Node, error) {
	switch {
	case prompt != nil && !output.Absent():
	case failed != "":
		return nil, at.Errorf("the agent gave no output: %q: expected one, for example \"response\": {\"output\": \"Hello\"}", failed)
	default:
		return nil, at.Errorf("a result without a prompt and an output: expected {\"prompt\": {\"raw\": \"…\"}, \"response\": {\"output\": \"…\"}}")
	}
	if err := t.room(output); err != nil {
		return nil, err
	}
	question, err := t.file.Parse(prompt.Offset, prompt.End, at.Pointer())
	if err != nil {
		return nil, err
	}
	answer, err := t.file.Parse(output.Offset, output.End, at.Pointer())
	if err != nil {
		return nil, err
	}
	return t.file.Object(at, convo.Member{Name: "prompt", Value: question}, convo.Member{Name: "output", Value: answer}), nil
}

// inside finds what is in a member that is an object; nil: it is none.
func (t *reader) inside(n *convo.Node, name string) *convo.Node {
	if !n.Has(name, '{') {
		return nil
	}
	inner, err := t.look(n.Get(name))
	if err != nil {
		return nil
	}
	return inner
}
