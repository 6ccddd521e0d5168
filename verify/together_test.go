package verify_test

import (
	"testing"

	"jurat/evidence"
	"jurat/jurattest"
	"jurat/verify"
)

// together verifies several bundles, each alone and all together.
func together(t *testing.T, o verify.Options, files ...*evidence.Bundle) (alone, joint []*verify.Report) {
	t.Helper()
	o.Together = verify.NewTogether(o)
	for _, b := range files {
		alone = append(alone, verify.Bundle(b, o))
	}
	return alone, o.Together.Reports()
}

// apart puts each record of a story into a file of its own.
func (s *story) apart(records ...*evidence.Record) []*evidence.Bundle {
	s.t.Helper()
	var files []*evidence.Bundle
	for _, r := range records {
		files = append(files, s.house.Bundle(s.t, r))
	}
	return files
}

// flow is an answer that belongs to no chain, its review and its delivery.
func flow(s *story) (a, b, d *evidence.Record) {
	a = s.add(answer())
	b = s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7))
	d = s.add(deliveryOf(routeA7, a, b))
	return a, b, d
}

// TestFlowTogether: an answer, its review and its delivery are in three files. In any order, they are proved
// together. Each file alone leaves open only what it says of the others.
func TestFlowTogether(t *testing.T) {
	s := newStory(t)
	a, b, d := flow(s)
	for _, order := range [][]*evidence.Record{{a, b, d}, {d, b, a}, {b, a, d}} {
		alone, joint := together(t, s.house.Options(t), s.apart(order...)...)
		for _, r := range alone {
			if r.Outcome != verify.Proved && !r.OpenAlone() {
				t.Errorf("alone: %s, %+v", r.Outcome, r.Guarantees)
			}
		}
		if len(joint) != 1 || joint[0].Outcome != verify.Proved || joint[0].Records != 3 {
			t.Fatalf("together: %+v", joint)
		}
		expect(t, joint[0], verify.HumanReview, verify.Proved, "", nil)
	}
}

// TestChainTogether: steps in separate files are one chain. They name one another by parent request or by digest.
func TestChainTogether(t *testing.T) {
	s := newStory(t)
	planner, toolA, toolB, execution := parallel(s)
	_, joint := together(t, s.house.Options(t), s.apart(execution, toolA, planner, toolB)...)
	if len(joint) != 1 {
		t.Fatalf("%d reports", len(joint))
	}
	expect(t, joint[0], verify.Chain, verify.Proved, "", nil)

	asked := answer()
	asked.RequestID = "whole"
	part := answer()
	part.RequestID, part.ParentRequestID = "part", "whole"
	child := s.add(part)
	parent := s.add(asked)
	_, joint = together(t, s.house.Options(t), s.apart(parent, child)...)
	expect(t, joint[0], verify.Chain, verify.Proved, "", nil)
}

// TestMissingTogether: a file that the reader did not bring refutes nothing; the link is not proved.
func TestMissingTogether(t *testing.T) {
	s := newStory(t)
	planner, toolA, _, execution := parallel(s)
	for name, records := range map[string][]*evidence.Record{"the middle": {planner, execution}, "the beginning": {toolA, execution}} {
		_, joint := together(t, s.house.Options(t), s.apart(records...)...)
		if len(joint) != 1 || joint[0].Outcome != verify.NotProved || joint[0].Of(verify.Chain).Status != verify.NotProved {
			t.Errorf("without %s: %+v", name, joint)
		}
	}
	f := newStory(t)
	a, b, d := flow(f)
	rejected := reviewOf(a, evidence.Rejected, "")
	rejected.ReviewerID = "second@example.com"
	no := f.add(rejected)
	late := f.add(deliveryOf(routeA7, a, b))
	for name, records := range map[string][]*evidence.Record{"the review": {a, d}, "the answer": {b, d}} {
		_, joint := together(t, f.house.Options(t), f.apart(records...)...)
		if len(joint) != 1 || joint[0].Of(verify.HumanReview).Status != verify.NotProved {
			t.Errorf("without %s: %+v", name, joint)
		}
	}
	_, joint := together(t, f.house.Options(t), f.apart(a, b, no, late)...) // a file that is not here may contain a later approval
	expect(t, joint[0], verify.HumanReview, verify.NotProved, "delivery-rejected", late)
}

// TestContradictionTogether: a signed statement that another file contradicts is refuted.
func TestContradictionTogether(t *testing.T) {
	s := newStory(t)
	a := s.add(answer())
	b := s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7))
	d := s.add(deliveryOf(routeA9, a, b))
	_, joint := together(t, s.house.Options(t), s.apart(a, b, d)...)
	expect(t, joint[0], verify.HumanReview, verify.Refuted, "delivery", d)
}

// TestTwoLogsAreNotPutTogether: files of two logs, files without a proved place, and unrelated records are kept
// apart.
func TestTwoLogsAreNotPutTogether(t *testing.T) {
	s := newStory(t)
	a, b, d := flow(s)
	files := s.apart(a, b, d)
	untrusted := s.house.Options(t)
	trust := *untrusted.Trust
	trust.Logs = nil
	untrusted.Trust = &trust
	if _, joint := together(t, untrusted, files...); joint != nil {
		t.Errorf("of no log that is trusted: %+v", joint)
	}
	if _, joint := together(t, s.house.Options(t), files[0], files[0]); len(joint) != 0 {
		t.Errorf("one answer, twice: %+v", joint)
	}
}

// TestTwoHistoriesTogether: two files of one log are each proved, but show two histories.
func TestTwoHistoriesTogether(t *testing.T) {
	one, other := newStory(t), &story{t: t, house: jurattest.New(t)}
	a := one.add(answer())
	changed := answer()
	changed.Response = quoted(routeA7)
	b := other.add(changed)
	files := append(one.apart(a), other.apart(b)...)
	alone, joint := together(t, one.house.Options(t), files...)
	if alone[0].Outcome != verify.Proved || alone[1].Outcome != verify.Proved {
		t.Fatalf("alone: %s, %s", alone[0].Outcome, alone[1].Outcome)
	}
	if len(joint) != 1 || joint[0].Of(verify.Order).Rule != "fork" || joint[0].Outcome != verify.Refuted {
		t.Errorf("%+v", joint)
	}
}

// TestTwinsTogether: one log has a record_id twice. A ledger refuses this; a thief of its key can do it.
func TestTwinsTogether(t *testing.T) {
	c := newChance(t, 1)
	checkpoint, first, second := c.twins(t.Context())
	_, joint := together(t, c.house.Options(t), &evidence.Bundle{Records: []*evidence.Record{first}, Checkpoint: checkpoint},
		&evidence.Bundle{Records: []*evidence.Record{second}, Checkpoint: checkpoint})
	if len(joint) != 1 {
		t.Fatalf("%d reports", len(joint))
	}
	expect(t, joint[0], verify.Order, verify.Refuted, "twin", second)
}

// TestGivenOn: passing on an answer unchanged, without a person, proves that and nothing more.
func TestGivenOn(t *testing.T) {
	for name, tell := range map[string]func(s *story, a *evidence.Record) evidence.Payload{
		"named by id and digest": func(_ *story, a *evidence.Record) evidence.Payload { return deliveryOf(routeA9, a) },
		"named by digest": func(_ *story, a *evidence.Record) evidence.Payload {
			p := deliveryOf(routeA9, a)
			p.OriginalResponseID = ""
			return p
		},
		"with more that was seen": func(s *story, a *evidence.Record) evidence.Payload { return deliveryOf(routeA9, a, s.add(answer())) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.add(tell(s, s.add(answer())))
			report := s.report()
			expect(t, report, verify.GivenOn, verify.Proved, "", nil)
			if f := report.Of(verify.HumanReview); f.Reason != "not asked" {
				t.Errorf("it says something of a person: %+v", f)
			}
		})
	}
}

// TestNotGivenOn: a text that was changed, decided on, or is missing is not passed on unchanged.
func TestNotGivenOn(t *testing.T) {
	for name, tell := range map[string]func(s *story, a *evidence.Record){
		"changed": func(s *story, a *evidence.Record) { s.add(deliveryOf(routeA7, a)) },
		"reviewed": func(s *story, a *evidence.Record) {
			s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7))
			s.add(deliveryOf(routeA9, a))
		},
		"which of two": func(s *story, a *evidence.Record) {
			p := deliveryOf(routeA9, a, s.add(answer()))
			p.OriginalResponseID = ""
			s.add(p)
		},
		"withheld": func(s *story, a *evidence.Record) {
			s.add(deliveryOf(routeA9, a), "/response").Disclosures = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			tell(s, s.add(answer()))
			report := s.report()
			if f := report.Of(verify.GivenOn); f.Reason != "not asked" {
				t.Errorf("%+v", f)
			}
			if f := report.Of(verify.HumanReview); f.Status != verify.NotProved || f.Rule != "unreviewed" {
				t.Errorf("%+v", f)
			}
		})
	}
	s := newStory(t)
	a := s.add(answer())
	s.add(reviewOf(a, evidence.Rejected, ""))
	d := s.add(deliveryOf(routeA9, a))
	expect(t, s.report(), verify.HumanReview, verify.Refuted, "delivery-rejected", d)
}

// TestOpenAlone: other files do not prove what the reader requires of each file.
func TestOpenAlone(t *testing.T) {
	s := newStory(t)
	a, b, d := flow(s)
	file := s.house.Bundle(t, d)
	o := s.house.Options(t)
	o.Require = []verify.Guarantee{verify.NonRepudiation}
	if r := verify.Bundle(file, o); r.OpenAlone(o.Require...) {
		t.Errorf("without what is demanded: %+v", r.Guarantees)
	}
	o.Require = []verify.Guarantee{verify.HumanReview}
	alone, joint := together(t, o, s.apart(a, b, d)...)
	for _, r := range alone {
		if !r.OpenAlone(o.Require...) {
			t.Errorf("%s: %+v", r.Outcome, r.Guarantees)
		}
	}
	if len(joint) != 1 || joint[0].Outcome != verify.Proved {
		t.Errorf("%+v", joint)
	}
}
