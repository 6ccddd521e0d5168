package verify_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// A decidedTrial is a trial that people decided on.
type decidedTrial struct {
	name   string
	trial  string // of trialPlans
	decide func(f *decider)
	want   jury.Position // "": the report states no outcome
	open   bool
}

// A decider seals what people decide on a trial's judgment.
type decider struct {
	forger   *forger
	records  []*evidence.Record
	judgment *evidence.Record
	apart    []string
	t        testing.TB
}

func (d *decider) review(on *evidence.Record, status evidence.ApprovalStatus, modified jsontext.Value, change func(*evidence.Payload)) *evidence.Record {
	d.t.Helper()
	p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "reviewer", OriginalResponseID: on.Payload.RecordID, ApprovalStatus: status,
		ModifiedResponse: modified, Saw: []evidence.Digest{on.Digest}, ChainID: d.judgment.Payload.ChainID, Timestamp: "2026-01-01T00:00:09Z"}
	if change != nil {
		change(&p)
	}
	r := d.forger.house.Seal(d.t, p, d.apart...)
	d.records = append(d.records, r)
	return r
}

func decidedTrials() []decidedTrial {
	fail, pass := jury.ModifiedVerdict(jury.UnsafeFail), jury.ModifiedVerdict(jury.SafePass)
	return []decidedTrial{
		{"failed by a person", "final-judge", func(d *decider) { d.review(d.judgment, evidence.ApprovedWithModifications, fail, nil) }, jury.UnsafeFail, false},
		{"approved by a person", "final-judge", func(d *decider) { d.review(d.judgment, evidence.Approved, nil, nil) }, jury.SafePass, false},
		{"rejected by a person", "final-judge", func(d *decider) { d.review(d.judgment, evidence.Rejected, nil, nil) }, jury.NeedsReview, true},
		{"a tie that a person passed", "tie", func(d *decider) { d.review(d.judgment, evidence.ApprovedWithModifications, pass, nil) }, jury.SafePass, false},
		{"a tie that was approved as it is", "tie", func(d *decider) { d.review(d.judgment, evidence.Approved, nil, nil) }, jury.NeedsReview, true},
		{"a tie that nobody has decided", "tie", func(*decider) {}, jury.NeedsReview, true},
		{"a degraded verdict that a person approved", "absent-juror", func(d *decider) { d.review(d.judgment, evidence.Approved, nil, nil) }, jury.SafePass, false},
		{"the last of two decisions", "tie", func(d *decider) {
			d.review(d.judgment, evidence.ApprovedWithModifications, pass, nil)
			d.review(d.judgment, evidence.ApprovedWithModifications, fail, nil)
		}, jury.UnsafeFail, false},
		{"a decision that another person rejected", "tie", func(d *decider) {
			first := d.review(d.judgment, evidence.ApprovedWithModifications, pass, nil)
			d.review(first, evidence.Rejected, nil, func(p *evidence.Payload) { p.ReviewerID = "second reviewer" })
		}, jury.NeedsReview, true},
		{"a decision that another person approved", "tie", func(d *decider) {
			first := d.review(d.judgment, evidence.ApprovedWithModifications, pass, nil)
			d.review(first, evidence.Approved, nil, func(p *evidence.Payload) { p.ReviewerID = "second reviewer" })
		}, jury.SafePass, false},
		{"the whole judgment with another position, as it once was", "tie", func(d *decider) {
			d.review(d.judgment, evidence.ApprovedWithModifications, jsontext.Value(`{"method":"majority_vote","model":"","position":"unsafe_fail","score":64}`), nil)
		}, jury.UnsafeFail, false},
		{"modified to a text", "final-judge", func(d *decider) {
			d.review(d.judgment, evidence.ApprovedWithModifications, jsontext.Value(`"unsafe_fail"`), nil)
		}, jury.NeedsReview, true},
		{"modified to no decision", "final-judge", func(d *decider) {
			d.review(d.judgment, evidence.ApprovedWithModifications, jsontext.Value(`{"position":"needs_review"}`), nil)
		}, jury.NeedsReview, true},
		{"a decision that is withheld", "final-judge", func(d *decider) {
			d.apart = []string{"/modified_response"}
			d.review(d.judgment, evidence.ApprovedWithModifications, fail, nil).Disclosures = nil
		}, jury.NeedsReview, true},
		{"a review of an evaluation", "final-judge", func(d *decider) { d.review(d.records[2], evidence.Rejected, nil, nil) }, jury.SafePass, false},
		{"a decision by id alone", "final-judge", func(d *decider) {
			d.review(d.judgment, evidence.Rejected, nil, func(p *evidence.Payload) { p.Saw = nil })
		}, jury.SafePass, false},
		{"a rejection with another response", "final-judge", func(d *decider) { d.review(d.judgment, evidence.Rejected, fail, nil) }, jury.NeedsReview, true},
		{"an approval with another response", "final-judge", func(d *decider) { d.review(d.judgment, evidence.Approved, fail, nil) }, jury.NeedsReview, true},
		{"a decision that was left out", "tie", func(d *decider) {
			d.review(d.judgment, evidence.ApprovedWithModifications, pass, nil)
			left := len(d.records) - 1
			d.review(d.judgment, evidence.ApprovedWithModifications, fail, nil)
			d.records = append(d.records[:left], d.records[left+1:]...)
		}, "", false},
	}
}

func (c decidedTrial) make(t *testing.T) (*evidence.Bundle, verify.Options) {
	t.Helper()
	f := forgerOfCommitted(t, c.trial)
	b := f.seal()
	d := &decider{forger: f, records: b.Records, judgment: b.Records[len(b.Records)-2], t: t}
	c.decide(d)
	return f.house.Bundle(t, d.records...), f.house.Options(t)
}

func decidedVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	for _, c := range decidedTrials() {
		b, o := c.make(t)
		list = append(list, givenBundle(t, slug("decided", c.name), b, o))
	}
	return list
}

// TestTrialOutcome: the report states the outcome by the last decision that is proved to be on the verdict. It states
// none if the verdict or a record is missing.
func TestTrialOutcome(t *testing.T) {
	for _, c := range decidedTrials() {
		b, o := c.make(t)
		for name, r := range map[string]*verify.Report{"bundle": verify.Bundle(b, o), "file": fileOf(t, b, o)} {
			got := r.TrialOutcome
			if c.want == "" {
				if got != nil {
					t.Errorf("%s, %s: %+v is stated", c.name, name, got)
				}
				continue
			}
			if got == nil || got.Position != c.want || got.Open != c.open {
				t.Errorf("%s, %s: %+v, want %s, open %t: %+v", c.name, name, got, c.want, c.open, r.Details)
			}
		}
		o.Trust.Keys = nil
		if r := verify.Bundle(b, o); r.TrialOutcome != nil {
			t.Errorf("%s: without keys %+v is stated", c.name, r.TrialOutcome)
		}
	}
}

func fileOf(t *testing.T, b *evidence.Bundle, o verify.Options) *verify.Report {
	t.Helper()
	doc := must.Get(b.Marshal())(t)
	return must.Get(verify.File(doc, o))(t)
}

// TestNoOutcomeOfParts: a trial without its end, or a single act, has no outcome.
func TestNoOutcomeOfParts(t *testing.T) {
	h := jurattest.New(t)
	records := h.Try(t, jury.FinalJudge).Records
	for n := 1; n < len(records); n++ {
		if r := verify.Bundle(h.Bundle(t, records[:n]...), h.Options(t)); r.TrialOutcome != nil {
			t.Errorf("after %d acts: %+v", n, r.TrialOutcome)
		}
	}
}

// TestTimelineSaysWhatWasDecided: a step of a review says whether it approves, modifies or rejects, and what a verdict became.
func TestTimelineSaysWhatWasDecided(t *testing.T) {
	c := decidedTrials()[0]
	b, _ := c.make(t)
	steps := verify.Timeline(b.Records, nil)
	last := steps[len(steps)-1]
	if last.Status != evidence.ApprovedWithModifications || last.Verdict == nil || last.Verdict.Position != jury.UnsafeFail {
		t.Errorf("%+v", last)
	}
}
