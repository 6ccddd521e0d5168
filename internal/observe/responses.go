package observe

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/convo"
)

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

// pathOf removes a query.
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
