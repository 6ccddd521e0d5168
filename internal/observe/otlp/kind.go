package otlp

import (
	"cmp"
	"slices"
	"strings"
)

// A Kind says of what act a span tells.
type Kind string

// The kinds of acts. Of other spans "" tells that they are none.
const (
	Inference Kind = "inference" // a call of a model
	Tool      Kind = "tool"      // the use of a tool
	Agent     Kind = "agent"     // the whole of what an agent was asked and answered, whose parts other spans tell
)

// kinds are what the conventions call acts.
var kinds = map[string]map[string]Kind{
	"gen_ai.operation.name":   {"chat": Inference, "text_completion": Inference, "generate_content": Inference, "execute_tool": Tool, "invoke_agent": Agent, "invoke_workflow": Agent, "embeddings": "", "create_agent": "", "retrieval": ""},
	"openinference.span.kind": {"LLM": Inference, "TOOL": Tool, "AGENT": Agent, "CHAIN": "", "EMBEDDING": "", "RETRIEVER": "", "RERANKER": "", "GUARDRAIL": "", "EVALUATOR": "", "PROMPT": ""},
}

// conventions are the attributes of kinds, in the order in which they count.
var conventions = []string{"gen_ai.operation.name", "openinference.span.kind"}

// signs are attributes that only calls of models have, in spans that name no kind, or one that is not known.
var signs = []string{"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.request.model", "llm.input_messages.0.message.role", "llm.model_name"}

// KindOf returns the kind of the act that a span with these attributes tells of; "": of none.
func KindOf(a Attributes) Kind {
	none := false
	for _, name := range conventions {
		if kind, known := kinds[name][a.Text(name)]; kind != "" {
			return kind
		} else if known {
			none = true
		}
	}
	if !none && slices.ContainsFunc(signs, func(name string) bool { return a.Named(name) != nil }) {
		return Inference
	}
	return ""
}

// The events of GenAI that have content.
const (
	Details    = "gen_ai.client.inference.operation.details"
	Choice     = "gen_ai.choice"
	oldMessage = ".message"
)

// RoleOf returns who speaks in an event that has one message of a prompt, such as gen_ai.user.message; "": it has none.
func RoleOf(event string) string {
	role, is := strings.CutSuffix(event, oldMessage)
	role, its := strings.CutPrefix(role, "gen_ai.")
	if is && its && slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, role) {
		return role
	}
	return ""
}

// HasContent reports whether an event of this name has content of an act.
func HasContent(event string) bool {
	return event == Details || event == Choice || RoleOf(event) != ""
}

// EventOf returns the name of an event; "": it is an entry of a log.
func (l *LogRecord) EventOf() string { return cmp.Or(l.EventName, l.Attributes.Text("event.name")) }

// chains are the attributes by which a sender names the conversation, in the order in which they count.
var chains = []string{"gen_ai.conversation.id", "session.id"}

// Chain is the attribute that names the chain of a span's record.
const Chain = "jurat.chain"

// ConversationOf returns what a sender calls the conversation; "": nothing.
func ConversationOf(a Attributes) string {
	for _, name := range chains {
		if text := a.Text(name); text != "" {
			return text
		}
	}
	return ""
}
