package observe

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm/wire"
)

// readMessages reads Anthropic's Messages: https://docs.claude.com/en/api/messages.
func readMessages(r *reading) {
	if o := r.request(); o != nil {
		system := withoutLabel(member[wire.Blocks](r, o, "request", "system"))
		r.prompt = append(r.prompt, r.blocks("system", system, nil)...)
		for _, m := range conversation[[]wire.MessagesTurn](r, o, "messages") {
			r.prompt = append(r.prompt, r.blocks(m.Role, m.Content, nil)...)
		}
	}
	a, ok := answered(r, explainAnthropic, wire.ReadMessagesStream)
	if !ok {
		return
	}
	r.out.ProviderID = a.ID
	if a.Type == "error" {
		r.out.Error = cmp.Or(short(explainAnthropic(r.call.Response)), "an error with a status of success")
		return
	}
	if a.Type != "message" && r.body() == whole {
		r.fail("answer: it is not a message")
		return
	}
	said := answer{finish: a.StopReason}
	said.said = r.blocks("assistant", a.Content, &said.thought)
	r.answers = append(r.answers, said)
}

// labelName begins a line that Claude Code puts before its instructions. It is for the provider's bookkeeping, another in each request: no part
// of the conversation, which it would make another each time.
const labelName = "x-anthropic-billing-header"

// aLabel is that line as Claude Code writes it: cc_version=2.1; cch=1a2b3;. Anything else with its beginning is instructions, which stay in the prompt.
var aLabel = regexp.MustCompile(`^ ?(?:[a-z][a-z0-9_]*=[!-:<-~]*;(?: |$))+$`)

// longestLabel bounds the line in bytes.
const longestLabel = 512

// withoutLabel returns the blocks without that line.
func withoutLabel(blocks wire.Blocks) wire.Blocks {
	if len(blocks) == 0 || blocks[0].Type != "text" {
		return blocks
	}
	said, is := strings.CutPrefix(blocks[0].Text, labelName+":")
	if !is {
		return blocks
	}
	line, rest, _ := strings.Cut(said, "\n")
	if len(labelName)+1+len(line) >= longestLabel || !aLabel.MatchString(line) {
		return blocks
	}
	if rest == "" {
		return blocks[1:]
	}
	blocks[0].Text = rest
	return blocks
}

func explainAnthropic(body []byte) string {
	said, ok := wire.ReadAnthropicError(body)
	if !ok {
		return ""
	}
	return colon(said.Type, said.Message)
}

// blocks reads the content of a turn. It appends the thinking to the list, if there is one.
func (r *reading) blocks(role string, blocks wire.Blocks, thinking *[]string) []message {
	t := turn{role: role}
	for i := range blocks {
		b := &blocks[i]
		switch {
		case b.Type == "thinking" && thinking != nil:
			*thinking = append(*thinking, b.Thinking)
		case b.Type == "thinking", b.Type == "redacted_thinking", b.Type == "compaction":
		case strings.HasSuffix(b.Type, "tool_use"):
			t.call(function(b.ID, b.Name, b.Partial+text(b.Input)))
		case strings.HasSuffix(b.Type, "tool_result"):
			failed := b.IsError || strings.HasSuffix(objectOf(b.Content).word("type"), "_error")
			t.result(message{ToolCallID: b.ToolUseID, Content: r.resultOf(b.Content), IsError: failed})
		case b.Type == "text" && b.Text == "" && role == "assistant": // a block that has only started
		default:
			t.say(r.block(b))
		}
	}
	return t.end()
}

// block reads a block that is no call and no result.
func (r *reading) block(b *wire.MessagesBlock) part {
	o := objectOf(b.Raw)
	switch b.Type {
	case "text":
		return textPart(b.Text)
	case "image":
		return r.source("image_url", "", o["source"])
	case "document":
		return r.source("file", short(o.word("title")), o["source"])
	case "container_upload":
		return file("file", "", o.word("file_id"))
	}
	return unknown(b.Type, written(b).value())
}

// source reads where a picture or a document comes from.
func (r *reading) source(kind, name string, v jsontext.Value) part {
	o := objectOf(v)
	switch o.word("type") {
	case "text":
		return textPart(o.word("data"))
	case "base64":
		return inline(kind, name, o.word("media_type"), o.word("data"))
	case "url":
		return at(kind, name, o.word("url"))
	case "file":
		return file(kind, name, o.word("file_id"))
	}
	return unknown(kind, v)
}

// plainBlocks are the blocks whose content a message can have. What Anthropic's own tools return has other forms.
var plainBlocks = []string{"text", "image", "document"}

// resultOf reads what a tool returned: a text, blocks, or another value.
func (r *reading) resultOf(v jsontext.Value) (list content) {
	var blocks wire.Blocks
	if len(v) == 0 || v.Kind() == jsontext.KindNull {
		return nil
	}
	if json.Unmarshal(v, &blocks, lenient) != nil || slices.ContainsFunc(blocks, func(b wire.MessagesBlock) bool { return !slices.Contains(plainBlocks, b.Type) }) {
		return content{textPart(text(v))}
	}
	for i := range blocks {
		list = append(list, r.block(&blocks[i]))
	}
	return list
}
