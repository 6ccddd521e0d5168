package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
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
	if i < 0 {
		f.t.Fatalf("the trial has no %s with %s", action, containing)
	}
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
		if r := verify.Bundle(h.Bundle(t, honest[name]...), h.Options(t)); r.Outcome != verify.Proved {
			t.Errorf("%s: %s: %+v", name, r.Outcome, r.Details)
		}
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
