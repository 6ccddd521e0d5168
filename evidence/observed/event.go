package observed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// EventName says what happened to a recorder.
type EventName string

// The events of recorders.
const (
	Start                 EventName = "start"
	Stop                  EventName = "stop"
	Heartbeat             EventName = "heartbeat"
	ModeChanged           EventName = "mode"
	Configuration         EventName = "configuration"
	Gap                   EventName = "gap"
	LostInCrash           EventName = "lost_in_crash"
	ToolDefinitionChanged EventName = "tool_definition_changed"
)

// Mode says what a recorder does with what it cannot record.
type Mode string

// The modes.
const (
	Closed  Mode = "closed" // nothing passes without a record
	Passing Mode = "open"   // everything passes, and what was missed is counted
)

// An Event is the response of a recorder_event. Which fields it has depends on the Event; see docs/format.md, "What a recorder saw". Its
// fields are in canonical order.
type Event struct {
	After         evidence.Digest  `json:"after,omitzero"`
	Agent         string           `json:"agent,omitzero"`
	Before        evidence.Digest  `json:"before,omitzero"`
	Began         string           `json:"began,omitzero"`
	Calls         *int64           `json:"calls,omitzero"`
	Configuration evidence.Digest  `json:"configuration,omitzero"`
	Event         EventName        `json:"event"`
	Missed        []Missed         `json:"missed,omitempty"`
	Mode          Mode             `json:"mode,omitzero"`
	Protocol      string           `json:"protocol,omitzero"`
	Reason        string           `json:"reason,omitzero"`
	RequestSHA256 evidence.Digest  `json:"request_sha256,omitzero"`
	Server        string           `json:"server,omitzero"`
	Since         string           `json:"since,omitzero"`
	Tool          string           `json:"tool,omitzero"`
	Vantage       evidence.Vantage `json:"vantage,omitzero"`
	Version       string           `json:"version,omitzero"`
}

// Missed counts the calls of an agent that passed without a record in one minute.
type Missed struct {
	Agent  string `json:"agent"`
	Calls  int64  `json:"calls"`
	Minute string `json:"minute"` // when it begins
}

// maxMissed is how many counts one gap has. More go into another.
const maxMissed = 1000

// members lists the members of each event, besides event.
var members = map[EventName][]string{
	Start:                 {"configuration", "mode", "vantage", "version"},
	Stop:                  {"reason"},
	Heartbeat:             {"calls", "since"},
	ModeChanged:           {"mode", "reason"},
	Configuration:         {"configuration", "reason"},
	Gap:                   {"missed", "reason"},
	LostInCrash:           {"agent", "began", "protocol", "request_sha256"},
	ToolDefinitionChanged: {"after", "agent", "before", "server", "tool"},
}

// optional lists members that an event has all of or none: recorders before them did not state these.
var optional = map[EventName][]string{Stop: {"calls", "since"}}

// ParseEvent reads the response of a recorder_event, in canonical form. It is strict: an event has exactly its members.
func ParseEvent(response jsontext.Value) (*Event, error) {
	e := new(Event)
	if err := evidence.DecodeForm(response, e); err != nil {
		return nil, err
	}
	return e, e.check(response)
}

// Payload makes the payload of an event. Its errors are those of ParseEvent.
func (e *Event) Payload(recorder string, timestamp string, chainID string) (evidence.Payload, error) {
	response, err := json.Marshal(e)
	if err != nil {
		return evidence.Payload{}, err
	}
	if _, err := ParseEvent(response); err != nil {
		return evidence.Payload{}, err
	}
	return evidence.Payload{ActionType: evidence.RecorderEvent, AgentID: recorder, Timestamp: timestamp, ChainID: chainID, Response: response}, nil
}

func (e *Event) check(response jsontext.Value) error {
	wanted, known := members[e.Event]
	if !known {
		return fmt.Errorf("event: unknown value %q", evidence.Abbreviate(string(e.Event)))
	}
	var there map[string]jsontext.Value
	if err := json.Unmarshal(response, &there); err != nil {
		return evidence.Steady(err)
	}
	delete(there, "event")
	if more := optional[e.Event]; slices.ContainsFunc(more, func(name string) bool { _, has := there[name]; return has }) {
		wanted = slices.Concat(more, wanted)
	}
	for _, name := range wanted {
		if _, has := there[name]; !has {
			return fmt.Errorf("%s: missing, and required for %s", name, e.Event)
		}
		if err := e.checkMember(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		delete(there, name)
	}
	if len(there) > 0 {
		names := make([]string, 0, len(there))
		for name := range there {
			names = append(names, name)
		}
		return fmt.Errorf("%s: not allowed in %s", slices.Min(names), e.Event)
	}
	return nil
}

func (e *Event) checkMember(name string) error {
	names := map[string]string{"agent": e.Agent, "protocol": e.Protocol, "reason": e.Reason, "server": e.Server, "tool": e.Tool, "version": e.Version}
	if text, is := names[name]; is {
		return evidence.CheckName(text)
	}
	switch name {
	case "began", "since":
		_, err := evidence.ParseTime(map[string]string{"began": e.Began, "since": e.Since}[name])
		return err
	case "mode":
		if e.Mode != Closed && e.Mode != Passing {
			return fmt.Errorf("unknown value %q: expected closed or open", evidence.Abbreviate(string(e.Mode)))
		}
	case "vantage":
		if !slices.Contains(evidence.Vantages(), e.Vantage) {
			return fmt.Errorf("unknown value %q", evidence.Abbreviate(string(e.Vantage)))
		}
	case "calls":
		return checkCount(*e.Calls)
	case "missed":
		return checkMissed(e.Missed)
	}
	return nil // a digest: DecodeForm has read it
}

func checkCount(n int64) error {
	if n < 0 || n > 1<<53-1 {
		return errors.New("want a whole number from 0 to 9007199254740991")
	}
	return nil
}

func checkMissed(list []Missed) error {
	if len(list) == 0 || len(list) > maxMissed {
		return fmt.Errorf("%d counts: want 1 to %d", len(list), maxMissed)
	}
	for i, m := range list {
		_, err := evidence.ParseTime(m.Minute)
		if err = cmp.Or(err, evidence.CheckName(m.Agent), checkCount(m.Calls)); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		if m.Calls == 0 {
			return fmt.Errorf("element %d: calls: 0; leave it out", i)
		}
		if i > 0 && cmp.Or(cmp.Compare(list[i-1].Minute, m.Minute), cmp.Compare(list[i-1].Agent, m.Agent)) >= 0 {
			return fmt.Errorf("element %d: not sorted by minute and agent, or there twice", i)
		}
	}
	return nil
}
