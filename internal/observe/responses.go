package observe

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm/wire"
)

// readResponses reads OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses.
func readResponses(r *reading) {
	_, id, _ := cutLast(pathOf(r.call.Path))
	if later := len(r.call.Request) == 0 && id != "responses"; !later { // later: it asks for an answer that was made in the background
		r.responsesRequest(r.request())
	}
	a, ok := answered(r, explainOpenAI, wire.ReadResponsesStream)
	if !ok {
		return
	}
	r.out.ProviderID = a.ID
	switch a.Status {
	case "completed", "cancelled":
	case "failed":
		r.out.Error = cmp.Or(short(colon(a.Error.Code, a.Error.Message)), "the response failed")
	case "incomplete":
		a.Status = cmp.Or(a.IncompleteDetails.Reason, a.Status)
	case "":
		if a.Error.Message != "" {
			r.out.Error = short(colon(a.Error.Code, a.Error.Message))
		} else if r.body() == whole {
			r.fail("answer: it has no status")
			return
		}
	default: // it goes on, or will begin
		a.Status, r.out.Complete = "", false
	}
	t, said := turn{role: "assistant"}, answer{finish: a.Status}
	for i := range a.Output {
		r.item(&t, &a.Output[i], &said.thought)
		if id := a.Output[i].ID; id != "" && len(r.out.Items) < maxItems {
			r.out.Items = append(r.out.Items, short(id))
		}
	}
	said.said = t.end()
	r.answers = append(r.answers, said)
}

// pathOf removes a query.
func pathOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return strings.TrimSuffix(path, "/")
}

func (r *reading) responsesRequest(o object) {
	for _, part := range []struct{ member, role string }{{"instructions", "system"}, {"input", "user"}} {
		v, there := o[part.member]
		if !there {
			continue
		}
		if v.Kind() == jsontext.KindString {
			r.prompt = append(r.prompt, message{Role: part.role, Content: content{textPart(o.word(part.member))}})
			continue
		}
		t := turn{role: part.role}
		items := conversation[[]wire.ResponsesItem](r, o, part.member)
		for i := range items {
			r.item(&t, &items[i], nil)
		}
		r.prompt = append(r.prompt, t.end()...)
	}
}

// item reads an item of the input or, with a list for the thinking, of the output. Each is a message of its own.
func (r *reading) item(t *turn, i *wire.ResponsesItem, thinking *[]string) {
	t.open = false
	o := objectOf(i.Raw)
	switch {
	case i.Type == "" || i.Type == "message":
		m := message{Role: cmp.Or(i.Role, t.role), Content: r.parts(i.Content)}
		if thinking != nil && m.Role != t.role {
			r.problem("answer: a message has the role %q: read as the model's", m.Role)
			m.Role = t.role
		}
		t.said = append(t.said, m)
	case i.Type == "reasoning":
		if thinking != nil {
			*thinking = append(*thinking, reasoningIn(i)...)
		}
	case i.Type == "compaction", i.Type == "item_reference", i.Type == "additional_tools":
	case strings.HasSuffix(i.Type, "_output"):
		returned := i.Output
		for _, other := range []string{"result", "tools"} {
			if !present(returned) {
				returned = o[other]
			}
		}
		id := cmp.Or(i.CallID, i.ID)
		t.result(message{ToolCallID: cmp.Or(r.called[id], id), Content: r.outputOf(returned)})
	case strings.HasSuffix(i.Type, "_call"), i.Type == "program":
		r.itemCall(t, i, o)
	default:
		whole := written(i)
		if i.Content.Text == "" && i.Content.Parts == nil {
			delete(whole, "content")
		}
		t.said = append(t.said, message{Role: t.role, Content: content{unknown(i.Type, whole.value())}})
	}
}

// reasoningIn returns the texts of a reasoning item: its summary and, from some servers, all of it.
func reasoningIn(i *wire.ResponsesItem) (texts []string) {
	for _, p := range slices.Concat(i.Summary, i.Content.Parts) {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return texts
}

// itemCall reads a call. A function has a name; the vendor's own tools are named for their type, such as web_search, and
// have their result beside the call.
func (r *reading) itemCall(t *turn, i *wire.ResponsesItem, o object) {
	id, name := cmp.Or(i.CallID, i.ID), cmp.Or(i.Name, strings.TrimSuffix(i.Type, "_call"))
	if i.CallID != "" && i.ID != "" {
		if r.called == nil {
			r.called = map[string]string{}
		}
		r.called[i.ID], r.called[i.CallID] = cmp.Or(r.called[i.ID], i.CallID), i.CallID
	}
	said := message{Role: "assistant"}
	if i.Type == "custom_tool_call" {
		said.ToolCalls = []call{{ID: id, Type: "custom", Custom: wire.ChatCustom{Name: name, Input: i.Input}}}
	} else {
		arguments := string(i.Arguments)
		for _, other := range []string{"action", "actions", "queries", "code", "operation"} {
			if arguments == "" && len(o[other]) > 0 {
				arguments = cmp.Or(o.word(other), text(o[other]))
			}
		}
		said.ToolCalls = []call{function(id, name, arguments)}
	}
	t.said = append(t.said, said)
	if i.Type == "image_generation_call" {
		if data := o.word("result"); data != "" {
			t.result(message{ToolCallID: id, Content: content{inline("image_url", "", "", data)}})
		}
		return
	}
	failed := present(o["error"])
	for _, v := range []jsontext.Value{i.Output, o["outputs"], o["results"], o["result"], o["error"]} {
		if present(v) {
			t.result(message{ToolCallID: id, Content: r.outputOf(v), IsError: failed})
			return
		}
	}
}

func present(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != jsontext.KindNull }

// outputOf reads what a tool returned: a text, parts, or another value.
func (r *reading) outputOf(v jsontext.Value) content {
	var c wire.Content
	if !present(v) {
		return nil
	}
	plain := func(p wire.Part) bool {
		return strings.HasPrefix(p.Type, "input_") || strings.HasSuffix(p.Type, "text")
	}
	if json.Unmarshal(v, &c, lenient) != nil || slices.ContainsFunc(c.Parts, func(p wire.Part) bool { return !plain(p) }) {
		return content{textPart(text(v))}
	}
	return r.parts(c)
}
