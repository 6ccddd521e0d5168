package observed_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
)

// TestEvents reads the vectors of events as another program would.
func TestEvents(t *testing.T) {
	doc := must.Get(os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", "sealing", "manifest.json")))(t)
	var manifest struct {
		Acts []struct {
			Name       string
			ActionType evidence.ActionType `json:"action_type"`
			ChainID    string              `json:"chain_id"`
			Response   string
			Refused    bool
		} `json:"acts"`
	}
	must.Do(t, json.Unmarshal(doc, &manifest))
	seen := map[observed.EventName]bool{}
	refused := 0
	for _, v := range manifest.Acts {
		if v.ActionType != evidence.RecorderEvent {
			continue
		}
		event, err := observed.ParseEvent(jsontext.Value(v.Response))
		if (err != nil) != v.Refused {
			t.Errorf("%s: %v", v.Name, err)
		}
		if err != nil {
			refused++
			continue
		}
		seen[event.Event] = true
		p, err := event.Payload("gate", "2026-01-31T16:15:00Z", v.ChainID)
		if err != nil || string(p.Response) != v.Response {
			t.Errorf("%s: written again as %s, %v", v.Name, p.Response, err)
		}
	}
	if len(seen) != 8 || refused < 20 {
		t.Errorf("%d events and %d that are none", len(seen), refused)
	}
	if _, err := (&observed.Event{Event: observed.Stop}).Payload("gate", "2026-01-31T16:15:00Z", ""); err == nil {
		t.Error("an event without its reason is written")
	}
}
