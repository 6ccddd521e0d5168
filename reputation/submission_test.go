package reputation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// TestLyingSubmission: what the jury saw must be the records that the submission names.
func TestLyingSubmission(t *testing.T) {
	good, bad := `{"action_type":"model_output","agent_id":"desk","response":"good"}`, `{"action_type":"model_output","agent_id":"desk","response":"bad"}`
	goodDigest, badDigest := evidence.DigestOf([]byte(good)), evidence.DigestOf([]byte(bad))
	exhibit := func(digest evidence.Digest, payload string) string {
		return fmt.Sprintf(`{"digest":%q,"payload":%s}`, digest, payload)
	}
	of := func(exhibits ...string) jsontext.Value {
		return jsontext.Value(`{"records":[` + strings.Join(exhibits, ",") + `]}`)
	}
	apart := []string{"/response"}
	tests := map[string]struct {
		payload    evidence.Payload
		name       string
		exhibits   int
		transcript bool
	}{
		"honest":                          {evidence.Payload{Response: of(exhibit(goodDigest, good)), Saw: []evidence.Digest{goodDigest}}, "desk", 1, false},
		"from before saw":                 {evidence.Payload{Response: of(exhibit(goodDigest, good))}, "desk", 1, false},
		"another record's digest":         {evidence.Payload{Response: of(exhibit(badDigest, good))}, "desk", 0, false},
		"another record in saw":           {evidence.Payload{Response: of(exhibit(goodDigest, good)), Saw: []evidence.Digest{badDigest}}, "desk", 0, false},
		"one record more in saw":          {evidence.Payload{Response: of(exhibit(goodDigest, good)), Saw: []evidence.Digest{goodDigest, badDigest}}, "desk", 0, false},
		"erased":                          {evidence.Payload{Response: jsontext.Value(`"sha256:0"`), SealedApart: apart, Saw: []evidence.Digest{goodDigest}}, "", 1, false},
		"erased, from before saw":         {evidence.Payload{Response: jsontext.Value(`"sha256:0"`), SealedApart: apart}, "", 0, true},
		"a transcript":                    {evidence.Payload{Response: jsontext.Value(`{"agentCard":{"name":"desk"},"conversation":[]}`)}, "desk", 0, true},
		"no object":                       {evidence.Payload{Response: jsontext.Value(`7`)}, "", 0, true},
		"records that are no records":     {evidence.Payload{Response: jsontext.Value(`{"records":[7,null]}`)}, "", 0, true},
		"a payload that is no object":     {evidence.Payload{Response: of(exhibit(goodDigest, "7"))}, "", 0, false},
		"a digest that is none":           {evidence.Payload{Response: jsontext.Value(`{"records":[{"digest":"x","payload":{}}]}`)}, "", 0, true},
		"a payload that is left out":      {evidence.Payload{Response: jsontext.Value(`{"records":[{"digest":"` + goodDigest.String() + `"}]}`)}, "", 0, false},
		"a transcript with saw":           {evidence.Payload{Response: jsontext.Value(`{"agentCard":{"name":"desk"},"conversation":[]}`), Saw: []evidence.Digest{goodDigest}}, "desk", 0, true},
		"a card of another, and a record": {evidence.Payload{Response: jsontext.Value(`{"agentCard":{"name":"other"},"records":[` + exhibit(goodDigest, good) + `]}`)}, "desk", 1, false},
	}
	for name, tt := range tests {
		s := readSubmission(&evidence.Record{Payload: tt.payload})
		if s.name != tt.name || len(s.exhibits) != tt.exhibits || s.transcript != tt.transcript {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestPolicyIsStrict(t *testing.T) {
	for doc, want := range map[string]string{
		`{"format":"jurat/reputation-policy/v1"}`:                                   "",
		`{"format":"jurat/reputation-policy/v1","half_life_days":30,"panels":null}`: "",
		`{}`: "format",
		`{"format":"jurat/reputation-policy/v1","halflife":3}`:                                                         "halflife",
		`{"format":"jurat/reputation-policy/v1","half_life_days":0}`:                                                   "half_life_days is 0",
		`{"format":"jurat/reputation-policy/v1","minimum":9}`:                                                          "minimum is 9",
		`{"format":"jurat/reputation-policy/v1","clock":"mine"}`:                                                       "clock",
		`{"format":"jurat/reputation-policy/v1","organisations":[{"name":"x","actors":[],"cas":[]}]}`:                  "organisations/0",
		`{"format":"jurat/reputation-policy/v1","organisations":[{"name":"x","actors":[{"role":"king","name":"y"}]}]}`: "actors/0",
		`{"format":"jurat/reputation-policy/v1","minimum":10,"minimum":11}`:                                            "minimum",
		`[]`: "",
	} {
		p, err := ParsePolicy([]byte(doc))
		switch {
		case doc == "[]" && err == nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", doc, err)
		case want == "" && doc != "[]" && err != nil:
			t.Errorf("%s: %v", doc, err)
		case err == nil:
			if _, err := p.Fingerprint(); err != nil {
				t.Error(err)
			}
		}
	}
	short, err := ParsePolicy([]byte(`{"format":"jurat/reputation-policy/v1"}`))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := short.Fingerprint()
	if b, _ := DefaultPolicy().Fingerprint(); a != b {
		t.Error("what is left out changes the fingerprint")
	}
}
