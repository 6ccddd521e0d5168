package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

func quoted(text string) jsontext.Value {
	doc, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return doc
}

// step is an agent's step in a chain, one second after the step before it.
func step(agent, chain string, position int64, response string) evidence.Payload {
	return evidence.Payload{AgentID: agent, RequestID: "chain-uuid", Response: quoted(response), ChainID: chain,
		ChainPosition: position, ActionType: evidence.ChainStep, Timestamp: fmt.Sprintf("2026-01-01T00:00:%02dZ", position)}
}

// story seals payloads one after the other. Each payload gets a name, and later payloads link to it by that name.
type story struct {
	t       *testing.T
	house   *jurattest.House
	records []*evidence.Record
}

func newStory(t *testing.T) *story { return &story{t: t, house: jurattest.New(t)} }

func (s *story) add(p evidence.Payload, apart ...string) *evidence.Record {
	s.t.Helper()
	r := s.house.Seal(s.t, p, apart...)
	s.records = append(s.records, r)
	return r
}

func (s *story) report() *verify.Report {
	s.t.Helper()
	return s.reportOn(s.records...)
}

func (s *story) reportOn(records ...*evidence.Record) *verify.Report {
	s.t.Helper()
	return verify.Bundle(s.house.Bundle(s.t, records...), s.house.Options(s.t))
}

// after links a payload to records: the first is its previous record, and it saw all of them.
func after(p evidence.Payload, records ...*evidence.Record) evidence.Payload {
	p.PreviousRecord, p.PreviousAgent = records[0].Digest, records[0].Payload.Actor()
	for _, r := range records[1:] {
		p.Saw = append(p.Saw, r.Digest)
	}
	return p
}

func passingOn(p evidence.Payload, to string) evidence.Payload {
	p.NextAgent = to
	return p
}

// expect requires one answer of a report: this status, rule and record. Everything else must be proved, except what
// depends on keys that the operator keeps.
func expect(t *testing.T, report *verify.Report, g verify.Guarantee, status verify.Status, rule string, record *evidence.Record) {
	t.Helper()
	name := ""
	if record != nil {
		name = record.Payload.RecordID
	}
	if got := report.Of(g); got.Status != status || got.Rule != rule || got.Record != name || got.Reason == "" {
		t.Errorf("%+v; want %s by rule %q, naming %q", got, status, rule, name)
	}
	for _, f := range report.Details {
		// The chains of these tests consist of steps without a model.
		besides := f.Guarantee == verify.NonRepudiation || f.Guarantee == verify.Configuration && f.Rule == "unstated"
		must.Hold(t, besides || f.Guarantee == g && f.Rule == rule, "the report has a finding that the test did not cause: %+v", f)
	}
	must.Equal(t, report.Outcome, status)
}

// parallel is a planner, two tools of one round, and the agent that uses their results.
func parallel(s *story) (planner, toolA, toolB, execution *evidence.Record) {
	planner = s.add(passingOn(step("planner", "c1", 1, "Plan: ask both."), "tool-a"))
	toolA = s.add(passingOn(after(step("tool-a", "c1", 2, "A says 4.5 hours."), planner), "execution"))
	toolB = s.add(after(step("tool-b", "c1", 2, "B says a traffic jam."), planner))
	execution = s.add(after(step("execution", "c1", 3, "Take the A9."), toolA, toolB))
	return planner, toolA, toolB, execution
}

// An honestStory breaks no rule.
type honestStory struct {
	name string
	tell func(s *story)
}

func honestChains() []honestStory {
	return []honestStory{
		{"planner, tool, execution", func(s *story) {
			planner := s.add(passingOn(step("planner", "c1", 1, "Plan."), "tool"))
			tool := s.add(passingOn(after(step("tool", "c1", 2, "Result."), planner), "execution"))
			s.add(after(step("execution", "c1", 3, "Done."), tool))
		}},
		{"two tools in parallel", func(s *story) { parallel(s) }},
		{"digests without places", func(s *story) {
			first := s.add(evidence.Payload{AgentID: "a", RequestID: "1", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "v",
				Prompt: quoted("p"), Response: quoted("r"), Parameters: jsontext.Value("{}"), ChainID: "c1"})
			second := first.Payload
			second.RecordID, second.Signers, second.AgentID = "", nil, "b"
			s.add(after(second, first))
		}},
		{"digests without a chain_id", func(s *story) {
			s.add(after(step("b", "", 2, "2"), s.add(step("a", "", 1, "1"))))
		}},
		{"a sub-agent's chain under a request", func(s *story) {
			parent := step("a", "c1", 1, "1")
			parent.RequestID, parent.ParentRequestID = "the parent's", "chain-uuid" // which it names by digest, too
			parent.ChainPosition = 2
			child := step("b", "c2", 1, "2")
			child.ParentRequestID = "the parent's"
			first := s.add(step("z", "c1", 1, "0"))
			seen := s.add(child)
			parent.Timestamp = "2026-01-01T00:00:09Z"
			parent.Saw = []evidence.Digest{seen.Digest}
			s.add(after(parent, first)) // the parent's answer is recorded after the child's
		}},
		{"a beginning after another chain's end", func(s *story) {
			s.add(after(step("b", "c2", 1, "2"), s.add(step("a", "c1", 1, "1"))))
		}},
		{"a second beginning", func(s *story) {
			s.add(step("a", "c1", 1, "1"))
			s.add(step("b", "c1", 1, "2"))
		}},
	}
}

func TestHonestChains(t *testing.T) {
	for _, tt := range honestChains() {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			tt.tell(s)
			expect(t, s.report(), verify.Chain, verify.Proved, "", nil)
			said := s.report().Of(verify.Chain).Reason
			if strings.Contains(said, "1 of them, by a request's id alone") != strings.Contains(tt.name, "under a request") || strings.Contains(said, "2 of them") {
				t.Error(said)
			}
		})
	}
}

// A brokenStory breaks one rule.
type brokenStory struct {
	name   string
	tell   func(s *story) *evidence.Record // returns the record that is to be named
	status verify.Status
	rule   string
}

func brokenChains() []brokenStory {
	elsewhere := evidence.DigestOf([]byte("a record that nobody has"))
	return []brokenStory{
		{"the source's own example: places and names, no digest", func(s *story) *evidence.Record {
			s.add(passingOn(step("planner-agent", "", 1, "План: Шаг 1..."), "tool-agent"))
			p := step("tool-agent", "", 2, "Результат выполнения инструмента...")
			p.PreviousAgent = "planner-agent"
			return s.add(p)
		}, verify.NotProved, "unbound"},
		{"the same under a chain_id", func(s *story) *evidence.Record {
			s.add(passingOn(step("planner", "c1", 1, "1"), "tool"))
			p := step("tool", "c1", 2, "2")
			p.PreviousAgent = "planner"
			return s.add(p)
		}, verify.NotProved, "unbound"},
		{"a chain_id and nothing else", func(s *story) *evidence.Record {
			s.add(step("a", "c1", 1, "1"))
			p := output("b")
			p.ChainID, p.Timestamp = "c1", "2026-01-01T00:00:02Z"
			return s.add(p)
		}, verify.NotProved, "unbound"},
		{"a beginning after somebody", func(s *story) *evidence.Record {
			p := step("a", "c1", 1, "1")
			p.PreviousAgent = "somebody"
			return s.add(p)
		}, verify.NotProved, "unbound"},
		{"a beginning after somebody of another chain than it saw", func(s *story) *evidence.Record {
			p := step("a", "c1", 1, "1")
			p.Saw = []evidence.Digest{s.add(step("z", "c0", 1, "0")).Digest}
			p.PreviousAgent = "somebody"
			return s.add(p)
		}, verify.NotProved, "unbound"},
		{"a place too far", func(s *story) *evidence.Record {
			first := s.add(step("a", "c1", 1, "1"))
			second := s.add(after(step("b", "c1", 2, "2"), first))
			wrong := after(step("c", "c1", 4, "3"), second)
			return s.add(wrong)
		}, verify.Refuted, "position"},
		{"the place of what it saw", func(s *story) *evidence.Record {
			planner, toolA, _, _ := parallel(s)
			wrong := after(step("late", "c1", 2, "I saw A."), planner)
			wrong.Saw = []evidence.Digest{toolA.Digest}
			wrong.Timestamp = "2026-01-01T00:00:03Z"
			return s.add(wrong)
		}, verify.Refuted, "position"},
		{"a place that nothing leads to", func(s *story) *evidence.Record {
			s.add(step("a", "c1", 1, "1"))
			return s.add(step("b", "c1", 3, "3"))
		}, verify.Refuted, "gap"},
		{"a place that nothing leads to, without a chain_id", func(s *story) *evidence.Record {
			s.add(step("a", "", 1, "1"))
			return s.add(step("b", "", 3, "3"))
		}, verify.NotProved, "gap"},
		{"a record before that is not there", func(s *story) *evidence.Record {
			s.add(step("a", "c1", 1, "1"))
			p := step("b", "c1", 2, "2")
			p.PreviousRecord = elsewhere
			return s.add(p)
		}, verify.Refuted, "dangling"},
		{"a record before the beginning that is not there", func(s *story) *evidence.Record {
			p := step("a", "c1", 1, "1")
			p.PreviousRecord = elsewhere
			return s.add(p)
		}, verify.NotProved, "dangling"},
		{"something seen that is not there", func(s *story) *evidence.Record {
			p := step("a", "c1", 1, "1")
			p.Saw = []evidence.Digest{elsewhere}
			return s.add(p)
		}, verify.NotProved, "dangling"},
		{"another name for the record before", func(s *story) *evidence.Record {
			p := after(step("b", "c1", 2, "2"), s.add(step("a", "c1", 1, "1")))
			p.PreviousAgent = "somebody"
			return s.add(p)
		}, verify.Refuted, "previous-agent"},
		{"a name of none that it saw", func(s *story) *evidence.Record {
			first := s.add(step("a", "c1", 1, "1"))
			p := step("b", "c1", 2, "2")
			p.Saw, p.PreviousAgent = []evidence.Digest{first.Digest}, "somebody"
			return s.add(p)
		}, verify.Refuted, "previous-agent"},
		{"passed on to somebody else than who followed", func(s *story) *evidence.Record {
			first := s.add(passingOn(step("a", "c1", 1, "1"), "b"))
			s.add(after(step("c", "c1", 2, "2"), first))
			return first
		}, verify.Refuted, "next-agent"},
		{"passed on to nobody yet", func(s *story) *evidence.Record {
			return s.add(passingOn(step("a", "c1", 1, "1"), "b"))
		}, verify.NotProved, "next-agent"},
		{"passed on to nobody yet, and reviewed", func(s *story) *evidence.Record {
			first := s.add(passingOn(step("a", "c1", 1, "1"), "b"))
			s.add(evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "r@example.com", Timestamp: "2026-01-01T00:00:09Z",
				OriginalResponseID: first.Payload.RecordID, ApprovalStatus: evidence.Approved, Saw: []evidence.Digest{first.Digest},
				ChainID: "c1", ChainPosition: 2})
			return first
		}, verify.NotProved, "next-agent"},
		{"times that run backwards", func(s *story) *evidence.Record {
			first := step("a", "c1", 1, "1")
			first.Timestamp = "2026-01-01T00:00:10Z"
			p := after(step("b", "c1", 2, "2"), s.add(first))
			p.Timestamp = "2026-01-01T00:00:09.999999999Z"
			return s.add(p)
		}, verify.Refuted, "time"},
		{"a parent that is not there", func(s *story) *evidence.Record {
			p := step("a", "c1", 1, "1")
			p.ParentRequestID = "somewhere"
			return s.add(p)
		}, verify.NotProved, "parent"},
		{"its own parent", func(s *story) *evidence.Record {
			p := step("a", "c1", 1, "1")
			p.ParentRequestID = p.RequestID
			return s.add(p)
		}, verify.NotProved, "parent"},
	}
}

func TestEveryRuleOfAChain(t *testing.T) {
	for _, tt := range brokenChains() {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			named := tt.tell(s)
			expect(t, s.report(), verify.Chain, tt.status, tt.rule, named)
		})
	}
}

// TestUnboundChainContradictsItself: a chain without digests is never proved, but can be refuted.
func TestUnboundChainContradictsItself(t *testing.T) {
	tests := []struct {
		name   string
		change func(second *evidence.Payload)
		rule   string
		named  int
	}{
		{"nobody of that name before", func(p *evidence.Payload) { p.PreviousAgent = "somebody" }, "previous-agent", 1},
		{"earlier than what is before", func(p *evidence.Payload) { p.Timestamp = "2026-01-01T00:00:00Z" }, "time", 1},
		{"not the one it was passed on to", func(p *evidence.Payload) { p.AgentID = "c" }, "next-agent", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			s.add(passingOn(step("a", "c1", 1, "1"), "b"))
			p := step("b", "c1", 2, "2")
			p.PreviousAgent = "a"
			tt.change(&p)
			s.add(p)
			got := s.report().Of(verify.Chain)
			must.Hold(t, got.Status == verify.Refuted && got.Rule == tt.rule && got.Record == s.records[tt.named].Payload.RecordID,
				"%+v; want refuted by %q, naming record %d", got, tt.rule, tt.named)
		})
	}
}

// TestParentsInACircle: two requests name each other as parent. One record of a request that leads to a beginning is
// enough.
func TestParentsInACircle(t *testing.T) {
	s := newStory(t)
	request := func(agent, chain, id, parent string) evidence.Payload {
		p := step(agent, chain, 1, agent)
		p.RequestID, p.ParentRequestID = id, parent
		return p
	}
	first := s.add(request("a", "c1", "x", "y"))
	s.add(request("b", "c2", "y", "x"))
	expect(t, s.report(), verify.Chain, verify.Refuted, "cycle", first)
	s.add(request("c", "c3", "y", ""))
	expect(t, s.report(), verify.Chain, verify.Proved, "", nil)
	got := s.report().Of(verify.Chain).Reason
	must.Hold(t, strings.Contains(got, "2 of them, by a request's id alone"), "%v", got)
}

// TestRecordLeftOut removes each record of a chain in turn. The log's count shows the gap.
func TestRecordLeftOut(t *testing.T) {
	s := newStory(t)
	parallel(s)
	for i := range s.records[:3] {
		var shown []*evidence.Record
		for j, r := range s.records {
			if j != i {
				shown = append(shown, r)
			}
		}
		got := s.reportOn(shown...).Of(verify.Chain)
		must.Hold(t, got.Status == verify.Refuted && got.Rule == "gap" && got.Record == shown[i].Payload.RecordID, "record %d left out: %+v", i, got)
	}
}

// TestHiddenBranchOfAChain: a hidden branch leaves a gap in the log's count.
func TestHiddenBranchOfAChain(t *testing.T) {
	s := newStory(t)
	first := s.add(step("a", "c1", 1, "1"))
	s.house.Seal(t, after(step("b", "c1", 2, "worse"), first))
	shown := s.add(after(step("b", "c1", 2, "better"), first))
	expect(t, s.report(), verify.Chain, verify.Refuted, "gap", shown)
}

func TestChainRestsOnItsRecords(t *testing.T) {
	s := newStory(t)
	parallel(s)
	o := s.house.Options(t)
	o.Trust.Logs = nil
	got := verify.Bundle(s.house.Bundle(t, s.records...), o).Of(verify.Chain)
	must.Hold(t, got.Status == verify.NotProved && got.Rule == "rests", "a log that the trust file does not name: %+v", got)
	got = verify.Bundle(s.house.Bundle(t, s.records...), verify.Options{}).Of(verify.Chain)
	must.Hold(t, got.Status == verify.NotProved && got.Rule == "rests", "no trust: %+v", got)
}

// TestChainsAreNotAskedOfOthers: the guarantee does not apply to records without a chain, single records and trials.
func TestChainsAreNotAskedOfOthers(t *testing.T) {
	s := newStory(t)
	s.add(output("a"))
	got := s.report().Of(verify.Chain)
	must.Hold(t, got.Reason == "not asked", "of an output: %+v", got)
	r, o := standalone(t, step("a", "c1", 1, "1"))
	got = verify.Record(r, o).Of(verify.Chain)
	must.Hold(t, got.Reason == "not asked", "of one record: %+v", got)
}

// looked is how many time stamps of a record or checkpoint are checked at most.
const looked = 128

// TestFloodOfTimestamps: the sender of a file controls how many time stamps it has. If there are too many, even a
// good one proves nothing.
func TestFloodOfTimestamps(t *testing.T) {
	r, o := standalone(t, output("a"))
	stranger := newTSA(t, "stranger", on(1000))
	for len(r.Timestamps) < looked {
		r.Timestamps = append(r.Timestamps, stranger.plain(t, r, on(1).Add(time.Duration(len(r.Timestamps))*time.Second)))
	}
	got := verify.Record(r, o).Of(verify.Time)
	must.Hold(t, got.Status == verify.Proved, "of %d: %+v", looked, got)
	r.Timestamps = append(r.Timestamps, stranger.plain(t, r, on(2)))
	got = verify.Record(r, o).Of(verify.Time)
	must.Hold(t, got.Status == verify.NotProved && got.Rule == "authority" && strings.Contains(got.Reason, "none is checked"), "of one more: %+v", got)
}

// TestFloodOfReviews: the time for as many deliveries as reviews, and for reviews of reviews, grows linearly. With
// quadratic growth these cases took minutes.
func TestFloodOfReviews(t *testing.T) {
	const many = 12_000
	numbered := func(n int, p evidence.Payload) *evidence.Record {
		p.RecordID, p.Timestamp = fmt.Sprintf("019b76da-a801-791b-aeb8-%012x", n), "2026-01-01T00:00:00Z"
		digest := evidence.DigestOf([]byte(p.RecordID))
		p.Signers = []evidence.SignerInfo{{Algorithm: evidence.ES256, KeyID: digest}}
		return &evidence.Record{Payload: p, Digest: digest, Signatures: [][]byte{{1}}}
	}
	review := func(n int, of *evidence.Record) *evidence.Record {
		return numbered(n, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "r", OriginalResponseID: of.Payload.RecordID,
			ApprovalStatus: evidence.Approved, ModifiedResponse: []byte(`"b"`), Saw: []evidence.Digest{of.Digest}})
	}
	refuted := func(t *testing.T, records []*evidence.Record, first *evidence.Record) {
		t.Helper()
		got := verify.Bundle(&evidence.Bundle{Records: records}, verify.Options{}).Of(verify.HumanReview)
		must.Hold(t, got.Status == verify.Refuted && got.Rule == "approval" && got.Record == first.Payload.RecordID, "%+v", got)
	}
	original := output("a")
	original.Response = []byte(`"a"`)
	first := numbered(0, original)
	t.Run("of one record", func(t *testing.T) {
		records := []*evidence.Record{first}
		for i := range many {
			records = append(records, numbered(1+i, evidence.Payload{ActionType: evidence.Delivery, AgentID: "d", Response: []byte(`"a"`),
				OriginalResponseID: first.Payload.RecordID, Saw: []evidence.Digest{first.Digest}}))
		}
		for i := range many {
			records = append(records, review(1+many+i, first))
		}
		refuted(t, records, records[1+many])
	})
	t.Run("of each other", func(t *testing.T) {
		records := []*evidence.Record{first}
		for i := range many {
			records = append(records, review(1+i, records[i]))
		}
		refuted(t, records, records[1])
	})
}

func TestTimeline(t *testing.T) {
	s := newStory(t)
	planner, toolA, toolB, execution := parallel(s)
	got := verify.Timeline(s.records, s.report().Answers().TimeOf)
	id := func(r *evidence.Record) string { return r.Payload.RecordID }
	want := []struct {
		record  *evidence.Record
		follows []string
	}{{planner, nil}, {toolA, []string{id(planner)}}, {toolB, []string{id(planner)}}, {execution, []string{id(toolA), id(toolB)}}}
	must.Need(t, len(got) == len(want), "%d steps", len(got))
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
	must.Equal(t, cmp.Diff(want, order), "")
	for i, loose := range []bool{false, false, true, true} {
		must.Hold(t, steps[i].ByNameOnly == loose, "step %d: %+v", i+1, steps[i])
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
	steps := verify.Timeline(s.records, s.report().Answers().TimeOf)
	must.Hold(t, len(steps) == 2 && steps[0].RecordID == one, "%+v", steps)
}

func TestTimelineOfATrial(t *testing.T) {
	s := newStory(t)
	s.records = s.house.Try(t, jury.FinalJudge).Records
	steps := verify.Timeline(s.records, s.report().Answers().TimeOf)
	must.Hold(t, len(steps) == len(s.records) && steps[0].Action == evidence.Submission && steps[len(steps)-1].Action == evidence.TrialClosing,
		"%+v", steps)
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
