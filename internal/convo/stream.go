package convo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrCut is the error of a stream that ends before the vendor's last event. The readers return the part that came
// with it.
var ErrCut = errors.New("the stream ends before its last event")

// ErrUnended is ErrCut of a stream in which each answer that began says why it stopped. Some servers send nothing more.
var ErrUnended = fmt.Errorf("%w, and all answers had stopped", ErrCut)

// A StreamError is an error that a vendor reports within a stream, after a success status.
type StreamError struct{ Body jsontext.Value } // in the form of the vendor's errors

func (e *StreamError) Error() string { return "the vendor ends the stream with an error" }

// An Event is one server-sent event.
type Event struct {
	Name string // "": message
	Data []byte
}

// Events splits a body into server-sent events by the HTML standard (section 9.2.6): lines end with CR, LF or both,
// an empty line ends an event, and an event without an empty line at its end does not count.
func Events(body []byte) iter.Seq[Event] { return events(body, func([]byte) bool { return false }) }

// answerEvents returns the events of a model's answer that have data. Some servers leave out the empty line at the end: there, an event
// counts if its data is whole.
func answerEvents(body []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for e := range events(body, isWhole) {
			if len(bytes.TrimSpace(e.Data)) > 0 && !yield(e) {
				return
			}
		}
	}
}

const done = "[DONE]" // the data of OpenAI's last event

func isWhole(data []byte) bool {
	return string(data) == done || isObject(data)
}

func isObject(data []byte) bool {
	return bytes.HasPrefix(data, []byte("{")) && jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// events returns events, and one without an empty line at its end if its data counts.
func events(body []byte, counts func(data []byte) bool) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		body = bytes.TrimPrefix(body, []byte("\ufeff"))
		var e Event
		some := false
		for len(body) > 0 {
			end := bytes.IndexAny(body, "\r\n")
			if end < 0 {
				end = len(body)
			}
			line := body[:end]
			if bytes.HasPrefix(body[end:], []byte("\r\n")) {
				end++
			}
			body = body[min(end+1, len(body)):]
			if len(line) == 0 {
				if some && !yield(e) {
					return
				}
				e, some = Event{}, false
				continue
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(name) {
			case "event":
				e.Name = string(value)
			case "data":
				if some {
					e.Data = append(e.Data, '\n')
				}
				e.Data, some = append(e.Data, value...), true
			}
		}
		if some && counts(e.Data) {
			yield(e)
		}
	}
}

// maxIndex limits the number of a choice, block, call or candidate in a stream.
const maxIndex = 1 << 10

// numbered holds the parts of an answer by their numbers. It takes memory for the parts that arrived, whatever their
// numbers are.
type numbered[T any] map[int]*T

func (n *numbered[T]) at(number int) (*T, error) {
	if number < 0 || number > maxIndex {
		return nil, fmt.Errorf("number %d is out of range", number)
	}
	if *n == nil {
		*n = numbered[T]{}
	}
	part := (*n)[number]
	if part == nil {
		part = new(T)
		(*n)[number] = part
	}
	return part, nil
}

func (n numbered[T]) all() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for _, number := range slices.Sorted(maps.Keys(n)) {
			if !yield(number, n[number]) {
				return
			}
		}
	}
}

// notTheProtocol names the member that has the wrong type. It leaves out the library's own text, which is not stable.
func notTheProtocol(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.JSONPointer != "" {
		return fmt.Errorf("an event does not follow the vendor's protocol: %s has the wrong type", semantic.JSONPointer)
	}
	return errors.New("an event does not follow the vendor's protocol")
}

// ReadUsage reads the counts that a provider reported, in the words of any of them. It reports false if it knows none of the words.
func ReadUsage(reported jsontext.Value) (u Usage, known bool) {
	var there map[string]jsontext.Value
	if json.Unmarshal(reported, &there) != nil {
		return Usage{}, false
	}
	has := func(names ...string) bool {
		for _, name := range names {
			if v, is := there[name]; is && v.Kind() == '0' {
				return true
			}
		}
		return false
	}
	switch {
	case has("prompt_tokens", "completion_tokens"):
		u, known = readAs[ChatUsage](reported)
	case has("promptTokenCount", "candidatesTokenCount"):
		u, known = readAs[GenerateUsage](reported)
	case has("cache_read_input_tokens", "cache_creation_input_tokens"):
		u, known = readAs[MessagesUsage](reported)
	case has("cached_input_tokens"), has("prompt", "completion") && !has("input_tokens", "output_tokens"):
		u, known = readAs[otherCounts](reported)
	case has("input_tokens", "output_tokens"): // Anthropic's without a cache reads the same
		u, known = readAs[ResponsesUsage](reported)
	}
	if !u.adds() {
		return Usage{}, false
	}
	return u, known
}

func (u Usage) adds() bool {
	return u.Input >= 0 && u.Cached >= 0 && u.Output >= 0 && u.Cached <= u.Input && u.Input <= mostTokens && u.Output <= mostTokens
}

// Plausible reports whether the counts can be those of a call, its reasoning included.
func (u Usage) Plausible() bool { return u.adds() && u.Reasoning >= 0 && u.Reasoning <= u.Output }

// mostTokens is more than any call has. What claims more would only make sums overflow.
const mostTokens = 1 << 36

func readAs[W interface{ Counts() Usage }](reported jsontext.Value) (Usage, bool) {
	var w W
	if json.Unmarshal(reported, &w) != nil {
		return Usage{}, false
	}
	return w.Counts(), true
}

// Counts returns them in the words of this program.
func (u MessagesUsage) Counts() Usage {
	var kept struct {
		Minutes int64 `json:"ephemeral_5m_input_tokens"`
		Hour    int64 `json:"ephemeral_1h_input_tokens"`
	}
	told := read(u.Creation, &kept) && kept.Minutes >= 0 && kept.Hour >= 0 && kept.Minutes+kept.Hour == u.CacheCreation
	tier := word(u.Tier)
	return Usage{
		Input:       u.Input + u.CacheRead + u.CacheCreation, // Anthropic counts these apart
		Cached:      u.CacheRead,
		Output:      u.Output,
		Reasoning:   u.OutputDetails.Thinking,
		Written:     kept.Minutes,
		WrittenHour: kept.Hour,
		OtherPrice:  !told || tier != "" && tier != "standard",
	}
}

// read reads a value that may be missing into a type, and reports whether nothing else is there.
func read(value jsontext.Value, into any) bool {
	return value == nil || json.Unmarshal(value, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) == nil
}

// Counts returns them in the words of this program.
func (u ResponsesUsage) Counts() Usage {
	return u.InputDetails.OpenAIDetails.on(Usage{Input: u.Input, Cached: u.InputDetails.Cached, Output: u.Output, Reasoning: u.OutputDetails.Reasoning}, u.OutputDetails.Audio)
}

// OpenAIDetails are counts that are read only for the price. Another form of them hides nothing else.
type OpenAIDetails struct {
	CacheWrite jsontext.Value `json:"cache_write_tokens"`
	Audio      jsontext.Value `json:"audio_tokens"`
}

// on adds these counts, and audio that was written, to a usage.
func (d OpenAIDetails) on(u Usage, audioOut jsontext.Value) Usage {
	var in, out int64
	told := read(d.CacheWrite, &u.Written) && read(d.Audio, &in) && read(audioOut, &out) && u.Written >= 0 && u.Written <= u.Input-u.Cached
	u.OtherPrice = !told || in != 0 || out != 0
	return u
}

// otherCounts are the counts in session files of the Codex CLI, and in results of promptfoo.
type otherCounts struct {
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cached_input_tokens"`
	Output     int64 `json:"output_tokens"`
	Reasoning  int64 `json:"reasoning_output_tokens"`
	Prompt     int64 `json:"prompt"`
	Completion int64 `json:"completion"`
}

// Counts returns them in the words of this program.
func (u otherCounts) Counts() Usage {
	return Usage{Input: cmp.Or(u.Input, u.Prompt), Cached: u.Cached, Output: cmp.Or(u.Output, u.Completion), Reasoning: u.Reasoning}
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

// Counts returns them in the words of this program. It adds reasoning tokens to the output if a server counts them apart. Only the total shows that it does.
func (c ChatUsage) Counts() Usage {
	u := Usage{Input: c.Prompt, Cached: c.PromptDetails.Cached, Output: c.Completion, Reasoning: c.CompletionDetails.Reasoning}
	if c.Total == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning
	}
	return c.PromptDetails.OpenAIDetails.on(u, c.CompletionDetails.Audio)
}

// Counts returns them in the words of this program.
func (u GenerateUsage) Counts() Usage {
	return Usage{
		Input:      u.Prompt + u.ToolUse,
		Cached:     u.Cached,
		Output:     u.Candidates + u.Thoughts, // Google counts these apart
		Reasoning:  u.Thoughts,
		OtherPrice: !onlyText(u.PromptDetails) || !onlyText(u.CandidatesDetails),
	}
}

// onlyText reports whether Google counts no tokens of sound or pictures, which can have prices of their own.
func onlyText(details jsontext.Value) bool {
	var list []struct {
		Modality string `json:"modality"`
	}
	return read(details, &list) && !slices.ContainsFunc(list, func(d struct {
		Modality string `json:"modality"`
	}) bool {
		return d.Modality != "TEXT"
	})
}
