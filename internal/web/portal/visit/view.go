package visit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/web/words"
	"jurat/verify"
)

// A View is a report in words, and what the portal shows of the file besides. Its Identities also say from where recorders saw, and what the other
// files show of the same exchanges.
type View struct {
	*words.View
	Name      string   `json:"name"`
	Changed   []string `json:"changed"`   // of a refuted file: which records are not what they were, and who said them
	Shown     int      `json:"shown"`     // how many records can be shown
	Statement []string `json:"statement"` // empty: each record has its own, or there is none
}

// View shows the report on a file. It returns an error if the file was not verified.
func (v *Visit) View(file int, lang words.Lang) (*View, error) {
	e, err := v.verified(file)
	if err != nil {
		return nil, err
	}
	r := e.report
	view := &View{View: words.ViewOf(lang, r), Name: e.name, Shown: len(e.records), Changed: e.changed(lang)}
	view.Identities = append(view.Identities, words.Seen(lang, r.Seen)...)
	if r.Log != nil {
		view.Identities = append(view.Identities, words.Exchanges(lang, v.exchanges, r.Log.Origin)...)
	}
	if !e.left && len(e.records) > 0 && r.Kind != verify.ManyRecords {
		view.Statement = words.Site("").Statement(e.records, r, lang)
	}
	return view, nil
}

func (v *Visit) verified(file int) (*examined, error) {
	if file < 0 || file >= len(v.files) || v.files[file].report == nil {
		return nil, fmt.Errorf("file %d was not verified", file)
	}
	return v.files[file], nil
}

// A RecordView is a record from the file, and what is proved of it.
type RecordView struct {
	Index     int          `json:"index"`
	ID        string       `json:"id"`
	Digest    string       `json:"digest"`
	Action    string       `json:"action"`
	Role      string       `json:"role"`
	Actor     string       `json:"actor"`
	Model     string       `json:"model"`
	Version   string       `json:"version"`
	Claimed   string       `json:"claimed"` // the time that the actor claims
	Proved    string       `json:"proved"`  // the authority's time; "": none
	Authority string       `json:"authority"`
	Clock     string       `json:"clock"`
	Lines     []words.Line `json:"lines"`
	Members   []Member     `json:"members"`
	Statement []string     `json:"statement"` // if the file has several records
	Signed    string       `json:"signed"`    // the exact signed bytes, which are UTF-8
}

// A Member is one member of a payload.
type Member struct {
	Pointer  string `json:"pointer"`
	Text     string `json:"text"`     // the content of a string; JSON for other values
	JSON     bool   `json:"json"`     // whether Text is JSON
	Apart    bool   `json:"apart"`    // sealed apart, and disclosed in the file
	Withheld bool   `json:"withheld"` // sealed apart, and not disclosed
}

// mostAtOnce is the largest number of records to show at a time.
const mostAtOnce = 200

// Records shows records of a file. It returns an error if there are none in the range.
func (v *Visit) Records(file, from, count int, lang words.Lang) ([]RecordView, error) {
	e, err := v.verified(file)
	if err != nil {
		return nil, err
	}
	if from < 0 || from > len(e.records) || count < 0 {
		return nil, fmt.Errorf("there are no records from %d", from)
	}
	views := []RecordView{}
	for i, r := range e.records[from:min(len(e.records), from+min(count, mostAtOnce))] {
		views = append(views, e.record(from+i, r, lang))
	}
	return views, nil
}

func (e *examined) record(index int, r *evidence.Record, lang words.Lang) RecordView {
	p, names := &r.Payload, words.Of(lang)
	view := RecordView{Index: index, ID: p.RecordID, Digest: r.Digest.String(), Action: names.Name("action", string(p.ActionType)),
		Role: names.Name("role", string(p.Role())), Actor: p.Actor(), Model: p.Model, Version: p.ModelVersion, Claimed: p.Timestamp, Members: members(r), Signed: string(r.Canonical())}
	if t, ok := e.answers.TimeOf(p.RecordID); ok {
		view.Proved, view.Authority, view.Clock = t.Time.UTC().Format(time.RFC3339Nano), t.Authority, names.Name("clock", string(t.Clock))
	}
	for _, f := range e.report.Guarantees {
		if slices.Contains(ofOneRecord, f.Guarantee) {
			view.Lines = append(view.Lines, words.LineOf(lang, verify.Group{Finding: e.answers.For(f.Guarantee, p.RecordID)}))
		}
	}
	if e.report.Kind == verify.ManyRecords {
		view.Statement = words.Site("").Statement([]*evidence.Record{r}, e.report, lang)
	}
	return view
}

// ofOneRecord are the guarantees about single records.
var ofOneRecord = []verify.Guarantee{verify.Content, verify.Authentication, verify.NonRepudiation, verify.Configuration, verify.Time,
	verify.Qualified, verify.Property, verify.Before, verify.Order, verify.Chain, verify.HumanReview}

// first are the members that readers look for, in display order.
var first = []string{"prompt", "context", "tools_used", "response", "modified_response", "changes", "parameters", "metadata"}

// members returns a payload's members, with the disclosures. If the disclosures do not match the commitments, which
// refutes content, it does not show them.
func members(r *evidence.Record) []Member {
	values, withheld, err := evidence.Reveal(r.Canonical(), r.Disclosures)
	if err != nil {
		values, withheld, err = evidence.Reveal(r.Canonical(), nil)
	}
	if err != nil { // an opened record has members
		return nil
	}
	var all []Member
	for _, name := range slices.SortedFunc(maps.Keys(values), func(a, b string) int { return cmp.Or(place(a)-place(b), strings.Compare(a, b)) }) {
		m := Member{Pointer: name, Withheld: slices.Contains(withheld, "/"+name)}
		m.Apart = !m.Withheld && slices.Contains(r.Payload.SealedApart, "/"+name)
		m.Text, m.JSON = text(values[name])
		all = append(all, m)
	}
	return all
}

func place(name string) int {
	if i := slices.Index(first, name); i >= 0 {
		return i
	}
	return len(first)
}

// text returns the exact content of a string, or the indented JSON of other values.
func text(value jsontext.Value) (text string, isJSON bool) {
	if value.Kind() == '"' && json.Unmarshal(value, &text) == nil {
		return text, false
	}
	indented := value.Clone()
	if err := indented.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(value), true
	}
	return string(indented), true
}

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
		"role", t.Say("role."+string(p.Role())), "actor", strconv.Quote(p.Actor()), "time", p.Timestamp,
		"guarantee", t.Say("guarantee."+string(f.Guarantee)), "reason", words.Reason(lang, f))
}
