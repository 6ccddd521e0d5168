package verify

import (
	"testing"

	"jurat/evidence"
	"jurat/jury"
)

const material = `{"agentCard":{},"conversation":[
{"role":"user","content":[{"type":"text","text":"Line one."},{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"Line \"two\"."}]},
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get_parcel","arguments":"{\"id\": 17}"}}]},
{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"ship","arguments":{"to":"Kassel","at":1}}}]}]}`

func acts(message int, quote string, unfounded bool) []jury.Act {
	o := jury.Opinion{Findings: []jury.Finding{{Message: message, Quote: quote, Unfounded: unfounded}}}
	return []jury.Act{{Body: &jury.Opening{}}, {Digest: evidence.DigestOf([]byte("act")), Body: &jury.Evaluation{Opinion: o}}}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		message int
		quote   string
		found   bool // as invented
	}{
		{1, "Line one.", false}, {1, "one.\n[image_url]\nLine \"two\"", false}, {1, "Line three", true}, {2, "Line one.", true},
		{2, "get_parcel", false}, {2, `{"id": 17}`, false}, {2, `{"id":17}`, true}, {3, `{"at":1,"to":"Kassel"}`, false}, {3, "Kassel", false},
		{4, "Kassel", true}, {1, "Line one. Line", true},
	} {
		got := inventedIn([]byte(material), acts(tt.message, tt.quote, false))
		if (got != nil) != tt.found || got != nil && got.Act.IsZero() {
			t.Errorf("message %d, %q: %+v", tt.message, tt.quote, got)
		}
	}
	if inventedIn([]byte(material), acts(1, "Line three", true)) != nil {
		t.Error("a quotation that is marked is held against the act")
	}
	for _, other := range []string{`{"agentCard":{},"conversation":{"history":[]}}`, `{"records":[]}`, `{"conversation":[{"role":"user","parts":[]}]}`, `[]`, `{`} {
		if got := inventedIn([]byte(other), acts(1, "Line three", false)); got != nil {
			t.Errorf("%s: %+v", other, got)
		}
	}
}
