package verify_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

func TestTimeline(t *testing.T) {
	s := newStory(t)
	planner, toolA, toolB, execution := parallel(s)
	got := verify.Timeline(s.records, s.report().Answers().TimeOf)
	id := func(r *evidence.Record) string { return r.Payload.RecordID }
	want := []struct {
		record  *evidence.Record
		follows []string
	}{{planner, nil}, {toolA, []string{id(planner)}}, {toolB, []string{id(planner)}}, {execution, []string{id(toolA), id(toolB)}}}
	if len(got) != len(want) {
		t.Fatalf("%d steps", len(got))
	}
	for i, w := range want {
		p, step := &w.record.Payload, got[i]
		if step.RecordID != p.RecordID || step.Actor != p.AgentID || step.Action != p.ActionType || step.Role != evidence.RoleAgent ||
			step.Claimed != p.Timestamp || step.Position != p.ChainPosition || step.ByNameOnly || step.Proved == nil ||
			!cmp.Equal(step.Follows, w.follows) {
			t.Errorf("step %d: %+v", i+1, step)
		}
	}
	if steps := verify.Timeline(s.records, nil); steps[0].Proved != nil {
		t.Errorf("the timeline shows a proved time although there is no report: %+v", steps[0])
	}
}

// TestTimelineFollowsTheGraph: the log's order differs from the order of the links.
func TestTimelineFollowsTheGraph(t *testing.T) {
	s := newStory(t)
	third := step("c", "c1", 3, "3")
	third.PreviousAgent = "b"
	second := step("b", "c1", 2, "2")
	c, a := s.add(third), s.add(step("a", "c1", 1, "1"))
	b := s.add(after(second, a))
	review := reviewOf(c, evidence.Approved, "")
	review.Saw = nil
	d := s.add(review)
	steps := verify.Timeline(s.records, nil)
	var order []string
	for _, step := range steps {
		order = append(order, step.RecordID)
	}
	want := []string{a.Payload.RecordID, b.Payload.RecordID, c.Payload.RecordID, d.Payload.RecordID}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Error(diff)
	}
	for i, loose := range []bool{false, false, true, true} {
		if steps[i].ByNameOnly != loose {
			t.Errorf("step %d: %+v", i+1, steps[i])
		}
	}
}

// TestTimelineOfACircle: two reviews name each other by id.
func TestTimelineOfACircle(t *testing.T) {
	s := newStory(t)
	one, two := "019b76da-a826-72cf-a88c-da576ae5e201", "019b76da-a826-72cf-a88c-da576ae5e202"
	for _, ids := range [][2]string{{one, two}, {two, one}} {
		s.add(evidence.Payload{ActionType: evidence.HumanReview, RecordID: ids[0], ReviewerID: "r" + ids[0], Timestamp: "2026-01-01T00:00:00Z",
			OriginalResponseID: ids[1], ApprovalStatus: evidence.Approved, ModifiedResponse: quoted("x")})
	}
	if steps := verify.Timeline(s.records, s.report().Answers().TimeOf); len(steps) != 2 || steps[0].RecordID != one {
		t.Errorf("%+v", steps)
	}
}

func TestTimelineOfATrial(t *testing.T) {
	s := newStory(t)
	s.records = s.house.Try(t, jury.FinalJudge).Records
	steps := verify.Timeline(s.records, s.report().Answers().TimeOf)
	if len(steps) != len(s.records) || steps[0].Action != evidence.Submission || steps[len(steps)-1].Action != evidence.TrialClosing {
		t.Errorf("%+v", steps)
	}
}

func TestIntroduced(t *testing.T) {
	s := newStory(t)
	p := step("planner", "c1", 1, "Plan: the user wants \"Munich\"\nby noon.")
	p.Prompt = quoted("To Munich, please.")
	planner := s.add(p)
	p = step("tool", "c1", 2, "")
	p.Response = jsontext.Value(`{"route":"A9","notes":["avoid the A3: \u0441\u0431\u043e\u0439 at 7 o'clock"]}`)
	tool := s.add(after(p, planner))
	jam := s.add(after(step("radio", "c1", 2, "There is a jam near Nuremberg."), planner))
	execution := s.add(after(step("execution", "c1", 3, "Take the A9; avoid the A3; there is a jam near Nuremberg; toll 20."), tool))
	driver := s.add(after(step("driver", "c1", 4, "Toll 20, A9, Munich."), execution))
	review := s.add(func() evidence.Payload {
		r := reviewOf(driver, evidence.ApprovedWithModifications, "A9, Munich, leave by noon.")
		r.Context = quoted("The customer is on the phone.")
		return r
	}())

	tests := []struct {
		text                string
		by, repeated, given []*evidence.Record
	}{
		{text: "\"Munich\"\nby", by: rec(planner)},
		{text: "Plan", by: rec(planner)},
		{text: "A9", by: rec(tool), repeated: rec(execution, driver, review)},
		{text: "сбой", by: rec(tool)},
		{text: "jam near", by: rec(jam, execution)}, // execution did not see the radio's record
		{text: "20", by: rec(execution), repeated: rec(driver)},
		{text: "Munich", by: rec(driver), repeated: rec(planner, review), given: rec(planner)},
		{text: "leave by noon", by: rec(review)},
		{text: "on the phone", given: rec(review)},
		{text: "Hamburg"},
		{text: "route"},  // a member's name
		{text: `\u0441`}, // as JSON writes it
		{text: `"A9"`},   // with its quotation marks
		{text: ""},
		{text: "munich"},     // upper and lower case differ
		{text: "A9 avoid"},   // across two strings
		{text: "chain-uuid"}, // neither input nor output
	}
	for _, tt := range tests {
		got := verify.Introduced(s.records, tt.text)
		if !slices.Equal(got.By, tt.by) || !slices.Equal(got.Repeated, tt.repeated) || !slices.Equal(got.Given, tt.given) || got.Withheld != nil {
			t.Errorf("%q: by %v, repeated by %v, given to %v", tt.text, actors(got.By), actors(got.Repeated), actors(got.Given))
		}
	}
}

func rec(records ...*evidence.Record) []*evidence.Record { return records }

func actors(records []*evidence.Record) (names []string) {
	for _, r := range records {
		names = append(names, r.Payload.Actor())
	}
	return names
}

// TestIntroducedByNameOnly: in a chain without digests, what stands before by name counts as what was shown.
func TestIntroducedByNameOnly(t *testing.T) {
	s := newStory(t)
	planner := s.add(step("planner", "", 1, "Plan: the A9."))
	p := step("tool", "", 2, "The A9 is free.")
	p.PreviousAgent = "planner"
	tool := s.add(p)
	if got := verify.Introduced(s.records, "A9"); !slices.Equal(got.By, rec(planner)) || !slices.Equal(got.Repeated, rec(tool)) {
		t.Errorf("by %v", actors(got.By))
	}
}

func TestIntroducedWhereTextIsWithheld(t *testing.T) {
	s := newStory(t)
	a := s.add(answer(), "/response")
	b := s.add(after(step("b", "c1", 1, "A9"), a))
	if got := verify.Introduced(s.records, "A9"); !slices.Equal(got.By, rec(a)) || got.Withheld != nil {
		t.Errorf("disclosed: by %v", actors(got.By))
	}
	a.Disclosures = nil
	if got := verify.Introduced(s.records, "A9"); !slices.Equal(got.By, rec(b)) || !slices.Equal(got.Withheld, rec(a)) {
		t.Errorf("withheld: by %v", actors(got.By))
	}
}
