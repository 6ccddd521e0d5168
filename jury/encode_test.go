package jury

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/must"
)

// TestBodiesStandAsTheyAreWritten encodes and decodes every body of trials that contain every type of act.
func TestBodiesStandAsTheyAreWritten(t *testing.T) {
	seen := map[evidence.ActionType]bool{}
	for _, d := range []*Deliberation{longTrial(), seated(MajorityVote, new(script), new(script))} {
		run(t, d)
		for _, a := range d.book().acts {
			seen[a.Type] = true
			doc := must.Get(EncodeBody(a.Body))(t)
			body, err := DecodeBody(a.Type, doc)
			if err != nil {
				t.Fatalf("%s %s: %v", a.Type, doc, err)
			}
			if diff := cmp.Diff(a.Body, body); diff != "" {
				t.Errorf("%s (-written +read):\n%s", a.Type, diff)
			}
			if bytes.Contains(doc, []byte(`"findings":null`)) || bytes.Contains(doc, []byte(`"requests":null`)) {
				t.Errorf("%s has null for a list: %s", a.Type, doc)
			}
		}
	}
	for _, action := range evidence.ActionTypes() {
		if action.InTrial() && action != evidence.Submission && !seen[action] {
			t.Errorf("no act of type %s was tried", action)
		}
	}
}

func TestResultHasNoNullLists(t *testing.T) {
	for _, d := range []*Deliberation{longTrial(), seated(MajorityVote, new(script), new(script))} {
		doc := must.Get(EncodeBody(run(t, d)))(t)
		for path, v := range parts[map[string]any](doc) {
			if v == nil {
				t.Errorf("%s is null", path)
			}
		}
	}
}

func TestDecodeBodyIsStrict(t *testing.T) {
	tests := map[string]struct {
		action evidence.ActionType
		doc    string
	}{
		"unknown member":    {evidence.TrialClosing, `{"acts":3,"more":1}`},
		"missing member":    {evidence.TrialClosing, `{}`},
		"twice":             {evidence.TrialClosing, `{"acts":3,"acts":3}`},
		"fraction":          {evidence.TrialClosing, `{"acts":3.5}`},
		"other case":        {evidence.TrialClosing, `{"Acts":3}`},
		"not an object":     {evidence.TrialClosing, `null`},
		"null list":         {evidence.JudgeOpinion, `{"position":"safe_pass","axisScores":{},"totalScore":0,"confidence":0,"rationale":"r","findings":null}`},
		"submission":        {evidence.Submission, `{}`},
		"not of a trial":    {evidence.Delivery, `{}`},
		"no type":           {"", `{}`},
		"text after it":     {evidence.TrialClosing, `{"acts":3} {}`},
		"empty where omits": {evidence.Evaluation, `{"jurorId":"a","phase":"initial","roundNumber":0,"roleName":"","position":"safe_pass","axisScores":{},"totalScore":0,"confidence":0,"rationale":"r","findings":[],"fallback":false}`},
	}
	for name, tt := range tests {
		if body, err := DecodeBody(tt.action, []byte(tt.doc)); err == nil {
			t.Errorf("%s: read as %+v", name, body)
		}
	}
	if _, err := DecodeBody(evidence.TrialClosing, []byte(` { "acts" : 3 } `)); err != nil {
		t.Error(err)
	}
}

func TestEffort(t *testing.T) {
	e := Effort{Peers: []string{"b", "a"}, Attempts: []Attempt{
		{Model: "m", FinishReason: "length", Problem: "malformed", Answer: "{", InputTokens: 10, OutputTokens: 1, Cost: 7, Latency: 12},
		{Model: "m", FinishReason: "stop", Latency: 3}}}
	doc := must.Get(e.Encode())(t)
	if _, err := evidence.Canonical(doc); err != nil {
		t.Errorf("it cannot be sealed: %v", err)
	}
	got := must.Get(ReadEffort(doc))(t)
	if diff := cmp.Diff(e, got); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	if none, err := ReadEffort(nil); err != nil || len(none.Attempts) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	if _, err := ReadEffort([]byte(`{"attempts":1}`)); err == nil {
		t.Error("nonsense is read")
	}
	if doc, err := (Effort{}).Encode(); err != nil || string(doc) != `{"attempts":[]}` {
		t.Errorf("%s, %v", doc, err)
	}
}
