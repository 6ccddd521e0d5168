package observe

import (
	"cmp"

	"jurat/internal/convo"
)

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
