package docket

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/convo"
	"jurat/internal/llm"
	"jurat/internal/subject"
)

// A RecordedAct is one record of a chain: what a recorder saw, or an event of its own.
type RecordedAct struct {
	Record    string              `json:"record"`
	Digest    evidence.Digest     `json:"digest"`
	Action    evidence.ActionType `json:"action"`
	Time      string              `json:"time"` // the record's own, by the recorder's clock
	Recorder  string              `json:"recorder"`
	RequestID string              `json:"request_id,omitzero"`

	Event *observed.Event `json:"event,omitzero"` // of a recorder_event whose response is one

	// Of what was seen:
	Observed     *evidence.Observed `json:"observed,omitzero"`
	Model        string             `json:"model,omitzero"`         // as asked for
	ModelVersion string             `json:"model_version,omitzero"` // that answered, by the provider's word
	Parameters   jsontext.Value     `json:"parameters,omitzero"`
	Tokens       *Tokens            `json:"tokens,omitzero"`      // nil: none were reported, or in words that nobody knows
	Cost         *int64             `json:"cost_micros,omitzero"` // millionths of a US dollar, by the price table; nil: no price is known
	Description  string             `json:"description"`          // what the jury is told of the record
	Messages     []RecordedMessage  `json:"messages"`             // that were not shown before
	Withheld     []string           `json:"withheld,omitempty"`   // members that were sealed apart and are not here: erased, or held back
	Erased       []string           `json:"erased,omitempty"`     // of these, those that the operator erased, as far as that was looked up

	Number       int64      `json:"number,omitzero"`       // in the chain, from 1; 0: in another one
	Repeats      int        `json:"repeats,omitzero"`      // how many messages of its prompt were shown before
	Again        int        `json:"again,omitzero"`        // its answer is that of the message with this number again; 1 where messages have none
	Lacks        []PartLack `json:"lacks,omitempty"`       // bytes that cannot be read
	Error        string     `json:"error,omitzero"`        // the provider's
	Problem      string     `json:"problem,omitzero"`      // what of the bytes could not be read as the protocol has it
	Finish       string     `json:"finish,omitzero"`       // why the model stopped, in the provider's word
	Alternatives int        `json:"alternatives,omitzero"` // further answers that the agent got
	Fault        string     `json:"fault,omitzero"`        // why the record cannot be read
}

// Tokens are counts that the provider reported.
type Tokens struct {
	Input  int64 `json:"input"`           // those from a cache included
	Cached int64 `json:"cached,omitzero"` // of these, from a cache
	Output int64 `json:"output"`          // reasoning included
}

// A RecordedMessage is one message of a conversation.
type RecordedMessage struct {
	Number     int            `json:"number"` // in the chain, from 1; a trial's findings name messages by it. 0: not known in a late part of a long chain
	Role       subject.Role   `json:"role"`
	Name       string         `json:"name,omitzero"`
	Text       string         `json:"text"`
	Calls      []RecordedCall `json:"tool_calls,omitempty"`
	AnswersTo  string         `json:"tool_call_id,omitzero"` // of a tool's answer
	Tool       string         `json:"tool,omitzero"`         // of a tool's answer: its name
	CallNumber int            `json:"call,omitzero"`         // of a tool's answer: the number of the message with the call
	CallPlace  int            `json:"call_place,omitzero"`   // of a tool's answer: which call of that message, from 1
	Failed     bool           `json:"failed,omitzero"`
	Part       string         `json:"part"` // the member of the record that it is from
}

// A RecordedCall is a use of a tool.
type RecordedCall struct {
	ID        string `json:"id,omitzero"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Result    int    `json:"result,omitzero"` // the number of the message with its result; 0: none is known
}

// actOf is a record without its messages.
func actOf(r *evidence.Record, prices llm.Prices) RecordedAct {
	p := &r.Payload
	a := RecordedAct{Record: p.RecordID, Digest: r.Digest, Action: p.ActionType, Time: p.Timestamp, Recorder: p.Actor(), RequestID: p.RequestID,
		Observed: p.Observed, Model: p.Model, ModelVersion: p.ModelVersion, Parameters: p.Parameters, Messages: []RecordedMessage{}, Withheld: withheld(r)}
	if p.ActionType == evidence.RecorderEvent {
		a.Event, _ = observed.ParseEvent(p.Response) // a response that is no event is shown as it is
	}
	if p.Observed == nil {
		return a
	}
	used, known := convo.ReadUsage(p.Observed.Usage)
	if !known {
		return a
	}
	a.Tokens = &Tokens{used.Input, used.Cached, used.Output}
	if price, known := prices.For(withoutVendor(p.Model), withoutVendor(p.ModelVersion)); known {
		if cost, priced := price.Cost(used); priced {
			a.Cost = &cost
		}
	}
	return a
}

// withoutVendor removes the vendor that programs put before the name of a model: openai:gpt-4o, openai/gpt-4o. Google's own names begin with
// models/. Behind any other name, another seller may ask another price.
func withoutVendor(model string) string {
	if i := strings.IndexAny(model, ":/"); i > 0 && slices.Contains([]string{"openai", "anthropic", "google", "gemini", "models"}, model[:i]) {
		return model[i+1:]
	}
	return model
}

// withheld lists the members of a record that are sealed apart and not disclosed.
func withheld(r *evidence.Record) (list []string) {
	for _, pointer := range r.Payload.SealedApart {
		if !slices.ContainsFunc(r.Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == pointer }) {
			list = append(list, pointer)
		}
	}
	return list
}

func messageOf(m *subject.Message) RecordedMessage {
	out := RecordedMessage{Number: m.Number, Role: m.Role, Name: m.Name, Text: m.Text, AnswersTo: m.ToolCallID, Tool: m.ToolName, CallNumber: m.CallNumber, CallPlace: m.CallPlace, Failed: m.Failed, Part: m.Part}
	for _, call := range m.ToolCalls {
		out.Calls = append(out.Calls, RecordedCall{call.ID, call.Name, call.Arguments, call.Result})
	}
	return out
}
