package convo

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// A ChatToolCall is the model's request to call a function, or a tool that takes a free text.
type ChatToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // function or custom
	Function ChatFunction `json:"function,omitzero"`
	Custom   ChatCustom   `json:"custom,omitzero"`
}

// A ChatFunction is a function and what it is called with.
type ChatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON as the model wrote it; it may be invalid
}

// A ChatCustom is a tool that takes a free text, and that text.
type ChatCustom struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// An OpenAIError is an error of OpenAI, or of a server that speaks its protocol.
type OpenAIError struct {
	Code    string // such as rate_limit_exceeded; "" if a server repeats the HTTP status here
	Type    string
	Message string
}

// ErrorBody is the object of an error's body, or the one in an array of it, as Google's server sends it; nil: there is none.
func ErrorBody(body []byte) *Node {
	if !jsontext.Value(body).IsValid() {
		return nil
	}
	root, err := ReadLenient(body)
	if list := root.List(); len(list) > 0 {
		root = list[0]
	}
	if err != nil || root.Kind != '{' {
		return nil
	}
	return root
}

// ReadOpenAIError reads an error's body. It reports false for a body that is no object. Some servers have an envelope, and a code is a word or a number.
func ReadOpenAIError(body []byte) (OpenAIError, bool) {
	n := ErrorBody(body)
	if n.Has("error", '{') {
		n = n.Get("error")
	}
	return OpenAIError{n.Word("code"), n.Word("type"), cmp.Or(n.Word("message"), n.Word("error"), n.Word("detail"))}, n != nil
}

// ReadUsage reads the counts that a provider reported, in the words of any of them. It reports false if it knows none of the words.
func ReadUsage(reported jsontext.Value) (u Usage, known bool) {
	if reported.Kind() != '{' {
		return Usage{}, false
	}
	root := ErrorBody(reported)
	c := &counts{Node: root}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return root.Has(name, '0') })
	}
	switch {
	case has("prompt_tokens", "completion_tokens"):
		u = ChatCounts(c)
	case has("promptTokenCount", "candidatesTokenCount"):
		u = GenerateCounts(c)
	case has("cache_read_input_tokens", "cache_creation_input_tokens"):
		u = MessagesCounts(c)
	case has("cached_input_tokens"), has("prompt", "completion") && !has("input_tokens", "output_tokens"):
		u = otherCounts(c)
	case has("input_tokens", "output_tokens"): // Anthropic's without a cache reads the same
		u = ResponsesCounts(c)
	default:
		return Usage{}, false
	}
	if c.wrong || !u.adds() {
		return Usage{}, false
	}
	return u, true
}

// Counted is what a call consumed by the provider's count. It is zero, which stands for unknown, for a count that is missing, is not made of whole numbers, or
// contradicts itself.
func Counted(reported *Node, words Counting) Usage {
	c := &counts{Node: reported}
	if u := words(c); !c.wrong && u.adds() && u.Reasoning >= 0 && u.Reasoning <= u.Output {
		return u
	}
	return Usage{}
}

func (u Usage) adds() bool {
	return u.Input >= 0 && u.Cached >= 0 && u.Output >= 0 && u.Cached <= u.Input && u.Input <= mostTokens && u.Output <= mostTokens
}

// mostTokens is more than any call has. What claims more would only make sums overflow.
const mostTokens = 1 << 36

// A Counting reads counts in the words of a provider.
type Counting func(*counts) Usage

// counts are what a provider reports.
type counts struct {
	*Node
	wrong bool // a count is no whole number
	other bool // one that is read only for the price is none, which hides nothing else
}

// of is a count. What is missing is none.
func (c *counts) of(path ...string) int64 {
	n := c.Node
	for _, name := range path {
		c.wrong = c.wrong || !n.Absent() && n.Kind != '{'
		n = n.Get(name)
	}
	if n.Absent() {
		return 0
	}
	i, err := strconv.ParseInt(n.Text, 10, 64)
	c.wrong = c.wrong || n.Kind != '0' || err != nil
	return i
}

// price is a count that is read only for the price.
func (c *counts) price(path ...string) int64 {
	alone := &counts{Node: c.Node}
	i := alone.of(path...)
	c.other = c.other || alone.wrong || i < 0
	return i
}

// ChatCounts and ResponsesCounts are OpenAI's.
var (
	ChatCounts      = openAICounts("prompt_tokens", "completion_tokens")
	ResponsesCounts = openAICounts("input_tokens", "output_tokens")
)

// openAICounts adds reasoning tokens to the output if a server of Chat Completions counts them apart. Only the total shows that it does.
func openAICounts(in, out string) Counting {
	from, to := in+"_details", out+"_details"
	return func(c *counts) Usage {
		u := Usage{Input: c.of(in), Cached: c.of(from, "cached_tokens"), Output: c.of(out), Reasoning: c.of(to, "reasoning_tokens")}
		if in == "prompt_tokens" && c.of("total_tokens") == u.Input+u.Output+u.Reasoning {
			u.Output += u.Reasoning
		}
		u.Written = c.price(from, "cache_write_tokens")
		sound := c.price(from, "audio_tokens") + c.price(to, "audio_tokens")
		u.OtherPrice = c.other || sound != 0 || u.Written > u.Input-u.Cached
		return u
	}
}

// MessagesCounts are Anthropic's: tokens read from a cache, those written to it, and the rest of the input, each apart.
func MessagesCounts(c *counts) Usage {
	read, written := c.of("cache_read_input_tokens"), c.of("cache_creation_input_tokens")
	u := Usage{Input: c.of("input_tokens") + read + written, Output: c.of("output_tokens"), Reasoning: c.of("output_tokens_details", "thinking_tokens"),
		Cached: read, Written: c.price("cache_creation", "ephemeral_5m_input_tokens"), WrittenHour: c.price("cache_creation", "ephemeral_1h_input_tokens")}
	tier := c.Word("service_tier")
	u.OtherPrice = c.other || u.Written+u.WrittenHour != written || tier != "" && tier != "standard"
	return u
}

// GenerateCounts are Google's: thoughts apart from the candidates, results of tools apart from the prompt.
func GenerateCounts(c *counts) Usage {
	thoughts := c.of("thoughtsTokenCount")
	return Usage{Input: c.of("promptTokenCount") + c.of("toolUsePromptTokenCount"), Cached: c.of("cachedContentTokenCount"), Reasoning: thoughts,
		Output: c.of("candidatesTokenCount") + thoughts, OtherPrice: !c.onlyText("promptTokensDetails") || !c.onlyText("candidatesTokensDetails")}
}

// onlyText reports whether Google counts no tokens of sound or pictures, which can have prices of their own.
func (c *counts) onlyText(name string) bool {
	details := c.Get(name)
	return details.Absent() || details.Kind == '[' && !slices.ContainsFunc(details.Members, func(n *Node) bool { return n.Word("modality") != "TEXT" })
}

// otherCounts are those in session files of the Codex CLI, and in results of promptfoo.
func otherCounts(c *counts) Usage {
	return Usage{Input: cmp.Or(c.of("input_tokens"), c.of("prompt")), Cached: c.of("cached_input_tokens"),
		Output: cmp.Or(c.of("output_tokens"), c.of("completion")), Reasoning: c.of("reasoning_output_tokens")}
}

// Usage is what a call consumed, by the provider's count.
type Usage struct {
	Input     int64 // tokens read, cached ones included
	Cached    int64 // of these, tokens read from the provider's cache
	Output    int64 // tokens written, reasoning included
	Reasoning int64 // of these, tokens that the provider does not show

	Written, WrittenHour int64 `json:",omitzero"` // of Input, tokens written to the provider's cache, for minutes or for an hour
	OtherPrice           bool  `json:",omitzero"` // some tokens have another price than the model's text at the standard tier, or it cannot be told
}
