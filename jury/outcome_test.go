package jury_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/test/must"
	"jurat/jury"
)

// judged returns a reckoning that has read a judgment.
func judged(p jury.Position) *jury.Reckoning {
	k := new(jury.Reckoning)
	k.Judge(evidence.DigestOf([]byte("judgment")), jury.Verdict{Record: "judgment", Method: jury.FinalJudge, Position: p, Score: 64})
	return k
}

// review returns a review of a record, bound to it by its digest. The digest is derived from the id.
func review(id, of string, status evidence.ApprovalStatus, modified string) *evidence.Record {
	return &evidence.Record{Digest: evidence.DigestOf([]byte(id)), Payload: evidence.Payload{ActionType: evidence.HumanReview, RecordID: id, ReviewerID: "hana",
		OriginalResponseID: of, Saw: []evidence.Digest{evidence.DigestOf([]byte(of))}, ApprovalStatus: status, ModifiedResponse: jsontext.Value(modified),
		Timestamp: "2026-01-01T00:00:00Z"}}
}

const (
	approved = evidence.Approved
	modified = evidence.ApprovedWithModifications
	rejected = evidence.Rejected
	failing  = `{"position":"unsafe_fail"}`
	passing  = `{"position":"safe_pass"}`
)

// TestOutcome: the last decision on the verdict counts, however the verdict was reached.
func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		name    string
		jury    jury.Position
		reviews []*evidence.Record
		want    jury.Position
		by      jury.Decider
		open    bool
	}{
		{"a pass", jury.SafePass, nil, jury.SafePass, jury.ByJury, false},
		{"nobody has decided", jury.NeedsReview, nil, jury.NeedsReview, jury.ByJury, true},
		{"failed by a person", jury.NeedsReview, []*evidence.Record{review("a", "judgment", modified, failing)}, jury.UnsafeFail, jury.ByPerson, false},
		{"approved as it is", jury.UnsafeFail, []*evidence.Record{review("a", "judgment", approved, "")}, jury.UnsafeFail, jury.ByPerson, false},
		{"approved, and neither pass nor fail", jury.NeedsReview, []*evidence.Record{review("a", "judgment", approved, "")}, jury.NeedsReview, jury.ByPerson, true},
		{"rejected", jury.SafePass, []*evidence.Record{review("a", "judgment", rejected, "")}, jury.NeedsReview, jury.ByPerson, true},
		{"a later decision", jury.NeedsReview, []*evidence.Record{review("a", "judgment", modified, failing), review("b", "judgment", modified, passing)}, jury.SafePass, jury.ByPerson, false},
		{"a rejection of a decision", jury.NeedsReview, []*evidence.Record{review("a", "judgment", modified, passing), review("b", "a", rejected, "")}, jury.NeedsReview, jury.ByPerson, true},
		{"an approval of a decision", jury.SafePass, []*evidence.Record{review("a", "judgment", modified, failing), review("b", "a", approved, "")}, jury.UnsafeFail, jury.ByPerson, false},
		{"the jury's judgment whole, as it once was", jury.NeedsReview,
			[]*evidence.Record{review("a", "judgment", modified, `{"method":"final_judge","model":"gemini-2.5-pro","position":"unsafe_fail","score":64}`)}, jury.UnsafeFail, jury.ByPerson, false},
		{"modified to no decision, as it once could be", jury.SafePass, []*evidence.Record{review("a", "judgment", modified, `{"position":"needs_review"}`)}, jury.NeedsReview, jury.ByPerson, true},
		{"modified to a text", jury.SafePass, []*evidence.Record{review("a", "judgment", modified, `"unsafe_fail"`)}, jury.NeedsReview, jury.ByPerson, true},
		{"modified to nothing known", jury.SafePass, []*evidence.Record{review("a", "judgment", modified, `{"position":7}`)}, jury.NeedsReview, jury.ByPerson, true},
		{"of another record", jury.SafePass, []*evidence.Record{review("a", "evaluation", rejected, "")}, jury.SafePass, jury.ByJury, false},
		{"of a review of another record", jury.SafePass, []*evidence.Record{review("a", "evaluation", rejected, ""), review("b", "a", approved, "")}, jury.SafePass, jury.ByJury, false},
		{"of itself", jury.SafePass, []*evidence.Record{review("a", "a", rejected, "")}, jury.SafePass, jury.ByJury, false},
	} {
		k := judged(c.jury)
		before := *k.Outcome()
		for _, r := range c.reviews {
			must.Do(t, k.Add(r))
		}
		o := k.Outcome()
		must.Hold(t, o.Position == c.want && o.By == c.by && o.Open == c.open, "%s: %+v", c.name, o)
		must.Hold(t, reflect.DeepEqual(o.Verdict, before.Verdict) && o.Verdict.Position == c.jury && o.Verdict.Score == 64,
			"%s: the jury's verdict is %+v", c.name, o.Verdict)
		must.Hold(t, before.Decision == nil, "%s: a returned outcome has changed later", c.name)
	}
}

// TestOutcomeBinds: a review that names its record by id only, or that reviews a verdict of another trial, decides
// nothing. A doubtful or withheld decision leaves the verdict open.
func TestOutcomeBinds(t *testing.T) {
	k := judged(jury.SafePass)
	for name, r := range map[string]*evidence.Record{
		"by id alone":     {Payload: evidence.Payload{ActionType: evidence.HumanReview, OriginalResponseID: "judgment", ApprovalStatus: rejected}},
		"another version": {Payload: evidence.Payload{ActionType: evidence.HumanReview, OriginalResponseID: "judgment", Saw: []evidence.Digest{evidence.DigestOf(nil)}, ApprovalStatus: rejected}},
	} {
		d := k.Decide(r)
		must.Hold(t, d == nil && k.Outcome().Decision == nil, "%s: %+v", name, d)
	}
	if k.Doubt(review("a", "judgment", approved, "")); !k.Outcome().Open || k.Outcome().Position != jury.NeedsReview {
		t.Errorf("doubted: %+v", k.Outcome())
	}
	if k.Decide(review("b", "a", approved, "")); !k.Outcome().Open {
		t.Errorf("an approval of what is doubted: %+v", k.Outcome())
	}
	apart := review("c", "judgment", modified, `"commitment"`)
	apart.Payload.SealedApart = []string{"/modified_response"}
	if k.Decide(apart); !k.Outcome().Open {
		t.Errorf("withheld: %+v", k.Outcome())
	}
	none, err := jury.OutcomeOf([]*evidence.Record{review("a", "judgment", approved, "")})
	must.Hold(t, none == nil && err == nil, "without a judgment: %+v, %v", none, err)
}

// TestRefusedDecisions: a decision must not leave a verdict open, and must not contain the judge's text.
func TestRefusedDecisions(t *testing.T) {
	apart := review("a", "judgment", modified, failing)
	apart.Payload.SealedApart = []string{"/modified_response"}
	for _, c := range []struct {
		jury   jury.Position
		review *evidence.Record
		field  string // "": it is taken
	}{
		{jury.NeedsReview, review("a", "judgment", approved, ""), "approval_status"},
		{jury.NeedsReview, review("a", "judgment", rejected, ""), "approval_status"},
		{jury.NeedsReview, review("a", "judgment", modified, `{"position":"needs_review"}`), "modified_response"},
		{jury.NeedsReview, review("a", "judgment", modified, `{"method":"final_judge","position":"unsafe_fail","score":64}`), "modified_response"},
		{jury.NeedsReview, review("a", "judgment", modified, `{"position":"unsafe_fail","rationale":"mine"}`), "modified_response"},
		{jury.NeedsReview, review("a", "judgment", modified, `"unsafe_fail"`), "modified_response"},
		{jury.NeedsReview, apart, "sealed_apart"},
		{jury.SafePass, review("a", "judgment", modified, passing), "modified_response"},
		{jury.NeedsReview, review("a", "judgment", modified, failing), ""},
		{jury.SafePass, review("a", "judgment", rejected, ""), ""},
		{jury.SafePass, review("a", "judgment", approved, ""), ""},
		{jury.NeedsReview, review("a", "evaluation", approved, ""), ""},
	} {
		err := judged(c.jury).Refuse(&c.review.Payload)
		var field *evidence.FieldError
		must.Hold(t, (c.field != "" || err == nil) && (c.field == "" || errors.As(err, &field) && field.Field == c.field),
			"%s, %s %s: %v", c.jury, c.review.Payload.ApprovalStatus, c.review.Payload.ModifiedResponse, err)
	}
}

// TestManyDecisions: the sender of a file controls how many decisions it has. Each must be read only once.
func TestManyDecisions(t *testing.T) {
	k := judged(jury.NeedsReview)
	const n = 200_000
	for i := range n {
		k.Decide(review(fmt.Sprint("review-", i), "judgment", modified, failing))
	}
	o := k.Outcome()
	must.Hold(t, o.Decisions == n && slices.Contains(jury.Decidable(), o.Position), "%+v", o)
}
