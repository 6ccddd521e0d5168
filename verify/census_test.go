package verify_test

import (
	"errors"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/verify"
)

// shown is a log whose records are all known, by chain or by id; "?" is not known.
type logShown map[string]*evidence.Record

func (s logShown) First(chain string) (*verify.LoggedRecord, error) { return s.Named(chain) }

func (s logShown) Named(id string) (*verify.LoggedRecord, error) {
	if id == "?" {
		return nil, verify.ErrLogUnknown
	}
	if r := s[id]; r != nil {
		return verify.Logged(r), nil
	}
	return nil, nil
}

func record(p evidence.Payload) *evidence.Record {
	return &evidence.Record{Payload: p, Digest: evidence.DigestOf([]byte(p.RecordID))}
}

// TestJudges goes through the rules of whom a record judges.
func TestJudges(t *testing.T) {
	submission := func(response string) *evidence.Record {
		return record(evidence.Payload{ActionType: evidence.Submission, ChainID: "trial-1", AgentID: "s", Response: []byte(response)})
	}
	act := record(evidence.Payload{ActionType: evidence.Message, AgentID: "a", RecordID: "act"})
	seen := func(id string, judged evidence.Judged) *evidence.Record {
		return record(evidence.Payload{ActionType: evidence.ObservedTool, AgentID: "w", RecordID: id, Observed: &evidence.Observed{Agent: "o", Judged: judged}})
	}
	log := logShown{"seen": seen("seen", evidence.JudgedAgent), "seen-earlier": seen("seen-earlier", ""),
		"lied":    record(evidence.Payload{ActionType: evidence.Message, AgentID: "a", RecordID: "lied", Observed: &evidence.Observed{Agent: "o", Judged: evidence.JudgedAgent}}),
		"trial-1": submission(`{"agentCard":{"name":"c"}}`), "trial-odd": act, "act": act,
		"verdict": record(evidence.Payload{ActionType: evidence.FinalJudgment, ChainID: "trial-1", AgentID: "clerk", RecordID: "verdict"})}
	agent := func(name string) evidence.Digest { return evidence.SubjectTag(evidence.RoleAgent, name) }
	none := evidence.Digest{}
	review := func(chain, of string, saw ...evidence.Digest) evidence.Payload {
		return evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "u", ChainID: chain, OriginalResponseID: of, Saw: saw}
	}
	key := func(body string) evidence.Payload {
		return evidence.Payload{ActionType: evidence.KeyEvent, AgentID: "operator", Response: []byte(body)}
	}
	judgment := func(chain string) evidence.Payload {
		return evidence.Payload{ActionType: evidence.FinalJudgment, ChainID: chain}
	}
	other := evidence.DigestOf([]byte("other"))
	for name, c := range map[string]struct {
		payload evidence.Payload
		want    evidence.Digest
		unknown bool
	}{
		"a message":                   {act.Payload, none, false},
		"a submission":                {log["trial-1"].Payload, none, false},
		"a judgment":                  {judgment("trial-1"), agent("c"), false},
		"a judgment of another chain": {judgment("trial-2"), none, false},
		"a chain that begins with something else":   {judgment("trial-odd"), none, false},
		"a chain that the file does not show":       {judgment("?"), none, true},
		"a review by id":                            {review("", "act"), agent("a"), false},
		"a review by digest":                        {review("c", "act", other, act.Digest), agent("a"), false},
		"a review of another version":               {review("c", "act", other), none, false},
		"a review of what is not there":             {review("c", "gone"), none, false},
		"a review of what the file does not show":   {review("c", "?"), none, true},
		"a review of what a recorder saw":           {review("", "seen"), agent("o"), false},
		"a review of what an earlier recorder saw":  {review("", "seen-earlier"), evidence.SubjectTag(evidence.RoleRecorder, "w"), false},
		"a review of an act of no recorder":         {review("", "lied"), agent("a"), false},
		"what a recorder saw":                       {seen("seen", evidence.JudgedAgent).Payload, none, false},
		"a review of a verdict":                     {review("", "verdict"), agent("c"), false},
		"a review in a trial, of what is not there": {review("trial-1", "gone"), agent("c"), false},
		"a revoked key":                             {key(`{"event":"revoked","name":"j","role":"juror"}`), evidence.SubjectTag(evidence.RoleJuror, "j"), false},
		"a rotated key":                             {key(`{"event":"rotated","name":"j","role":"juror"}`), none, false},
		"a key of nobody":                           {key(`{"event":"revoked","name":"","role":"juror"}`), none, false},
		"a key of no role":                          {key(`{"event":"revoked","name":"j"}`), none, false},
		"a name that is a number":                   {key(`{"event":"revoked","name":7,"role":"juror"}`), none, false},
		"no object":                                 {key(`[]`), none, false},
	} {
		got, err := verify.JudgedActor(&c.payload, verify.NamedActor(&c.payload), log)
		if got != c.want || errors.Is(err, verify.ErrLogUnknown) != c.unknown {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// TestOnTrial checks which name a submission gives, also one that no honest author would write.
func TestOnTrial(t *testing.T) {
	message := `{"payload":{"action_type":"message","agent_id":"a"}}`
	for response, want := range map[string]string{
		`{"agentCard":{"name":"c"}}`:                                                                                                                                                    "c",
		`{"agentCard":{"name":"c"},"records":[` + message + `]}`:                                                                                                                        "a",
		`{"records":[` + message + `,{"payload":{"action_type":"message","agent_id":"b"}}]}`:                                                                                            "a",
		`{"records":[{"payload":{"action_type":"human_review","agent_id":"r"}},` + message + `]}`:                                                                                       "a",
		`{"records":[{"payload":{"action_type":"unknown","agent_id":"r"}},` + message + `]}`:                                                                                            "a",
		`{"records":[1,null,[],{},{"payload":1},{"payload":{"action_type":7}},{"payload":{"action_type":"message","agent_id":{}}},` + message + `]}`:                                    "a",
		`{"records":[{"payload":{"action_type":"recorder_event","agent_id":"w"}},{"payload":{"action_type":"observed_call","agent_id":"w","observed":{"agent":"o"}}},` + message + `]}`: "o",
		`{"records":[{"payload":{"action_type":"observed_call","agent_id":"w","observed":{}}},{"payload":{"action_type":"observed_call","agent_id":"w"}},` + message + `]}`:             "a",
		`{"agentCard":{"name":"c"},"records":[]}`:                                                                                                                                       "c",
		`{"agentCard":{"name":"c"},"records":{"payload":1}}`:                                                                                                                            "c",
		`{"agentCard":{"name":""}}`:                     "",
		`{"agentCard":{"name":1}}`:                      "",
		`{"agentCard":[]}`:                              "",
		`"hmac-sha256:` + strings.Repeat("0", 64) + `"`: "",
		`null`: "", `[]`: "", `7`: "", ``: "", `{`: "",
	} {
		if got := verify.AgentOnTrial([]byte(response)); got != want {
			t.Errorf("%s: %q, want %q", response, got, want)
		}
	}
}
