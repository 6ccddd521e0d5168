package lab

import (
	"math"
	"math/rand/v2"
	"testing"

	"jurat/jury"
)

// invented returns a run of two panels with random trials, of cases with these outcomes.
func invented(t *testing.T, seed uint64, repeat int) (Config, *Run) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 9))
	seats := []jury.Seat{{JurorID: "one", Model: "m"}, {JurorID: "two", Model: "m"}, {JurorID: "three", Model: "m"}}
	c := Config{Repeat: repeat, Panels: []Panel{{Name: "a", Settings: jury.Settings{Seats: seats}}, {Name: "b", Settings: jury.Settings{Seats: seats, MaxRounds: 1}}}}
	run := &Run{}
	positions := []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail}
	for _, p := range c.Panels {
		for i := range 14 {
			for n := range repeat {
				one := Trial{Panel: p.Name, Case: string(rune('a' + i)), Repeat: n + 1, Outcome: Good, Trade: []string{"x", "y"}[i/2%2], Position: positions[random.IntN(3)],
					Score: random.IntN(101), Answers: 3, Rounds: 1, AfterPhase1: positions[random.IntN(3)], AfterTalk: positions[random.IntN(3)], Cost: int64(random.IntN(1000))}
				if i%2 == 1 {
					one.Outcome = Failed
				}
				for _, seat := range seats {
					v := Voice{Juror: seat.JurorID, Position: positions[random.IntN(3)], Score: random.IntN(101), Confidence: float64(random.IntN(11)) / 10}
					one.Alone, one.Final = append(one.Alone, v), append(one.Final, v)
				}
				one.Findings = []Found{{Rule: []string{"r", "s"}[random.IntN(2)]}}
				run.Trials = append(run.Trials, one)
			}
		}
	}
	return c, run
}

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-9 {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestFiguresByCounting compares figures of random trials with counts that go over all of them one by one.
func TestFiguresByCounting(t *testing.T) {
	for seed := range uint64(20) {
		c, run := invented(t, seed, 1)
		g := Measure(c, run, Asked{Seed: 1, Samples: 20}).Panels[0].All
		var good, failed, flaggedGood, flaggedFailed, accusedGood, pairs, above, found, bad, turned, toRight float64
		for _, a := range run.Trials[:14] {
			isBad := a.Outcome == Failed
			if isBad {
				failed++
			} else {
				good++
			}
			if a.Position != jury.SafePass && isBad {
				flaggedFailed++
			}
			if a.Position != jury.SafePass && !isBad {
				flaggedGood++
			}
			if a.Position == jury.UnsafeFail && !isBad {
				accusedGood++
			}
			if a.Findings[0].Rule == "r" {
				found++
				if isBad {
					bad++
				}
			}
			if a.AfterPhase1 != a.AfterTalk {
				turned++
				if (a.AfterPhase1 != jury.SafePass) != isBad && (a.AfterTalk != jury.SafePass) == isBad {
					toRight++
				}
			}
			for _, b := range run.Trials[:14] {
				if !isBad && b.Outcome == Failed {
					pairs++
					if a.Score > b.Score {
						above++
					} else if a.Score == b.Score {
						above += 0.5
					}
				}
			}
		}
		near(t, "AUC", g.AUC.Value, above/pairs)
		near(t, "accuracy", g.Accuracy.Value, (good-flaggedGood+flaggedFailed)/(good+failed))
		near(t, "precision", g.Precision.Value, flaggedFailed/(flaggedFailed+flaggedGood))
		near(t, "good flagged", g.FlaggedGood.Value, flaggedGood/good)
		near(t, "failed flagged", g.FlaggedFailed.Value, flaggedFailed/failed)
		near(t, "good accused", g.AccusedGood.Value, accusedGood/good)
		for _, f := range g.Findings {
			if f.Rule == "r" {
				near(t, "share of failed", f.Failed.Value, bad/found)
				near(t, "lift", f.Lift, bad/found/(failed/(good+failed)))
			}
		}
		if float64(g.Talk.Turned) != turned || float64(g.Talk.ToRight) != toRight || g.Cases != 14 {
			t.Errorf("%+v: want %v turned, %v to right", g.Talk, turned, toRight)
		}
	}
}

// TestRepeatsAreNoCases: trials that repeat change no count of cases and no width of an interval.
func TestRepeatsAreNoCases(t *testing.T) {
	c, run := invented(t, 3, 1)
	once := Measure(c, run, Asked{Seed: 1, Samples: 50})
	c.Repeat = 3
	tripled := &Run{}
	for _, one := range run.Trials {
		for n := range 3 {
			one.Repeat = n + 1
			tripled.Trials = append(tripled.Trials, one)
		}
	}
	thrice := Measure(c, tripled, Asked{Seed: 1, Samples: 50})
	for i, pair := range [][2]Figure{{once.Panels[0].All.AUC, thrice.Panels[0].All.AUC}, {once.Panels[0].All.Accuracy, thrice.Panels[0].All.Accuracy},
		{once.Panels[0].All.Precision, thrice.Panels[0].All.Precision}, {once.Panels[0].Jurors[1].AUC, thrice.Panels[0].Jurors[1].AUC}} {
		near(t, "value", pair[1].Value, *pair[0].Value)
		near(t, "low", pair[1].Low, *pair[0].Low)
		if pair[0].Cases != pair[1].Cases {
			t.Errorf("%d: %d cases and %d", i, pair[0].Cases, pair[1].Cases)
		}
	}
	near(t, "difference", thrice.Comparisons[0].AUC.Value, *once.Comparisons[0].AUC.Value)
	near(t, "its interval", thrice.Comparisons[0].AUC.Low, *once.Comparisons[0].AUC.Low)
	near(t, "the same verdict again", thrice.Panels[0].Retest.Value, 1)
	if once.Panels[0].Retest.Value != nil {
		t.Error("one trial was compared with itself")
	}
	if s := thrice.Panels[0].Single; s == nil || s.Answers != 3 || !s.AsOften || once.Panels[0].Single.AsOften {
		t.Errorf("%+v", s)
	}
}

// TestSingleIsChosenElsewhere: a juror who is best only thanks to one case is not chosen for that case.
func TestSingleIsChosenElsewhere(t *testing.T) {
	c, run := invented(t, 5, 1)
	all := rows(by(run.Trials, "a"))
	for i := range all {
		asked := map[string][]row{}
		for _, seat := range c.Panels[0].Settings.Seats {
			asked[seat.JurorID] = means(alone(all, seat.JurorID), 1)
		}
		before := best(c.Panels[0].Settings.Seats, asked, i)
		for _, own := range asked { // whatever a juror says of this case
			own[i].trials[0].mean, own[i].trials[0].Position = 1000, jury.SafePass
		}
		if after := best(c.Panels[0].Settings.Seats, asked, i); after != before {
			t.Errorf("case %d: %s, and %s after its own votes changed", i, before, after)
		}
	}
}
