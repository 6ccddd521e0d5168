package operator

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/test/must"
)

// TestActVectors reads the committed acts of the operator.
func TestActVectors(t *testing.T) {
	doc := must.Get(os.ReadFile("../../testdata/vectors/sealing/manifest.json"))(t)
	var manifest struct {
		Acts []struct {
			Name     string              `json:"name"`
			Action   evidence.ActionType `json:"action_type"`
			ChainID  string              `json:"chain_id"`
			Response string              `json:"response"`
			Refused  bool                `json:"refused"`
		} `json:"acts"`
	}
	must.Do(t, json.Unmarshal(doc, &manifest))
	refused, taken := map[evidence.ActionType]int{}, map[evidence.ActionType]int{}
	for _, v := range manifest.Acts {
		if !v.Action.ByOperator() {
			continue
		}
		err := Check(&evidence.Payload{ActionType: v.Action, ChainID: v.ChainID, Response: jsontext.Value(v.Response)})
		must.Hold(t, v.Refused == (err != nil), "%s: %v", v.Name, err)
		if v.Refused {
			refused[v.Action]++
		} else {
			taken[v.Action]++
		}
	}
	for _, action := range []evidence.ActionType{evidence.Expiry, evidence.TrialEvent} {
		must.Hold(t, refused[action] != 0 && taken[action] != 0,
			"of the vectors of %s, %d are refused and %d are not", action, refused[action], taken[action])
	}
}
