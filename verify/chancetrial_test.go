package verify_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
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

// trial returns a trial that a clerk with every key has changed in a few places. Links and requests are recomputed, or
// not.
func (c *chance) trial(ctx context.Context, honest [][]*evidence.Record) *evidence.Bundle {
	c.t.Helper()
	c.count = 0
	f := newForgerOf(c.t, c.house, of(c, honest...))
	for range 1 + c.IntN(2) {
		c.forge(f)
	}
	records := f.sealBy(func(p evidence.Payload) *evidence.Record {
		draft, err := evidence.NewDraft(p)
		if err == nil {
			return c.sign(ctx, draft, nil)
		}
		return c.sign(ctx, (&telling{chance: c}).tame(nil), nil)
	})
	if c.once(15) {
		c.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	}
	return c.log(records, false)
}

// forge changes one thing of a trial.
func (c *chance) forge(f *forger) {
	if len(f.acts) == 0 {
		return
	}
	i := c.IntN(len(f.acts))
	p := &f.acts[i]
	p.Saw = slices.Clone(p.Saw)
	switch of(c, "body", "body", "body", "body", "drop", "swap", "twice", "position", "previous", "saw", "case", "chain", "actor", "request",
		"time", "model", "parameters", "review", "cut") {
	case "body":
		c.forgeBody(p)
	case "drop":
		f.acts, f.was = slices.Delete(f.acts, i, i+1), slices.Delete(f.was, i, i+1)
	case "cut":
		f.acts, f.was = f.acts[:i+1], f.was[:i+1]
	case "swap":
		j := min(i+1, len(f.acts)-1)
		f.acts[i], f.acts[j], f.was[i], f.was[j] = f.acts[j], f.acts[i], f.was[j], f.was[i]
	case "twice":
		again := *p
		again.RecordID = ""
		f.acts, f.was = slices.Insert(f.acts, i, again), slices.Insert(f.was, i, evidence.DigestOf([]byte{byte(i)}))
	case "position":
		p.ChainPosition = max(1, p.ChainPosition+int64(c.IntN(5))-2)
	case "previous":
		p.PreviousRecord = of(c, f.was...)
	case "saw":
		c.forgeSaw(p, f)
	case "case":
		p.Case = evidence.DigestOf([]byte("another"))
	case "chain":
		p.ChainID = "trial-another"
	case "actor":
		p.AgentID = of(c, f.acts...).AgentID
	case "request":
		if !p.RequestDigest.IsZero() {
			p.RequestDigest = of(c, f.was...)
		}
	case "time":
		p.Timestamp = of(c, f.acts...).Timestamp
	case "model":
		if p.Model != "" {
			p.Model = of(c, "scripted@17", "scripted2", "unreported")
		}
	case "parameters":
		if p.Parameters != nil {
			p.Parameters = jsontext.Value(of(c, `{"temperature":2}`, `{}`))
		}
	case "review":
		review := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "user@example.com", Timestamp: p.Timestamp, ApprovalStatus: of(c, evidence.Approved, evidence.Rejected),
			OriginalResponseID: p.RecordID, Saw: []evidence.Digest{f.was[i]}, ChainID: of(c, p.ChainID, "")}
		f.acts, f.was = slices.Insert(f.acts, i+1, review), slices.Insert(f.was, i+1, evidence.DigestOf([]byte{byte(i), 1}))
	}
}

func (c *chance) forgeSaw(p *evidence.Payload, f *forger) {
	switch {
	case len(p.Saw) > 1 && c.once(3):
		p.Saw[0], p.Saw[1] = p.Saw[1], p.Saw[0]
	case len(p.Saw) > 1 && c.once(2):
		p.Saw = p.Saw[1:]
	default:
		if d := of(c, f.was...); !slices.Contains(p.Saw, d) {
			p.Saw = append(p.Saw, d)
		}
	}
}

// forgeBody changes one value anywhere in a body.
func (c *chance) forgeBody(p *evidence.Payload) {
	c.t.Helper()
	if p.Response == nil {
		return
	}
	var body any
	must.Do(c.t, json.Unmarshal(p.Response, &body))
	doc := must.Get(json.Marshal(c.changed(body), json.Deterministic(true)))(c.t)
	p.Response = doc
}

func (c *chance) changed(value any) any {
	switch value := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(value))
		if len(names) == 0 || c.once(20) {
			value["more"] = "x"
			return value
		}
		name := of(c, names...)
		if c.once(15) {
			delete(value, name)
			return value
		}
		value[name] = c.changed(value[name])
		return value
	case []any:
		if len(value) > 0 && !c.once(4) {
			i := c.IntN(len(value))
			value[i] = c.changed(value[i])
			return value
		}
		if len(value) == 0 {
			return []any{"x"}
		}
		return of[any](c, value[1:], append(slices.Clone(value), value[0]))
	case float64:
		return of[any](c, value+1, value-1, value/2, -value, 0.0, 1e19, 50.0, "7")
	case bool:
		return of[any](c, !value, !value, nil)
	case string:
		return of[any](c, "", "x", value+" ", strings.ToUpper(value), "safe_pass", "unsafe_fail", "needs_review", "juror-gpt", "unanimous", "majority", "split", nil, 3.0)
	}
	return of[any](c, "x", 1.0, true, map[string]any{}, []any{})
}

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
		r := verify.Bundle(b, o)
		must.Hold(t, r.Outcome == verify.Proved, "trial %d: %s: %+v", i, r.Outcome, r.Details)
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
	must.Hold(t, len(told) >= 9, "the trials show only %v", told)
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
		must.Hold(t, r.Outcome != verify.Proved && got.Status != verify.Proved && (tt.rule == "" || got.Rule == tt.rule),
			"%s: %s, %+v", tt.name, r.Outcome, r.Details)
		return givenBundle(t, fmt.Sprintf("lie-%d", i), b, verify.Options{})
	})
}
