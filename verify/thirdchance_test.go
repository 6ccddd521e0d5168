package verify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// A faltering juror gives no answer at some places of a trial.
type faltering struct {
	jury.Juror
	at map[string]error // by phase and round
}

func (f faltering) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	if err := f.at[fmt.Sprint(b.Phase, b.RoundNumber)]; err != nil {
		return jury.Answer{}, err
	}
	return f.Juror.Answer(ctx, b)
}

// opinion is any opinion of a model.
func (c *chance) opinion() jury.Opinion {
	return jurattest.Grade(of(c, jury.SafePass, jury.SafePass, jury.NeedsReview, jury.UnsafeFail), c.IntN(4))
}

// juror is one who says anything, and may be absent anywhere.
func (c *chance) juror() jury.Juror {
	j := &jurattest.Juror{Opinion: c.opinion()}
	if c.once(2) {
		j.Again = new(c.opinion())
	}
	for range c.IntN(3) {
		next := c.opinion()
		j.Speeches = append(j.Speeches, jury.Speech{Statement: "So I see it.", Position: next.Position, Reasoning: "For reasons.", Updated: &next})
	}
	at := map[string]error{}
	for _, place := range []string{"initial0", "repetition0", "discussion1", "discussion2", "judging0"} {
		if c.once(8) {
			at[place] = of(c, jury.ErrInvalid, jury.ErrBlocked, errors.New("out of order"))
		}
	}
	return faltering{j, at}
}

// thirdTrial is an honest trial, of any method and size.
func (c *chance) thirdTrial() []*evidence.Record {
	s := jurattest.Thorough(of(c, jury.MajorityVote, jury.WeightedAverage, jury.Median, jury.Calibrated, jury.FinalJudge))
	seat := s.Seats[0]
	s.Seats = nil
	var jurors []jury.Juror
	for i := range 2 + c.IntN(4) {
		seat.JurorID, seat.RoleName = fmt.Sprintf("juror-%d", i), fmt.Sprintf("Role %d", i)
		if seat.Model = "scripted"; s.Method == jury.Calibrated {
			if s.Weights == nil {
				s.Weights = map[string]int{}
			}
			s.Weights[seat.JurorID] = c.IntN(2_000_001) - 1_000_000
		}
		s.Seats = append(s.Seats, seat)
		jurors = append(jurors, c.juror())
	}
	s.MaxRounds, s.Threshold, s.Collaborative = c.IntN(3), of(c, 0.6, 1, 2), !c.once(5)
	s.Repeat, s.Tables = !c.once(4), !c.once(4)
	if s.Judge != nil {
		s.JudgeReads = !c.once(4)
	}
	return c.house.TryBefore(c.t, s, jurors, c.juror()).Records
}

// TestHonestThirdTrials: no honest trial is refuted, whoever is absent where, and both verifiers say so. In the short form a reader of every fifth trial has a
// trust file: to check the signatures of all, the second verifier starts OpenSSL a thousand times.
func TestHonestThirdTrials(t *testing.T) {
	told := map[string]int{}
	compareVerifiers(t, 25, 5_000, func(t *testing.T, c *chance, i int) given {
		if c.t = t; i%50 == 0 {
			c.house = jurattest.NewForStrangers(t) // whose time stamps the second verifier can check
		}
		records := c.thirdTrial()
		o := c.house.Options(t)
		b := c.house.Bundle(t, records...)
		if r := verify.Bundle(b, o); r.Outcome != verify.Proved {
			t.Errorf("trial %d: %s: %+v", i, r.Outcome, r.Details)
		}
		for _, r := range records {
			for _, word := range []string{`"repetition"`, `"turned_by_talk"`, `"one_extreme"`, `"judge_milder"`, `"abstained"`, `"afterTalk"`, `"fallback":true`, `"inconclusive":true`, `"reason":"invalid"`} {
				if strings.Contains(string(r.Payload.Response), word) {
					told[word]++
				}
			}
		}
		if i%5 > 0 && os.Getenv("JURAT_TEST_LONG") == "" {
			o = verify.Options{}
		}
		return givenBundle(t, fmt.Sprintf("third-%d", i), b, o)
	})
	if len(told) < 9 {
		t.Errorf("the trials show only %v", told)
	}
}

// liesInside are forgeries whose outer layers are right.
func liesInside() []thirdForgery {
	object := func(v any) map[string]any { return v.(map[string]any) }
	first := func(f *forger, change func(b map[string]any)) { f.editOne(evidence.PhaseOpening, `"initial"`, change) }
	return []thirdForgery{
		{"third-thorough", "a repetition answered with another seat's key", func(f *forger) {
			f.editOne(evidence.Evaluation, inRepetition, func(map[string]any) {}).AgentID = "juror-a"
		}, verify.Simultaneity, ""},
		{"third-thorough", "a reading moved after the talk", func(f *forger) {
			i := slices.IndexFunc(f.acts, func(p evidence.Payload) bool { return p.ActionType == evidence.JudgeOpinion })
			j := slices.IndexFunc(f.acts, func(p evidence.Payload) bool {
				return p.ActionType == evidence.ConsensusCheck && strings.Contains(string(p.Response), inDiscussion)
			})
			p, was := f.acts[i], f.was[i]
			f.acts, f.was = slices.Insert(f.acts, j+1, p), slices.Insert(f.was, j+1, was)
			f.drop(i)
		}, verify.Completeness, "sequence"},
		{"third-thorough", "levels of an axis that has none", func(f *forger) {
			first(f, func(b map[string]any) { delete(object(object(b["settings"])["rubric"].([]any)[0]), "levels") })
		}, verify.Verdict, "levels"},
		{"third-thorough", "an axis without levels in the answers, with a level", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) { object(b["levels"])["charm"] = 1 })
		}, verify.Verdict, "levels"},
		{"third-thorough", "tables of ten thousand rows", func(f *forger) {
			f.edit(evidence.Evaluation, func(b map[string]any) {
				rows := make([]any, 10_000)
				for i := range rows {
					rows[i] = map[string]any{"request": map[string]any{"message": 1, "quote": "Where"}, "state": "done"}
				}
				object(b["work"])["requests"] = rows
			})
		}, verify.Verdict, "answer"},
		{"third-calibrated", "every weight turned round", func(f *forger) {
			for i := range f.acts {
				if f.acts[i].ActionType == evidence.PhaseOpening {
					f.acts[i].Response = []byte(strings.NewReplacer(`"juror-a":-300`, `"juror-a":-1`, `"juror-b":500`, `"juror-b":-500`, `"juror-c":600`, `"juror-c":-600`).Replace(string(f.acts[i].Response)))
				}
			}
		}, verify.Verdict, "verdict"},
		{"third-abstention-to-the-end", "an abstaining seat that has spoken", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) {
				for _, v := range b["votes"].([]any) {
					delete(object(v), "abstained")
				}
			})
		}, verify.Verdict, "verdict"},
		{"third-turned-by-talk", "another reason for a review", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["review"] = []any{"one_extreme"} })
		}, verify.Verdict, "verdict"},
		{"third-turned-by-talk", "a reason for a review that nobody knows", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["review"] = []any{"turned_by_talk", "because"} })
		}, verify.Verdict, "verdict"},
		{"third-turned-by-talk", "a review that is empty", func(f *forger) {
			f.edit(evidence.FinalJudgment, func(b map[string]any) { b["review"] = []any{} })
		}, verify.Verdict, "body"},
	}
}

// TestLiesInsideThirdTrials: both verifiers refute each of them, or find it not proved, for the same reasons.
func TestLiesInsideThirdTrials(t *testing.T) {
	plans, lies := thirdPlans(), liesInside()
	compareVerifiers(t, len(lies), len(lies), func(t *testing.T, _ *chance, i int) given {
		tt := lies[i]
		settings, jurors, judge := plans[tt.of]()
		f := newForgerOf(t, jurattest.New(t), jurattest.New(t).TryBefore(t, settings, jurors, judge).Records)
		tt.forge(f)
		b, o := f.seal(), f.house.Options(t)
		r := verify.Bundle(b, o)
		got := r.Of(tt.guarantee)
		t.Logf("%s: %s, %s %s %s: %s", tt.name, r.Outcome, tt.guarantee, got.Status, got.Rule, got.Reason)
		if r.Outcome == verify.Proved || got.Status == verify.Proved || tt.rule != "" && got.Rule != tt.rule {
			t.Errorf("%s: %s, %+v", tt.name, r.Outcome, r.Details)
		}
		return givenBundle(t, fmt.Sprintf("lie-%d", i), b, verify.Options{})
	})
}
