package jurattest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// Prompting says what an agent's program records as the input of a turn.
type Prompting bool

const (
	WholeHistory Prompting = true  // everything that was said before
	OnlyNew      Prompting = false // only messages since the agent's last turn
)

// Record seals a conversation of chat messages as its agent would: each turn is a model output in one chain, and
// names the previous one. No record holds messages after the agent's last turn.
func (h *House) Record(t testing.TB, conversation []byte, how Prompting, apart ...string) []*evidence.Record {
	t.Helper()
	var messages []json.RawMessage
	check(t, json.Unmarshal(conversation, &messages))
	var records []*evidence.Record
	from := 0
	for i, raw := range messages {
		var m struct{ Role string }
		check(t, json.Unmarshal(raw, &m))
		if m.Role != "assistant" {
			continue
		}
		prompt, err := json.Marshal(messages[from:i])
		check(t, err)
		p := evidence.Payload{ActionType: evidence.ModelOutput, AgentID: "recorded-agent", RequestID: fmt.Sprintf("turn-%d", len(records)+1),
			Timestamp: evidence.FormatTime(h.Now()), Model: "gpt-4o", ModelVersion: "gpt-4o-2024-08-06", Parameters: jsontext.Value("{}"),
			Prompt: prompt, Response: jsontext.Value(raw), ChainID: "recorded", ChainPosition: int64(len(records) + 1)}
		if n := len(records); n > 0 {
			p.PreviousRecord = records[n-1].Digest
		}
		records = append(records, h.Seal(t, p, apart...))
		if how == OnlyNew {
			from = i + 1
		}
	}
	return records
}
