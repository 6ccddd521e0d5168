package operator

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// TestActVectors reads the committed acts of the operator.
func TestActVectors(t *testing.T) {
	doc, err := os.ReadFile("../../testdata/vectors/sealing/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Acts []struct {
			Name     string              `json:"name"`
			Action   evidence.ActionType `json:"action_type"`
			ChainID  string              `json:"chain_id"`
			Response string              `json:"response"`
			Refused  bool                `json:"refused"`
		} `json:"acts"`
	}
	if err := json.Unmarshal(doc, &manifest); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, v := range manifest.Acts {
		body, err := ReadRetentionEvent(&evidence.Payload{ActionType: v.Action, ChainID: v.ChainID, Response: jsontext.Value(v.Response)})
		if v.Refused != (err != nil) || v.Refused != (body == nil) {
			t.Errorf("%s: %+v, %v", v.Name, body, err)
		}
		if v.Refused {
			refused++
		}
	}
	if refused == 0 || refused == len(manifest.Acts) {
		t.Errorf("%d of %d vectors are refused", refused, len(manifest.Acts))
	}
}
