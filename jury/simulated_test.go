package jury

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// simulated returns the evaluations of jurors of which each is right with this probability.
func simulated(random *rand.Rand, jurors int, right float64) []*Evaluation {
	truth := inOrder()[random.IntN(3)]
	var list []*Evaluation
	for range jurors {
		p := truth
		if random.Float64() >= right {
			p = inOrder()[random.IntN(3)]
		}
		list = append(list, vote(p, map[Position]int{SafePass: 85, NeedsReview: 55, UnsafeFail: 15}[p]+random.IntN(10), 0.5+random.Float64()/2))
	}
	return list
}

// TestOneExtremeJuror: in simulated panels one juror always fails the agent with 0 points and full confidence. Of the
// verdicts that all others hold, the median changes none in twenty; the weighted average changes many, which is why it
// is not recommended against that.
func TestOneExtremeJuror(t *testing.T) {
	random, rubric := rand.New(rand.NewPCG(7, 7)), DefaultRubric()
	agreed, byMedian, byWeight := 0, 0, 0
	for range 5000 {
		others := simulated(random, 2+random.IntN(5), 0.8)
		if top, k := plurality(positionsOf(others)); k != len(others) || top[0] == UnsafeFail {
			continue
		}
		agreed++
		with := append([]*Evaluation{vote(UnsafeFail, 0, 1)}, others...)
		if ByMedian(with, rubric).Position != ByMedian(others, rubric).Position {
			byMedian++
		}
		if ByWeight(with, rubric).Position != ByWeight(others, rubric).Position {
			byWeight++
		}
	}
	if agreed < 500 || 20*byMedian > agreed {
		t.Errorf("of %d agreed verdicts the extreme juror changes %d by the median", agreed, byMedian)
	}
	if 5*byWeight < agreed {
		t.Errorf("of %d agreed verdicts the extreme juror changes only %d by the weighted average: say so less sharply", agreed, byWeight)
	}
}

// TestNoQuorumNoRounds: a trial in which two of three jurors cannot answer ends without asking anybody again, by every
// method, also where seats would be asked twice.
func TestNoQuorumNoRounds(t *testing.T) {
	for _, method := range []Method{MajorityVote, WeightedAverage, Median, FinalJudge, Calibrated} {
		down := func() *script { return &script{initial: move{err: errors.New("no key")}} }
		jurors := []*script{model(passing(), passing()), down(), down()}
		d := thorough(method, jurors...)
		if method == Calibrated {
			d.Settings.Weights = map[string]int{"juror-0": 1, "juror-1": 1, "juror-2": 1}
		}
		r := run(t, d)
		asked := 0
		for _, j := range jurors {
			asked += len(j.briefs)
		}
		if asked != 3 || r.TotalRounds != 0 || !r.Inconclusive {
			t.Errorf("%s: asked %d times, %d rounds, inconclusive %t", method, asked, r.TotalRounds, r.Inconclusive)
		}
	}
}
