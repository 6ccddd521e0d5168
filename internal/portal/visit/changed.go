package visit

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/words"
	"jurat/verify"
)

// mostChanged is how many changed records are named.
const mostChanged = 10

// claimed is what a record says of itself that does not open. It is read loosely, and is nobody's word.
type claimed struct {
	n       int
	payload evidence.Payload
}

// claimedIn looks for a record of a damaged file; nil: it is not found, or the file is too large to look.
func claimedIn(s *Source, id string) *claimed {
	type record struct {
		Payload struct {
			RecordID   string              `json:"record_id"`
			AgentID    string              `json:"agent_id"`
			ReviewerID string              `json:"reviewer_id"`
			ActionType evidence.ActionType `json:"action_type"`
			Timestamp  string              `json:"timestamp"`
		} `json:"payload"`
	}
	var file struct {
		record  `json:",inline"`
		Records []record `json:"records"`
	}
	doc := whole(s, mostRecognised)
	if doc == nil || json.Unmarshal(evidence.CutMark(doc), &file, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return nil
	}
	for i, r := range append([]record{file.record}, file.Records...) {
		if p := r.Payload; p.RecordID == id {
			return &claimed{max(i, 1), evidence.Payload{RecordID: id, AgentID: p.AgentID, ReviewerID: p.ReviewerID, ActionType: p.ActionType, Timestamp: p.Timestamp}}
		}
	}
	return nil
}

// changed says which records of a file are not what their actors signed, or stand elsewhere than they say: place, action, actor, claimed
// time, guarantee and reason. What the record names is its own word, as its signature does not hold.
func (e *examined) changed(lang words.Lang) []string {
	var said []string
	told := map[string]bool{}
	if e.broken != nil {
		said = append(said, changedRecord(lang, e.broken.n, &e.broken.payload, e.report.Guarantees[0]))
	}
	for _, f := range e.report.Details {
		i := slices.IndexFunc(e.records, func(r *evidence.Record) bool { return r.Payload.RecordID == f.Record })
		if f.Status != verify.Refuted || i < 0 || told[f.Record] || len(said) == mostChanged {
			continue
		}
		told[f.Record] = true
		said = append(said, changedRecord(lang, i+1, &e.records[i].Payload, f))
	}
	return said
}

func changedRecord(lang words.Lang, n int, p *evidence.Payload, f verify.Finding) string {
	t := words.Of(lang)
	return t.Say("basis.changed", "n", n, "record", p.RecordID, "action", t.Name("action", string(p.ActionType)),
		"role", t.Say("role."+string(p.Role())), "actor", words.Quoted(p.Actor()), "time", p.Timestamp,
		"guarantee", t.Say("guarantee."+string(f.Guarantee)), "reason", words.Reason(lang, f))
}
