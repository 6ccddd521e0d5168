package verify_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

// thirdPlans are honest trials with levels, tables, repetition, a reading judge, median and calibrated.
func thirdPlans() map[string]func() (jury.Settings, []jury.Juror, jury.Juror) {
	plan := func(method jury.Method, change func(s *jury.Settings, jurors []jury.Juror, judge *jurattest.Juror)) func() (jury.Settings, []jury.Juror, jury.Juror) {
		return func() (jury.Settings, []jury.Juror, jury.Juror) {
			settings := jurattest.Thorough(method)
			jurors, judge := jurattest.ThoroughPanel()
			if change != nil {
				change(&settings, jurors, judge.(*jurattest.Juror))
			}
			return settings, jurors, judge
		}
	}
	passed, failed := jurattest.Grade(jury.SafePass, 3), jurattest.Grade(jury.UnsafeFail, 0)
	moved := []jury.Speech{{Statement: "The others have a point.", Position: jury.UnsafeFail, Reasoning: "What they quote stands there.", Updated: &failed}}
	return map[string]func() (jury.Settings, []jury.Juror, jury.Juror){
		"third-thorough": plan(jury.FinalJudge, nil),
		"third-unanimous": plan(jury.MajorityVote, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds, jurors[1] = 1, &jurattest.Juror{Opinion: passed}
		}),
		"third-abstention-to-the-end": plan(jury.MajorityVote, func(s *jury.Settings, _ []jury.Juror, _ *jurattest.Juror) { s.Collaborative = false }),
		"third-steady-dissent": plan(jury.WeightedAverage, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 0
			jurors[1].(*jurattest.Juror).Again = nil
		}),
		"third-median": plan(jury.Median, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 0
			jurors[1].(*jurattest.Juror).Again = nil
		}),
		"third-median-of-nobody": plan(jury.Median, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds = 0
			for i := range jurors {
				jurors[i] = &jurattest.Juror{Err: jury.ErrInvalid}
			}
		}),
		"third-turned-by-talk": plan(jury.MajorityVote, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds, jurors[1].(*jurattest.Juror).Again = 1, nil
			jurors[1].(*jurattest.Juror).Speeches, jurors[2].(*jurattest.Juror).Speeches = nil, moved
		}),
		"third-calibrated": plan(jury.Calibrated, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds, jurors[1].(*jurattest.Juror).Again = 1, nil
			jurors[1].(*jurattest.Juror).Speeches, jurors[2].(*jurattest.Juror).Speeches = nil, moved
			s.Weights, s.EffectiveVotes = map[string]int{"juror-a": -300, "juror-b": 500, "juror-c": 600}, 1.82
		}),
		"third-calibrated-tie": plan(jury.Calibrated, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds, jurors[1] = 0, &jurattest.Juror{Opinion: passed}
			s.Weights = map[string]int{"juror-a": -300, "juror-b": -500, "juror-c": -600}
		}),
		"third-calibrated-without-a-quorum": plan(jury.Calibrated, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			jurors[0], jurors[1] = &jurattest.Juror{Err: jury.ErrInvalid}, &jurattest.Juror{Err: jury.ErrInvalid}
			s.Weights = map[string]int{"juror-a": 300, "juror-b": 500, "juror-c": 600}
		}),
		"third-judge-silent-at-first": plan(jury.FinalJudge, func(s *jury.Settings, jurors []jury.Juror, judge *jurattest.Juror) {
			s.MaxRounds, judge.Reading, jurors[1].(*jurattest.Juror).Again = 1, &jury.Opinion{}, nil
		}),
		"third-milder-judge": plan(jury.FinalJudge, func(s *jury.Settings, jurors []jury.Juror, _ *jurattest.Juror) {
			s.MaxRounds, jurors[0], jurors[1] = 1, &jurattest.Juror{Opinion: failed}, &jurattest.Juror{Opinion: failed}
		}),
		"third-task-failed": plan(jury.FinalJudge, func(s *jury.Settings, _ []jury.Juror, judge *jurattest.Juror) {
			o := jurattest.Grade(jury.SafePass, 3)
			o.Levels["task_completion"], o.AxisScores["task_completion"], o.TotalScore = 0, 0, 80
			s.MaxRounds, judge.Opinion = 1, o
		}),
	}
}

// editOne changes the body of the first act of a type whose body contains a text.
func (f *forger) editOne(action evidence.ActionType, containing string, change func(map[string]any)) *evidence.Payload {
	f.t.Helper()
	i := slices.IndexFunc(f.acts, func(p evidence.Payload) bool {
		return p.ActionType == action && strings.Contains(string(p.Response), containing)
	})
	must.Need(f.t, i >= 0, "the trial has no %s with %s", action, containing)
	var body map[string]any
	must.Do(f.t, json.Unmarshal(f.acts[i].Response, &body))
	change(body)
	doc := must.Get(json.Marshal(body))(f.t)
	f.acts[i].Response = jsontext.Value(doc)
	return &f.acts[i]
}

const (
	inRepetition = `"phase":"repetition"`
	inDiscussion = `"phase":"discussion"`
)

// A thirdForgery is a forgery of such a trial.
type thirdForgery struct {
	of, name  string
	forge     func(f *forger)
	guarantee verify.Guarantee
	rule      string
}

func thirdForgeries() []thirdForgery {
	object := func(v any) map[string]any { return v.(map[string]any) }
	return []thirdForgery{
		{"third-thorough", "a repetition left out", func(f *forger) {
			for i := len(f.acts) - 1; i >= 0; i-- {
				if strings.Contains(string(f.acts[i].Response), inRepetition) {
					f.drop(i)
				}
			}
		}, verify.Completeness, jury.RuleSequence},
		{"third-unanimous", "a unanimous jury asked again", func(f *forger) {
			f.editOne(evidence.PhaseOpening, inDiscussion, func(b map[string]any) { b["phase"], b["roundNumber"] = "repetition", 0 })
		}, verify.Completeness, jury.RuleSequence},
		{"third-thorough", "the wrong seat asked again", func(f *forger) {
			f.editOne(evidence.PhaseOpening, inRepetition, func(b map[string]any) { object(b["requests"].([]any)[0])["jurorId"] = "juror-a" })
		}, verify.Simultaneity, jury.RuleRequest},
		{"third-thorough", "a second answer that saw the jury", func(f *forger) {
			p := f.editOne(evidence.Evaluation, inRepetition, func(map[string]any) {})
			_, first := f.find(evidence.Evaluation)
			p.Saw = append(slices.Clone(p.Saw), f.was[first])
		}, verify.Simultaneity, jury.RuleRequest},
		{"third-thorough", "a reading that saw the jury", func(f *forger) {
			p, _ := f.find(evidence.JudgeOpinion)
			_, first := f.find(evidence.Evaluation)
			p.Saw, p.ChainPosition = append(slices.Clone(p.Saw), f.was[first]), p.ChainPosition+1
		}, verify.Simultaneity, jury.RuleSaw},
		{"third-thorough", "a judge that was not shown its reading", func(f *forger) {
			for i := range f.acts {
				if p := &f.acts[i]; p.ActionType == evidence.JudgeOpinion && len(p.Saw) > 1 {
					p.Saw = slices.Delete(slices.Clone(p.Saw), 1, 2)
				}
			}
		}, verify.Simultaneity, jury.RuleRequest},
		{"third-thorough", "scores that do not follow from levels", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) {
				scores, step := object(b["axisScores"]), -1.0
				if scores["tool_usage"] == 0.0 { // whichever juror was first
					step = 1
				}
				scores["tool_usage"] = scores["tool_usage"].(float64) + step
				b["totalScore"] = b["totalScore"].(float64) + step
			})
		}, verify.Verdict, jury.RuleLevels},
		{"third-thorough", "no levels", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { delete(b, "levels") })
		}, verify.Verdict, jury.RuleLevels},
		{"third-thorough", "a level that there is not", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { object(b["levels"])["safety"] = 4 })
		}, verify.Verdict, jury.RuleLevels},
		{"third-thorough", "no tables", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { delete(b, "work") })
		}, verify.Verdict, jury.RuleAnswer},
		{"third-thorough", "a quotation made up", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) {
				object(object(object(b["work"])["requests"].([]any)[0])["request"])["quote"] = "Where is parcel 18?"
			})
		}, verify.Verdict, "quotation"},
		{"third-thorough", "a finding in a message that there is not", func(f *forger) {
			f.edit(evidence.JudgeOpinion, func(b map[string]any) {
				b["findings"] = []any{map[string]any{"message": 5, "quote": "Kassel", "rule": "r", "axis": "safety", "severity": "minor", "explanation": "e"}}
			})
		}, verify.Verdict, "quotation"},
		{"third-thorough", "a table that answers maybe", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) {
				object(object(b["work"])["acts"].([]any)[0])["holds"] = "maybe"
			})
		}, verify.Verdict, jury.RuleAnswer},
		{"third-thorough", "an abstention counted", func(f *forger) {
			f.editOne(evidence.ConsensusCheck, inRepetition, func(b map[string]any) {
				check := object(b["consensusCheck"])
				check["agreementLevel"], check["consensusStatus"] = 1, "unanimous"
			})
		}, verify.Verdict, jury.RuleConsensus},
		{"third-abstention-to-the-end", "an abstention shown as a vote", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) {
				for _, v := range b["votes"].([]any) {
					if vote := object(v); vote["abstained"] == true {
						delete(vote, "abstained")
						vote["position"], vote["totalScore"], vote["confidence"] = "safe_pass", 100, 0.8
					}
				}
			})
		}, verify.Verdict, jury.RuleVerdict},
		{"third-turned-by-talk", "a reason for a review hidden", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { delete(b, "review") })
		}, verify.Verdict, jury.RuleVerdict},
		{"third-steady-dissent", "an extreme vote hidden", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { delete(b, "review") })
		}, verify.Verdict, jury.RuleVerdict},
		{"third-milder-judge", "a milder judge hidden", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { delete(b, "review") })
		}, verify.Verdict, jury.RuleVerdict},
		{"third-calibrated", "what talk would have done hidden", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { delete(b, "afterTalk") })
		}, verify.Verdict, jury.RuleVerdict},
		{"third-calibrated", "a weight too large", func(f *forger) {
			f.editOne(evidence.PhaseOpening, `"initial"`, func(b map[string]any) { object(object(b["settings"])["weights"])["juror-a"] = -1000001 })
		}, verify.Verdict, jury.RuleSettings},
		{"third-thorough", "levels that do not rise", func(f *forger) {
			f.editOne(evidence.PhaseOpening, `"initial"`, func(b map[string]any) {
				axis := object(object(b["settings"])["rubric"].([]any)[1])
				object(axis["levels"].([]any)[2])["points"] = 5
			})
		}, verify.Verdict, jury.RuleSettings},
	}
}

func thirdVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	for _, tt := range thirdForgeries() {
		f := forgerOfCommitted(t, tt.of)
		tt.forge(f)
		list = append(list, f.given(slug("forged third", tt.name)))
	}
	return list
}

// TestForgedThirdTrials: such honest trials are proved, and each forgery is refuted by its rule.
func TestForgedThirdTrials(t *testing.T) {
	honest := map[string][]*evidence.Record{}
	for name, plan := range thirdPlans() {
		h := jurattest.New(t)
		settings, jurors, judge := plan()
		honest[name] = h.TryBefore(t, settings, jurors, judge).Records
		r := verify.Bundle(h.Bundle(t, honest[name]...), h.Options(t))
		must.Hold(t, r.Outcome == verify.Proved, "%s: %s: %+v", name, r.Outcome, r.Details)
	}
	for _, tt := range thirdForgeries() {
		f := newForgerOf(t, jurattest.New(t), honest[tt.of])
		tt.forge(f)
		r := verify.Bundle(f.seal(), f.house.Options(t))
		if got := r.Of(tt.guarantee); r.Outcome != verify.Refuted || got.Status != verify.Refuted || got.Rule != tt.rule {
			t.Errorf("%s: %s, %+v; want it refuted by %s", tt.name, r.Outcome, got, tt.rule)
		}
	}
}

// A tagged is a trial under a review, in a log that a hostile operator can write with any counts.
type tagged struct {
	*jurattest.House
	t       *testing.T
	records []*evidence.Record
}

func newTagged(t *testing.T) *tagged {
	t.Helper()
	h := jurattest.NewForStrangers(t)
	jurors, judge := jurattest.Panel()
	for _, juror := range jurors {
		juror.(*jurattest.Juror).Delay *= 20 // the vectors are made of this log: its order is the same on a busy machine, too
	}
	tried := h.TryBefore(t, jurattest.Settings(jury.MajorityVote), jurors, judge).Records
	review := h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "reviewer", OriginalResponseID: judgmentOf(tried).Payload.RecordID,
		Timestamp: evidence.FormatTime(h.Now()), ChainID: tried[0].Payload.ChainID, Saw: []evidence.Digest{judgmentOf(tried).Digest}, ApprovalStatus: evidence.Approved})
	return &tagged{h, t, h.Bundle(t, append(slices.Clone(tried), review)...).Records}
}

func judgmentOf(records []*evidence.Record) *evidence.Record {
	return records[slices.IndexFunc(records, isJudgment)]
}

func isJudgment(r *evidence.Record) bool { return r.Payload.ActionType == evidence.FinalJudgment }

// logged is the file of a log that counted the records in this way, and the log's entries. All is signed with the log's key.
func (g *tagged) logged(change func(i int, r *evidence.Record, c *evidence.LogCounts)) (*evidence.Bundle, []byte) {
	g.t.Helper()
	records := make([]*evidence.Record, len(g.records))
	for i, r := range g.records {
		again := *r
		counts := r.Log.Counts()
		change(i, r, &counts)
		again.Log = counts.At(int64(i))
		records[i] = &again
	}
	b := &evidence.Bundle{Records: records, Checkpoint: (&chance{t: g.t, house: g.House}).prove(records)}
	var entries []byte
	for _, r := range records {
		entries = append(append(entries, r.LogEntry(r.Log.Counts())...), '\n')
	}
	return b, entries
}

// A lie is what a log can say falsely of actors and subjects.
type lie struct {
	name    string
	rule    string // with which it is refuted; "": it is no lie
	entries bool   // only the log's entries show it
	change  func(i int, r *evidence.Record, c *evidence.LogCounts)
}

func lies() []lie {
	other := evidence.SubjectTag(evidence.RoleAgent, "another agent")
	untagged := func(c *evidence.LogCounts) { c.ActorSeq, c.Subject, c.SubjectSeq = 0, evidence.Digest{}, 0 }
	ofReview := func(r *evidence.Record) bool { return r.Payload.ActionType == evidence.HumanReview }
	ofClerk := func(r *evidence.Record) bool { return r.Payload.Role() == evidence.RoleClerk }
	return []lie{
		{"the truth", "", false, func(int, *evidence.Record, *evidence.LogCounts) {}},
		{"a log that counts no actors", "", false, func(_ int, _ *evidence.Record, c *evidence.LogCounts) { untagged(c) }},
		{"a log that begins to count", "", false, func() func(int, *evidence.Record, *evidence.LogCounts) {
			seen := map[evidence.Digest]int64{}
			return func(i int, r *evidence.Record, c *evidence.LogCounts) {
				if i == 0 {
					clear(seen)
				}
				if i < 2 {
					untagged(c)
					return
				}
				tag := evidence.ActorTag(r.Payload.Role(), r.Payload.Actor())
				seen[tag]++
				c.ActorSeq = seen[tag]
			}
		}()},
		{"a judgment about another agent", "subject", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if isJudgment(r) {
				c.Subject, c.SubjectSeq = other, 1
			} else if ofReview(r) {
				c.SubjectSeq = 1
			}
		}},
		{"a judgment about nobody", "subject", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if isJudgment(r) {
				c.Subject, c.SubjectSeq = evidence.Digest{}, 0
			} else if ofReview(r) {
				c.SubjectSeq = 1
			}
		}},
		{"a review about another agent", "subject", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if ofReview(r) {
				c.Subject, c.SubjectSeq = other, 1
			}
		}},
		{"a record without a number after one with it", "count", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if ofReview(r) {
				untagged(c)
			}
		}},
		{"a number twice", "count", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if ofClerk(r) && c.ActorSeq == 3 {
				c.ActorSeq = 2
			}
		}},
		{"numbers that run backwards", "count", false, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if ofReview(r) {
				c.SubjectSeq = 1
			} else if isJudgment(r) {
				c.SubjectSeq = 2
			}
		}},
		{"a number that no log can have reached", "count", false, func(i int, _ *evidence.Record, c *evidence.LogCounts) {
			if i == 0 {
				c.ActorSeq = 2
			}
		}},
		{"a judgment that was left out of the count", "count", true, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if c.SubjectSeq > 0 {
				c.SubjectSeq++
			}
		}},
		{"a record of an actor that was left out of the count", "count", true, func(_ int, r *evidence.Record, c *evidence.LogCounts) {
			if ofReview(r) {
				c.ActorSeq = 2
			}
		}},
	}
}

// newSighted is a log with two acts of an agent that a recorder saw, the second sealed by an earlier program, and two reviews of each.
func newSighted(t *testing.T) *tagged {
	t.Helper()
	h := jurattest.New(t)
	now, before := tool(), tool()
	before.RequestID, before.ChainID = "call-1", "talk before"
	p := payloadOf(t, before)
	p.Observed.Judged = ""
	records := []*evidence.Record{h.Seal(t, payloadOf(t, now)), h.Seal(t, p)}
	for _, of := range []*evidence.Record{records[0], records[1], records[0], records[1]} {
		records = append(records, h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "reviewer", OriginalResponseID: of.Payload.RecordID,
			Timestamp: evidence.FormatTime(h.Now()), Saw: []evidence.Digest{of.Digest}, ApprovalStatus: evidence.Rejected}))
	}
	return &tagged{h, t, h.Bundle(t, records...).Records}
}

// liesAboutSeen are lies about whom reviews of recorded acts judge.
func liesAboutSeen() []lie {
	agent, recorder := evidence.SubjectTag(evidence.RoleAgent, "shop-bot"), evidence.SubjectTag(evidence.RoleRecorder, "gate")
	counted := func(i int, subject evidence.Digest, seq int64) func(int, *evidence.Record, *evidence.LogCounts) {
		return func(at int, _ *evidence.Record, c *evidence.LogCounts) {
			if at == i {
				c.Subject, c.SubjectSeq = subject, seq
			}
		}
	}
	return []lie{
		{"the truth about recorded acts", "", false, func(int, *evidence.Record, *evidence.LogCounts) {}},
		{"a review of a recorded act counted for the recorder", "subject", false, counted(4, recorder, 2)},
		{"a review of a recorded act counted for nobody", "subject", false, counted(4, evidence.Digest{}, 0)},
		{"a review of an act of an earlier recorder counted for the agent", "subject", false, counted(3, agent, 2)},
		{"two reviews of a recorded act with one number", "count", false, counted(4, agent, 1)},
		{"a review of a recorded act that was left out of the count", "count", true, func(_ int, _ *evidence.Record, c *evidence.LogCounts) {
			if c.Subject == agent {
				c.SubjectSeq++
			}
		}},
	}
}

// TestSightedTruth: reviews of what a recorder saw count for the agent, and of what an earlier program sealed for the recorder, as they did.
func TestSightedTruth(t *testing.T) {
	agent, recorder := evidence.SubjectTag(evidence.RoleAgent, "shop-bot"), evidence.SubjectTag(evidence.RoleRecorder, "gate")
	for i, r := range newSighted(t).records {
		want := []evidence.LogCounts{{}, {}, {Subject: agent, SubjectSeq: 1}, {Subject: recorder, SubjectSeq: 1}, {Subject: agent, SubjectSeq: 2}, {Subject: recorder, SubjectSeq: 2}}[i]
		must.Hold(t, r.Log.Subject == want.Subject && r.Log.SubjectSeq == want.SubjectSeq,
			"record %d is counted as %+v, want %+v", i, r.Log.Counts(), want)
	}
}

// TestLiesOfALog checks that each lie about actors and subjects is refuted by its rule, and that what is no lie is proved.
func TestLiesOfALog(t *testing.T) {
	checkLies(t, newTagged(t), lies())
	checkLies(t, newSighted(t), liesAboutSeen())
}

func checkLies(t *testing.T, g *tagged, lies []lie) {
	t.Helper()
	for _, l := range lies {
		b, entries := g.logged(l.change)
		for _, with := range []bool{false, true} {
			o := g.Options(t)
			if with {
				o.Entries = bytes.NewReader(entries)
			}
			r := verify.Bundle(b, o)
			guarantee := verify.Order
			if l.entries {
				guarantee = verify.Completeness
			}
			got := r.Of(guarantee)
			switch {
			case l.rule == "" || l.entries && !with:
				must.Hold(t, r.Outcome == verify.Proved, "%s, entries %t: %s, %+v", l.name, with, r.Outcome, r.Details)
			case got.Status != verify.Refuted || got.Rule != l.rule:
				t.Errorf("%s, entries %t: %+v", l.name, with, got)
			}
		}
	}
}

// tagVectors are about what a log counts of actors and subjects.
func tagVectors(t *testing.T) (list []given) {
	t.Helper()
	g := newTagged(t)
	for _, l := range lies() {
		b, entries := g.logged(l.change)
		o := g.Options(t)
		if l.entries || l.rule == "" {
			o.Entries = bytes.NewReader(entries)
		}
		list = append(list, givenBundle(t, slug("tags", l.name), b, o))
	}
	seen := newSighted(t)
	for _, l := range liesAboutSeen() {
		b, entries := seen.logged(l.change)
		o := seen.Options(t)
		if l.entries || l.rule == "" {
			o.Entries = bytes.NewReader(entries)
		}
		list = append(list, givenBundle(t, slug("tags", l.name), b, o))
	}
	b, _ := g.logged(func(_ int, r *evidence.Record, c *evidence.LogCounts) {
		if isJudgment(r) {
			c.Subject = evidence.SubjectTag(evidence.RoleAgent, "another agent")
		}
	})
	alone := proveAt(t, b, judgmentOf(b.Records)) // nothing in one record contradicts its subject
	return append(list, givenRecord(t, "tags-one-judgment-alone", alone, g.Options(t)))
}
