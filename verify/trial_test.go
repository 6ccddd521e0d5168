package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

// forger is a dishonest clerk who holds every key of a house and of its log.
type forger struct {
	t     *testing.T
	house *jurattest.House
	acts  []evidence.Payload // of an honest trial
	was   []evidence.Digest
}

func newForger(t *testing.T, method jury.Method) *forger {
	return newForgerOf(t, jurattest.New(t), jurattest.New(t).Try(t, method).Records)
}

// newForgerOf forges an honest trial of another house.
func newForgerOf(t *testing.T, house *jurattest.House, honest []*evidence.Record) *forger {
	f := &forger{t: t, house: house}
	for _, r := range honest {
		p := r.Payload  // with its record id, so that an act that is not changed keeps its digest
		p.Signers = nil // the forged act may have another actor
		f.acts = append(f.acts, p)
		f.was = append(f.was, r.Digest)
	}
	return f
}

// seal seals the acts again, with recomputed links and requests.
func (f *forger) seal() *evidence.Bundle {
	f.t.Helper()
	return f.house.Bundle(f.t, f.sealBy(func(p evidence.Payload) *evidence.Record { return f.house.Seal(f.t, p) })...)
}

func (f *forger) sealBy(seal func(evidence.Payload) *evidence.Record) []*evidence.Record {
	f.t.Helper()
	links := map[evidence.Digest]evidence.Digest{}
	var records []*evidence.Record
	for i, p := range f.acts {
		if p.ActionType == evidence.PhaseOpening {
			p.Response = f.announce(p, f.was[i], links)
		}
		p.PreviousRecord = renamed(links, p.PreviousRecord)
		p.RequestDigest = renamed(links, p.RequestDigest)
		p.Saw = slices.Clone(p.Saw)
		for j, d := range p.Saw {
			p.Saw[j] = renamed(links, d)
		}
		r := seal(p)
		links[f.was[i]] = r.Digest
		records = append(records, r)
	}
	return records
}

// announce updates the requests that an opening announces, if the honest opening announced them.
func (f *forger) announce(p evidence.Payload, was evidence.Digest, links map[evidence.Digest]evidence.Digest) jsontext.Value {
	f.t.Helper()
	body, err := jury.DecodeBody(p.ActionType, p.Response)
	if err != nil { // the forged opening announces nothing
		return p.Response
	}
	opening := body.(*jury.Opening)
	for i, asked := range opening.Requests {
		for _, answer := range f.acts {
			if answer.PreviousRecord != was || answer.RequestDigest != asked.RequestDigest {
				continue
			}
			var saw []evidence.Digest
			for _, d := range answer.Saw {
				if now, sealed := links[d]; sealed {
					saw = append(saw, now)
				}
			}
			seats := opening.Settings.Everyone()
			seat := slices.IndexFunc(seats, func(s jury.Seat) bool { return s.JurorID == asked.JurorID })
			if seat < 0 { // an act by a seat that the opening does not have
				continue
			}
			opening.Requests[i].RequestDigest = must.Get(opening.Request(seats[seat], p.Case, saw).Digest())(f.t)
			links[asked.RequestDigest] = opening.Requests[i].RequestDigest
		}
	}
	doc := must.Get(jury.EncodeBody(opening))(f.t)
	return doc
}

func renamed(links map[evidence.Digest]evidence.Digest, d evidence.Digest) evidence.Digest {
	if other, ok := links[d]; ok {
		return other
	}
	return d
}

// find returns the first act of a type, and its place.
func (f *forger) find(action evidence.ActionType) (*evidence.Payload, int) {
	f.t.Helper()
	i := slices.IndexFunc(f.acts, func(p evidence.Payload) bool { return p.ActionType == action })
	must.Need(f.t, i >= 0, "the trial has no %s", action)
	return &f.acts[i], i
}

// edit changes one member of an act's response.
func (f *forger) edit(action evidence.ActionType, change func(map[string]any)) {
	f.t.Helper()
	p, _ := f.find(action)
	var body map[string]any
	must.Do(f.t, json.Unmarshal(p.Response, &body))
	change(body)
	doc := must.Get(json.Marshal(body))(f.t)
	p.Response = jsontext.Value(doc)
}

func (f *forger) drop(i int) {
	f.acts = slices.Delete(f.acts, i, i+1)
	f.was = slices.Delete(f.was, i, i+1)
}

func TestHonestTrialIsProved(t *testing.T) {
	for _, method := range []jury.Method{jury.MajorityVote, jury.WeightedAverage, jury.FinalJudge} {
		h := jurattest.New(t)
		b := h.Bundle(t, h.Try(t, method).Records...)
		r := verify.Bundle(b, h.Options(t))
		must.Hold(t, r.Outcome == verify.Proved, "%s: %s: %+v", method, r.Outcome, r.Details)
		f := r.Of(verify.NonRepudiation)
		must.Hold(t, f.Status == verify.NotProved && f.Rule == "custody", "%s: non-repudiation with the operator's keys: %+v", method, f)
		r = verify.Bundle(b, verify.Options{UnsafeAllowMock: true})
		must.Hold(t, r.Outcome == verify.NotProved, "%s without trust: %s, want %s", method, r.Outcome, verify.NotProved)
	}
}

// A forgery is a change that a clerk with every key makes to an honest trial.
type forgery struct {
	name      string
	forge     func(f *forger)
	guarantee verify.Guarantee
	rule      string
	act       evidence.ActionType // the act that is named
}

func forgeries() []forgery {
	return []forgery{
		{"another verdict", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["position"] = "unsafe_fail" })
		}, verify.Verdict, jury.RuleVerdict, evidence.FinalJudgment},
		{"another score", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["score"] = 99 })
		}, verify.Verdict, jury.RuleVerdict, evidence.FinalJudgment},
		{"degradation concealed in another vote", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["degraded"] = true })
		}, verify.Verdict, jury.RuleVerdict, evidence.FinalJudgment},
		{"another consensus", func(f *forger) {
			f.edit(evidence.ConsensusCheck, func(b map[string]any) {
				b["consensusCheck"].(map[string]any)["agreementLevel"] = 1
			})
		}, verify.Verdict, jury.RuleConsensus, evidence.ConsensusCheck},
		{"scores that do not sum", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { b["totalScore"] = 100 })
		}, verify.Verdict, jury.RuleAnswer, evidence.Evaluation},
		{"an evaluation by another juror's name", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) {
				if b["jurorId"] == "juror-c" { // under load, juror-c can answer first
					b["jurorId"] = "juror-a"
				} else {
					b["jurorId"] = "juror-c"
				}
			})
		}, verify.Verdict, jury.RuleAnswer, evidence.Evaluation},
		{"settings changed on the way", func(f *forger) {
			for i := len(f.acts) - 1; i >= 0; i-- {
				if f.acts[i].ActionType == evidence.PhaseOpening {
					f.acts[i].Response = jsontext.Value(strings.Replace(string(f.acts[i].Response), `"threshold":2`, `"threshold":0.5`, 1))
					return
				}
			}
		}, verify.Verdict, jury.RuleSettings, evidence.PhaseOpening},
		{"an evaluation left out", func(f *forger) {
			_, i := f.find(evidence.Evaluation)
			f.drop(i)
		}, verify.Completeness, jury.RuleSequence, evidence.ConsensusCheck},
		{"an absence in the place of an evaluation", func(f *forger) {
			p, _ := f.find(evidence.Evaluation)
			body := jury.Absent{JurorID: p.AgentID, Phase: jury.Initial, Reason: jury.TimedOut, Detail: "late"}
			doc := must.Get(jury.EncodeBody(&body))(f.t)
			*p = evidence.Payload{ActionType: evidence.Absence, AgentID: "clerk", Timestamp: p.Timestamp, ChainID: p.ChainID,
				ChainPosition: p.ChainPosition, PreviousRecord: p.PreviousRecord, Case: p.Case, Response: doc}
		}, verify.Verdict, jury.RuleConsensus, evidence.ConsensusCheck},
		{"a statement that saw its own round", func(f *forger) {
			_, i := f.find(evidence.Statement)
			f.acts[i+1].Saw = append(slices.Clone(f.acts[i+1].Saw), f.was[i])
			f.acts[i+1].ChainPosition++
		}, verify.Simultaneity, jury.RuleSaw, evidence.Statement},
		{"a statement that was shown less", func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.Saw = p.Saw[:len(p.Saw)-1]
		}, verify.Simultaneity, jury.RuleRequest, evidence.PhaseOpening},
		{"a request that was not announced", func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.RequestDigest[0] ^= 1
		}, verify.Simultaneity, jury.RuleRequest, evidence.Statement},
		{"an announcement that does not rebuild", func(f *forger) {
			f.edit(evidence.PhaseOpening, func(b map[string]any) {
				b["requests"].([]any)[0].(map[string]any)["requestDigest"] = evidence.DigestOf(nil).String()
			})
		}, verify.Simultaneity, jury.RuleRequest, evidence.PhaseOpening},
		{"the closing cut off", func(f *forger) {
			_, i := f.find(evidence.TrialClosing)
			f.drop(i)
		}, verify.Completeness, "closing", ""},
		{"another count", func(f *forger) {
			f.edit(evidence.TrialClosing, func(b map[string]any) { b["acts"] = 3 })
		}, verify.Completeness, jury.RuleCompletion, evidence.TrialClosing},
		{"two judgments", func(f *forger) {
			p, i := f.find(evidence.FinalJudgment)
			second := *p
			second.RecordID = "019b76da-a826-72cf-a88c-da576ae5e204"
			f.acts = slices.Insert(f.acts, i+1, second)
			f.was = slices.Insert(f.was, i+1, evidence.DigestOf([]byte("nothing follows it")))
		}, verify.Completeness, jury.RuleSequence, evidence.FinalJudgment},
		{"another case's evidence", func(f *forger) {
			p, _ := f.find(evidence.Submission)
			p.Response = jsontext.Value(strings.Replace(string(p.Response), "Kassel", "Berlin", 1))
		}, verify.Completeness, "case", evidence.Submission},
		{"an act of another trial", func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.ChainID = "trial-01b76a11-0000-7000-8000-000000000000"
		}, verify.Completeness, "one-trial", evidence.Statement},
		{"a clerk relieved in the middle", func(f *forger) {
			p, _ := f.find(evidence.FinalJudgment)
			p.AgentID = "another-clerk"
		}, verify.Completeness, "one-clerk", evidence.FinalJudgment},
		{"an act of another case", func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.Case[0] ^= 1
		}, verify.Completeness, "one-trial", evidence.Statement},
		{"an act that claims to be older than what it names", func(f *forger) {
			p, _ := f.find(evidence.FinalJudgment)
			p.Timestamp = "2025-12-31T00:00:00.000Z"
		}, verify.Order, "claimed-time", evidence.FinalJudgment},
		{"members that nobody knows", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["pardoned"] = true })
		}, verify.Completeness, jury.RuleBody, evidence.FinalJudgment},
	}
}

// TestForgedTrials: a clerk with every key seals trials that did not happen in this way. Signatures, time stamps and
// places in the log are all genuine. Only the rules of the trial detect the forgery.
func TestForgedTrials(t *testing.T) {
	for _, tt := range forgeries() {
		t.Run(tt.name, func(t *testing.T) {
			f := newForger(t, jury.FinalJudge)
			tt.forge(f)
			b := f.seal()
			r := verify.Bundle(b, f.house.Options(t))
			for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time, verify.Order} {
				if g == tt.guarantee {
					continue
				}
				if got := r.Of(g); got.Status != verify.Proved {
					t.Errorf("signatures, time stamps or places of the forgery are not valid, so the test tests something else: %+v", got)
				}
			}
			want := verify.Refuted
			if tt.act == "" {
				want = verify.NotProved
			}
			got := r.Of(tt.guarantee)
			must.Need(t, r.Outcome == want && got.Status == want && got.Rule == tt.rule,
				"outcome %s, %s: %+v; want %s by rule %s", r.Outcome, tt.guarantee, got, want, tt.rule)
			must.Hold(t, tt.act == "" || actionOf(b, got.Record) == tt.act,
				"the report names %q, of type %q; want a %s", got.Record, actionOf(b, got.Record), tt.act)
		})
	}
}

// TestHiddenBranch: the clerk opens a second branch of a trial and shows the better one.
func TestHiddenBranch(t *testing.T) {
	f := newForger(t, jury.MajorityVote)
	hidden := f.acts[1]
	hidden.RecordID = "019b76da-a826-72cf-a88c-da576ae5e204"
	var shown []*evidence.Record
	for i, p := range f.acts {
		if i == 2 { // the other branch began while the shown one continued
			f.house.Seal(t, hidden)
		}
		shown = append(shown, f.house.Seal(t, p))
	}
	r := verify.Bundle(f.house.Bundle(t, shown...), f.house.Options(t))
	got := r.Of(verify.Completeness)
	must.Hold(t, got.Status == verify.Refuted && got.Rule == "gap" && got.Record == shown[2].Payload.RecordID, "completeness: %+v", got)
}

// TestDecisionsInATrialsChain: people's decisions are in the trial's chain. They do not weaken its proof, even if the
// file leaves out decisions made after the closing.
func TestDecisionsInATrialsChain(t *testing.T) {
	h := jurattest.New(t)
	done := h.Try(t, jury.MajorityVote)
	last := done.Records[len(done.Records)-1]
	review := h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "user@example.com", Timestamp: "2026-01-01T00:00:02Z",
		OriginalResponseID: last.Payload.RecordID, ApprovalStatus: evidence.Approved, ChainID: done.ID, Case: last.Payload.Case, Saw: []evidence.Digest{last.Digest}})
	for _, records := range [][]*evidence.Record{done.Records, append(slices.Clone(done.Records), review)} {
		got := verify.Bundle(h.Bundle(t, records...), h.Options(t)).Of(verify.Completeness)
		must.Hold(t, got.Status == verify.Proved, "%d records: %+v", len(records), got)
	}
	stray := h.Seal(t, output("a"))
	other := h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "a", Timestamp: "2026-01-01T00:00:02Z", Response: jsontext.Value(`"x"`),
		ChainID: done.ID, Case: evidence.DigestOf(nil), Saw: []evidence.Digest{last.Digest}})
	for _, r := range []*evidence.Record{stray, other} {
		got := verify.Bundle(h.Bundle(t, append(slices.Clone(done.Records), r)...), h.Options(t)).Of(verify.Completeness)
		must.Hold(t, got.Status == verify.Refuted && got.Rule == "foreign" && got.Record == r.Payload.RecordID, "a foreign record: %+v", got)
	}
}

func TestRerunIsCounted(t *testing.T) {
	h := jurattest.New(t)
	for _, want := range []string{"submission 1 of", "submission 2 of", "submission 3 of"} {
		r := verify.Bundle(h.Bundle(t, h.Try(t, jury.MajorityVote).Records...), h.Options(t))
		got := r.Of(verify.Completeness)
		must.Hold(t, got.Status == verify.Proved && strings.Contains(got.Reason, want), "completeness: %+v; want %q", got, want)
	}
}

func actionOf(b *evidence.Bundle, recordID string) evidence.ActionType {
	for _, r := range b.Records {
		if r.Payload.RecordID == recordID {
			return r.Payload.ActionType
		}
	}
	return ""
}

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
				must.Hold(t, got == nil, "%s, %s: %+v is stated", c.name, name, got)
				continue
			}
			must.Hold(t, got != nil && got.Position == c.want && got.Open == c.open,
				"%s, %s: %+v, want %s, open %t: %+v", c.name, name, got, c.want, c.open, r.Details)
		}
		o.Trust.Keys = nil
		r := verify.Bundle(b, o)
		must.Hold(t, r.TrialOutcome == nil, "%s: without keys %+v is stated", c.name, r.TrialOutcome)
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
		r := verify.Bundle(h.Bundle(t, records[:n]...), h.Options(t))
		must.Hold(t, r.TrialOutcome == nil, "after %d acts: %+v", n, r.TrialOutcome)
	}
}

// TestTimelineSaysWhatWasDecided: a step of a review says whether it approves, modifies or rejects, and what a verdict became.
func TestTimelineSaysWhatWasDecided(t *testing.T) {
	c := decidedTrials()[0]
	b, _ := c.make(t)
	steps := verify.Timeline(b.Records, nil)
	last := steps[len(steps)-1]
	must.Hold(t, last.Status == evidence.ApprovedWithModifications && last.Verdict != nil && last.Verdict.Position == jury.UnsafeFail, "%+v", last)
}

func TestConfigurationOfARecord(t *testing.T) {
	step := func(change func(p *evidence.Payload)) evidence.Payload {
		p := output("a")
		p.ActionType, p.ChainPosition = evidence.ChainStep, 1
		change(&p)
		return p
	}
	tests := []struct {
		name   string
		act    evidence.Payload
		change func(r *evidence.Record, o *verify.Options)
		status verify.Status
		rule   string
	}{
		{"a model's output", output("a"), nil, verify.Proved, ""},
		{"a step that says all", step(func(*evidence.Payload) {}), nil, verify.Proved, ""},
		{"a step without its model", step(func(p *evidence.Payload) { p.Model = "" }), nil, verify.NotProved, "unstated"},
		{"a step without its model's version", step(func(p *evidence.Payload) { p.ModelVersion = "" }), nil, verify.NotProved, "unstated"},
		{"a step without parameters", step(func(p *evidence.Payload) { p.Parameters = nil }), nil, verify.NotProved, "unstated"},
		{"nobody knows whose", output("a"), func(r *evidence.Record, o *verify.Options) { o.Trust.Keys = nil }, verify.NotProved, "rests"},
		{"another's key", output("a"), func(r *evidence.Record, o *verify.Options) { o.Trust.Keys[0].Name = "b" }, verify.NotProved, "rests"},
		{"a signature that was changed", output("a"), func(r *evidence.Record, o *verify.Options) { r.Signatures[0][9] ^= 1 }, verify.NotProved, "rests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, o := standalone(t, tt.act)
			if tt.change != nil {
				tt.change(r, &o)
			}
			report := verify.Record(r, o)
			got := report.Of(verify.Configuration)
			must.Hold(t, got.Status == tt.status && got.Rule == tt.rule, "%+v; want %s by %q", got, tt.status, tt.rule)
			must.Hold(t, tt.status != verify.Proved || strings.Contains(got.Reason, "the actor's word"),
				"the reason does not say who states the configuration: %s", got.Reason)
			must.Hold(t, tt.rule != "unstated" || report.Outcome == verify.Proved, "outcome %s: it is not required", report.Outcome)
		})
	}
}

// TestConfigurationIsNotAsked: the guarantee does not apply to records that no model makes.
func TestConfigurationIsNotAsked(t *testing.T) {
	h := jurattest.New(t)
	r := h.Seal(t, reviewOf(h.Seal(t, output("a")), evidence.Approved, ""))
	got := verify.Record(r, h.Options(t)).Of(verify.Configuration)
	must.Hold(t, got.Reason == "not asked", "%+v", got)
}

// TestConfigurationOfATrial compares what jurors and judge say about themselves with their seats.
func TestConfigurationOfATrial(t *testing.T) {
	model := func(f *forger, action evidence.ActionType, name string) {
		p, _ := f.find(action)
		p.Model = name
	}
	other := func(f *forger, name string) {
		model(f, evidence.Evaluation, name)
		f.edit(evidence.FinalJudgment, func(b map[string]any) { b["degraded"] = true })
	}
	tests := []struct {
		name   string
		change func(f *forger)
		status verify.Status
		rule   string
		actor  string
	}{
		{"honest", func(f *forger) {}, verify.Proved, "", ""},
		{"a version of the model", func(f *forger) { model(f, evidence.Evaluation, "scripted-2026-01-01") }, verify.Proved, "", ""},
		{"a revision of the model", func(f *forger) { model(f, evidence.Evaluation, "scripted@17") }, verify.Proved, "", ""},
		{"a tag of the model", func(f *forger) { model(f, evidence.Statement, "scripted:latest") }, verify.Proved, "", ""},
		{"another model", func(f *forger) { other(f, "rules") }, verify.NotProved, "model", "juror-"},
		{"another model that begins so", func(f *forger) { other(f, "scripted2") }, verify.NotProved, "model", "juror-"},
		{"a model that nobody reported", func(f *forger) { model(f, evidence.Statement, jury.Unreported) }, verify.NotProved, "model", "juror-"},
		{"another judge's parameters", func(f *forger) {
			p, _ := f.find(evidence.JudgeOpinion)
			p.Parameters = jsontext.Value(`{"temperature":2}`)
		}, verify.Refuted, "parameters", "judge"},
		{"other parameters in a statement", func(f *forger) {
			p, _ := f.find(evidence.Statement)
			p.Parameters = jsontext.Value(`{"temperature":2}`)
		}, verify.Refuted, "parameters", "juror-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newForger(t, jury.FinalJudge)
			tt.change(f)
			b := f.seal()
			report := verify.Bundle(b, f.house.Options(t))
			got := report.Of(verify.Configuration)
			must.Hold(t, got.Status == tt.status && got.Rule == tt.rule && strings.Contains(got.Reason, tt.actor),
				"%+v; want %s by %q of %q", got, tt.status, tt.rule, tt.actor)
			must.Hold(t, (report.Outcome == verify.Refuted) == (tt.status == verify.Refuted), "outcome %s", report.Outcome)
		})
	}
}

// TestConfigurationWithoutTheSeat: an act alone, or without its opening, does not show what its seat was given.
func TestConfigurationWithoutTheSeat(t *testing.T) {
	f := newForger(t, jury.FinalJudge)
	b := f.seal()
	o := f.house.Options(t)
	for _, r := range b.Records {
		role := r.Payload.Role()
		if role != evidence.RoleJuror && role != evidence.RoleJudge {
			continue
		}
		got := verify.Record(r, o).Of(verify.Configuration)
		must.Hold(t, got.Status == verify.NotProved && got.Rule == "seat", "%s alone: %+v", r.Payload.ActionType, got)
	}
	// An actor without a seat in the opening that it answers.
	f = newForger(t, jury.FinalJudge)
	p, i := f.find(evidence.Evaluation)
	p.AgentID = "juror-x"
	b = f.seal()
	got := verify.Bundle(b, f.house.Options(t)).For(verify.Configuration, b.Records[i].Payload.RecordID)
	must.Hold(t, got.Rule == "seat", "without a seat: %+v", got)
}

// TestConfigurationOfHonestTrials: jurors leave out the parameters of their seats; and a stand-in has no model.
func TestConfigurationOfHonestTrials(t *testing.T) {
	h := jurattest.New(t)
	settings := jurattest.Settings(jury.FinalJudge)
	jurors, judge := jurattest.Panel()
	for i := range settings.Seats {
		settings.Seats[i].Parameters = jsontext.Value(`{"temperature": 0.20}`)
	}
	jurors[2].(*jurattest.Juror).Err = jury.ErrBlocked
	done := must.Get(trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Settings: settings, Jurors: jurors,
		Judge: judge, Now: h.Now, Random: h.Random}, jurattest.Case(t)))(t)
	must.Need(t, done.Result.Degraded, "no juror was blocked")
	report := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t))
	got := report.Of(verify.Configuration)
	must.Hold(t, report.Outcome == verify.Proved && got.Status == verify.Proved, "%s, %+v", report.Outcome, got)
}
