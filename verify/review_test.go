package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

const (
	routeA9 = "Рекомендованный маршрут: A9 через Нюрнберг."
	routeA7 = "Обновлённая рекомендация: A7."
)

func answer() evidence.Payload {
	p := output("logistics-agent-v1")
	p.Response = quoted(routeA9)
	return p
}

// reviewOf returns a decision that is bound to the reviewed record.
func reviewOf(original *evidence.Record, status evidence.ApprovalStatus, modified string) evidence.Payload {
	p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "user@example.com", Timestamp: "2026-01-01T00:00:05Z",
		OriginalResponseID: original.Payload.RecordID, ApprovalStatus: status, Saw: []evidence.Digest{original.Digest}}
	if modified != "" {
		p.ModifiedResponse = quoted(modified)
	}
	return p
}

func deliveryOf(text string, records ...*evidence.Record) evidence.Payload {
	p := evidence.Payload{ActionType: evidence.Delivery, AgentID: "logistics-agent-v1", Timestamp: "2026-01-01T00:00:06Z",
		Response: quoted(text), OriginalResponseID: records[0].Payload.RecordID}
	for _, r := range records {
		p.Saw = append(p.Saw, r.Digest)
	}
	return p
}

func honestReviews() []honestStory {
	return []honestStory{
		{"modified, and delivered so", func(s *story) {
			a := s.add(answer())
			b := s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7))
			s.add(deliveryOf(routeA7, a, b))
		}},
		{"approved without a change", func(s *story) {
			a := s.add(answer())
			b := s.add(reviewOf(a, evidence.Approved, ""))
			s.add(deliveryOf(routeA9, a, b))
		}},
		{"approved, and the response said again", func(s *story) {
			s.add(reviewOf(s.add(answer()), evidence.Approved, routeA9))
		}},
		{"the same value, written otherwise", func(s *story) {
			p := answer()
			p.Response = jsontext.Value(`{"b": 1.0, "a": "\u0041"}`)
			a := s.add(p)
			r := reviewOf(a, evidence.Approved, "")
			r.ModifiedResponse = jsontext.Value(`{"a":"A","b":1}`)
			s.add(r)
		}},
		{"rejected", func(s *story) { s.add(reviewOf(s.add(answer()), evidence.Rejected, "")) }},
		{"bound by the record before", func(s *story) {
			a := s.add(answer())
			p := reviewOf(a, evidence.Approved, "")
			p.Saw, p.PreviousRecord = nil, a.Digest
			s.add(p)
		}},
		{"a delivery that does not say the id", func(s *story) {
			a := s.add(answer())
			p := deliveryOf(routeA9, a, s.add(reviewOf(a, evidence.Approved, "")))
			p.OriginalResponseID = ""
			s.add(p)
		}},
		{"rejected, and approved on appeal", func(s *story) {
			a := s.add(answer())
			s.add(reviewOf(a, evidence.Rejected, ""))
			appeal := reviewOf(a, evidence.Approved, "")
			appeal.ReviewerID = "senior@example.com"
			s.add(deliveryOf(routeA9, a, s.add(appeal)))
		}},
		{"a review of a review", func(s *story) {
			a := s.add(answer())
			b := s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7))
			second := reviewOf(b, evidence.Approved, "")
			second.ReviewerID = "senior@example.com"
			s.add(deliveryOf(routeA7, a, b, s.add(second)))
		}},
		{"in a chain", func(s *story) {
			p := answer()
			p.ChainID, p.ChainPosition = "c1", 1
			a := s.add(p)
			r := reviewOf(a, evidence.ApprovedWithModifications, routeA7)
			r.ChainID, r.ChainPosition = "c1", 2
			b := s.add(r)
			d := deliveryOf(routeA7, a, b)
			d.ChainID, d.ChainPosition = "c1", 3
			s.add(d)
		}},
	}
}

func TestHonestReviews(t *testing.T) {
	for _, tt := range honestReviews() {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			tt.tell(s)
			expect(t, s.report(), verify.HumanReview, verify.Proved, "", nil)
		})
	}
}

// A brokenReview is a review of an answer in which one thing is changed.
type brokenReview struct {
	name   string
	change func(p *evidence.Payload, original *evidence.Record)
	status verify.Status
	rule   string
}

func brokenReviews() []brokenReview {
	return []brokenReview{
		{"named by id alone, as in the source's example", func(p *evidence.Payload, _ *evidence.Record) { p.Saw = nil },
			verify.NotProved, "binding"},
		{"a record that is not in the file", func(p *evidence.Payload, _ *evidence.Record) {
			p.OriginalResponseID, p.Saw = "uuid-from-record-A", []evidence.Digest{evidence.DigestOf(nil)}
		}, verify.NotProved, "missing"},
		{"another version", func(p *evidence.Payload, _ *evidence.Record) {
			p.Saw = []evidence.Digest{evidence.DigestOf(nil)}
		}, verify.Refuted, "version"},
		{"another record's id", func(p *evidence.Payload, _ *evidence.Record) { p.OriginalResponseID = "uuid-from-record-A" },
			verify.Refuted, "original"},
		{"approved, with another response", func(p *evidence.Payload, _ *evidence.Record) { p.ModifiedResponse = quoted(routeA7) },
			verify.Refuted, "approval"},
		{"modified, with the same response", func(p *evidence.Payload, original *evidence.Record) {
			p.ApprovalStatus, p.ModifiedResponse = evidence.ApprovedWithModifications, original.Payload.Response
		}, verify.Refuted, "modification"},
		{"rejected, with a response", func(p *evidence.Payload, _ *evidence.Record) {
			p.ApprovalStatus, p.ModifiedResponse = evidence.Rejected, quoted(routeA7)
		}, verify.Refuted, "rejection"},
		{"by the name of its maker", func(p *evidence.Payload, original *evidence.Record) { p.ReviewerID = original.Payload.AgentID },
			verify.Refuted, "own-output"},
		{"of a case that it does not judge", func(p *evidence.Payload, _ *evidence.Record) { p.Case = evidence.DigestOf(nil) },
			verify.Refuted, "case"},
	}
}

func TestEveryRuleOfAReview(t *testing.T) {
	for _, tt := range brokenReviews() {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			a := s.add(answer())
			p := reviewOf(a, evidence.Approved, "")
			tt.change(&p, a)
			review := s.add(p)
			expect(t, s.report(), verify.HumanReview, tt.status, tt.rule, review)
		})
	}
}

// A brokenDelivery delivers an answer against one rule.
type brokenDelivery struct {
	name   string
	tell   func(s *story, a *evidence.Record) *evidence.Record
	status verify.Status
	rule   string
}

func brokenDeliveries() []brokenDelivery {
	return []brokenDelivery{
		{"other than approved", func(s *story, a *evidence.Record) *evidence.Record {
			return s.add(deliveryOf(routeA7, a, s.add(reviewOf(a, evidence.Approved, ""))))
		}, verify.Refuted, "delivery"},
		{"the original, though modified", func(s *story, a *evidence.Record) *evidence.Record {
			return s.add(deliveryOf(routeA9, a, s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7))))
		}, verify.Refuted, "delivery"},
		{"after a rejection that it names", func(s *story, a *evidence.Record) *evidence.Record {
			return s.add(deliveryOf(routeA9, a, s.add(reviewOf(a, evidence.Rejected, ""))))
		}, verify.Refuted, "delivery-rejected"},
		{"after a rejection that it does not name", func(s *story, a *evidence.Record) *evidence.Record {
			approved := s.add(reviewOf(a, evidence.Approved, ""))
			second := reviewOf(a, evidence.Rejected, "")
			second.ReviewerID = "senior@example.com"
			s.add(second)
			return s.add(deliveryOf(routeA9, a, approved))
		}, verify.Refuted, "delivery-rejected"},
		{"after its review was rejected", func(s *story, a *evidence.Record) *evidence.Record {
			approved := s.add(reviewOf(a, evidence.Approved, ""))
			second := reviewOf(approved, evidence.Rejected, "")
			second.ReviewerID = "senior@example.com"
			s.add(second)
			return s.add(deliveryOf(routeA9, a, approved))
		}, verify.Refuted, "delivery-rejected"},
		{"with a review of another record", func(s *story, a *evidence.Record) *evidence.Record {
			other := s.add(answer())
			return s.add(deliveryOf(routeA9, a, s.add(reviewOf(other, evidence.Approved, ""))))
		}, verify.Refuted, "delivery-review"},
		{"with no review", func(s *story, a *evidence.Record) *evidence.Record { return s.add(deliveryOf(routeA7, a)) },
			verify.NotProved, "unreviewed"},
		{"by id and review alone", func(s *story, a *evidence.Record) *evidence.Record {
			p := deliveryOf(routeA9, a, s.add(reviewOf(a, evidence.Approved, "")))
			p.Saw = p.Saw[1:]
			return s.add(p)
		}, verify.NotProved, "binding"},
		{"by review alone", func(s *story, a *evidence.Record) *evidence.Record {
			p := deliveryOf(routeA9, a, s.add(reviewOf(a, evidence.Approved, "")))
			p.Saw, p.OriginalResponseID = p.Saw[1:], ""
			return s.add(p)
		}, verify.NotProved, "binding"},
		{"of another version", func(s *story, a *evidence.Record) *evidence.Record {
			p := deliveryOf(routeA9, a, s.add(reviewOf(a, evidence.Approved, "")))
			p.Saw[0] = evidence.DigestOf(nil)
			return s.add(p)
		}, verify.Refuted, "version"},
		{"by another record's id", func(s *story, a *evidence.Record) *evidence.Record {
			other := s.add(answer())
			p := deliveryOf(routeA9, a, s.add(reviewOf(a, evidence.Approved, "")))
			p.OriginalResponseID, p.Saw[0] = a.Payload.RecordID, other.Digest
			return s.add(p)
		}, verify.Refuted, "original"},
	}
}

func TestEveryRuleOfADelivery(t *testing.T) {
	for _, tt := range brokenDeliveries() {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			named := tt.tell(s, s.add(answer()))
			expect(t, s.report(), verify.HumanReview, tt.status, tt.rule, named)
		})
	}
}

// TestDeliveryOfWhatIsMissing: a delivery says that something which it names is not in the file, also where nothing else is against it.
func TestDeliveryOfWhatIsMissing(t *testing.T) {
	for name, id := range map[string]string{"by id": "x", "by review alone": ""} {
		s := newStory(t)
		gone := s.house.Seal(t, answer())
		d := deliveryOf(routeA9, gone, s.add(reviewOf(gone, evidence.ApprovedWithModifications, routeA9)))
		if id == "" {
			d.OriginalResponseID = ""
		}
		if f := s.report().For(verify.HumanReview, s.records[0].Payload.RecordID); f.Rule != "missing" {
			t.Errorf("%s: %+v", name, f)
		}
		delivered := s.add(d)
		if f := s.report().For(verify.HumanReview, delivered.Payload.RecordID); f.Rule != "missing" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestWhatIsFoundOfNoVector: trust that cannot be used is said to be so, and what is given on rests on signatures.
func TestWhatIsFoundOfNoVector(t *testing.T) {
	s := newStory(t)
	s.add(deliveryOf(routeA9, s.add(answer())))
	o := s.house.Options(t)
	unknown := *o.Trust
	unknown.Keys = nil
	o.Trust = &unknown
	if f := verify.Bundle(s.house.Bundle(t, s.records...), o).Of(verify.GivenOn); f.Rule != "rests" || f.Status != verify.NotProved {
		t.Errorf("%+v", f)
	}
	unknown.Witnesses = []string{"no key"}
	r := verify.Bundle(s.house.Bundle(t, s.records...), o)
	if !slices.ContainsFunc(r.Details, func(f verify.Finding) bool { return strings.Contains(f.Reason, "the trust cannot be used") }) {
		t.Errorf("%+v", r.Details)
	}
}

// TestPartsOfAReviewLeftOut: a missing record means not proved, and never refuted.
func TestPartsOfAReviewLeftOut(t *testing.T) {
	s := newStory(t)
	a := s.add(answer())
	b := s.add(reviewOf(a, evidence.Approved, ""))
	d := s.add(deliveryOf(routeA9, a, b))
	for _, shown := range [][]*evidence.Record{{a, d}, {b, d}, {d}, {b}} {
		got := s.reportOn(shown...).Of(verify.HumanReview)
		must.Hold(t, got.Status == verify.NotProved, "%d records: %+v", len(shown), got)
	}
	got := s.reportOn(a).Of(verify.HumanReview)
	must.Hold(t, got.Reason == "not asked", "the original alone: %+v", got)
}

// TestRejectionOfAnotherVersion: such a rejection decides nothing about this version.
func TestRejectionOfAnotherVersion(t *testing.T) {
	s := newStory(t)
	a := s.add(answer())
	p := reviewOf(a, evidence.Rejected, "")
	p.Saw = []evidence.Digest{evidence.DigestOf(nil)}
	wrong := s.add(p)
	s.add(deliveryOf(routeA9, a, s.add(reviewOf(a, evidence.Approved, ""))))
	expect(t, s.report(), verify.HumanReview, verify.Refuted, "version", wrong)
}

// TestReviewWithTheAgentsKey: another name with the same key. An honest installation has one key per actor.
func TestReviewWithTheAgentsKey(t *testing.T) {
	s := newStory(t)
	a := s.add(answer())
	draft := must.Get(evidence.NewDraft(reviewOf(a, evidence.Approved, "")))(t)
	signers := must.Get(s.house.Keys.Signers(t.Context(), evidence.RoleAgent, "logistics-agent-v1"))(t)
	r := must.Get(s.house.Ledger.Seal(t.Context(), draft, signers))(t)
	got := s.reportOn(a, r).Of(verify.HumanReview)
	must.Hold(t, got.Status == verify.Refuted && got.Rule == "own-output" && strings.Contains(got.Reason, "also signed"), "%+v", got)
}

// TestWithheldValues: values sealed apart are compared if they are disclosed correctly.
func TestWithheldValues(t *testing.T) {
	s := newStory(t)
	a := s.add(answer(), "/response")
	b := s.add(reviewOf(a, evidence.ApprovedWithModifications, routeA7), "/modified_response")
	d := s.add(deliveryOf(routeA7, a, b), "/response")
	bundle := s.house.Bundle(t, a, b, d)
	expect(t, verify.Bundle(bundle, s.house.Options(t)), verify.HumanReview, verify.Proved, "", nil)

	kept := make([][]evidence.Disclosure, 3)
	for i, r := range bundle.Records {
		kept[i], r.Disclosures = r.Disclosures, nil
	}
	must.Need(t, len(kept[0]) != 0, "the bundle discloses nothing")
	got := verify.Bundle(bundle, s.house.Options(t))
	f := got.Of(verify.HumanReview)
	must.Hold(t, f.Status == verify.NotProved && f.Rule == "withheld" && got.Outcome == verify.NotProved, "withheld: %+v", f)
	for i, r := range bundle.Records { // a false disclosure shows nothing, and is itself refuted
		r.Disclosures = slices.Clone(kept[i])
		r.Disclosures[0].Value = quoted("something else")
		f := verify.Bundle(bundle, s.house.Options(t)).Of(verify.HumanReview)
		must.Hold(t, f.Status == verify.NotProved, "record %d falsely disclosed: %+v", i, f)
		r.Disclosures = kept[i]
	}
	expect(t, verify.Bundle(bundle, s.house.Options(t)), verify.HumanReview, verify.Proved, "", nil)

	wrong := s.add(deliveryOf(routeA9, a, b), "/response")
	expect(t, s.report(), verify.HumanReview, verify.Refuted, "delivery", wrong)
}

// TestReviewAlone: a record file holds one record, so it cannot show what a review is about. Contradictions within
// the review still count.
func TestReviewAlone(t *testing.T) {
	p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "user@example.com", Timestamp: "2026-01-01T00:00:05Z",
		OriginalResponseID: "uuid-from-record-A", ApprovalStatus: evidence.Rejected}
	r, o := standalone(t, p)
	got := verify.Record(r, o).Of(verify.HumanReview)
	must.Hold(t, got.Status == verify.NotProved && got.Rule == "binding", "%+v", got)
	s := newStory(t)
	p.ModifiedResponse = quoted(routeA7)
	s.add(p)
	report := verify.Record(s.records[0], s.house.Options(t))
	must.Hold(t, report.Outcome == verify.Refuted, "a rejection with a response: %+v", report.Guarantees)
}

// TestReviewOfAVerdict: a person decides on what a jury found, in the trial's own chain.
func TestReviewOfAVerdict(t *testing.T) {
	s := newStory(t)
	s.records = append(s.records, s.house.Try(t, jury.MajorityVote).Records...)
	closing := s.records[len(s.records)-1]
	judgment := s.records[len(s.records)-2]
	p := reviewOf(judgment, evidence.Rejected, "")
	p.ChainID, p.Case, p.ChainPosition = judgment.Payload.ChainID, judgment.Payload.Case, judgment.Payload.ChainPosition+1
	p.Timestamp = "2026-01-01T00:00:09Z"
	s.add(p)
	report := s.report()
	expect(t, report, verify.HumanReview, verify.Proved, "", nil)
	must.Hold(t, report.Kind == verify.Trial && report.Of(verify.Chain).Status == verify.Proved, "%s, %+v", report.Kind, report.Of(verify.Chain))

	other := reviewOf(closing, evidence.Approved, "")
	other.ChainID = "trial-01b76a11-0000-7000-8000-000000000000"
	wrong := s.house.Seal(t, other)
	report = s.reportOn(append(slices.Clone(s.records), wrong)...)
	for g, rule := range map[verify.Guarantee]string{verify.HumanReview: "case", verify.Completeness: "foreign"} {
		if got := report.Of(g); got.Status != verify.Refuted || got.Rule != rule || got.Record != wrong.Payload.RecordID {
			t.Errorf("a review in another trial's chain: %+v", got)
		}
	}

	hidden := p
	hidden.ApprovalStatus = evidence.Approved
	shown := append(slices.Clone(s.records[:len(s.records)-1]), s.house.Seal(t, hidden))
	report = s.reportOn(shown...)
	for _, g := range []verify.Guarantee{verify.Chain, verify.Completeness} {
		if got := report.Of(g); got.Status != verify.Refuted || got.Rule != "gap" || got.Record != shown[len(shown)-1].Payload.RecordID {
			t.Errorf("an earlier decision hidden: %+v", got)
		}
	}
}
