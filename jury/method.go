package jury

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// An Outcome is the result of a method on the votes.
type Outcome struct {
	Position   Position
	Score      int
	AxisScores Scores
	Rationale  string
}

// Bands of weighted_average: the lowest score of each position.
const (
	safeFrom   = 70
	reviewFrom = 40
)

// ceilingRationale is the rationale of a trial that stopped at its cost ceiling.
const ceilingRationale = "The ceiling on the trial's cost was reached, so the case needs review."

// quorum is how many valid votes a verdict needs.
const quorum = 2

// ByMajority applies majority_vote to the jurors' latest evaluations, by seat. nil is a juror without one.
func ByMajority(evaluations []*Evaluation, rubric Rubric) Outcome {
	top, k := plurality(positionsOf(evaluations))
	var counted []*Evaluation
	for _, e := range evaluations {
		if e != nil && slices.Contains(top, e.Position) {
			counted = append(counted, e)
		}
	}
	out := average(counted, equalWeights(counted), rubric)
	out.Position = NeedsReview
	if len(top) == 1 {
		out.Position = top[0]
	}
	out.Rationale = majorityRationale(top, k, len(evaluations), out.Score)
	return out
}

func majorityRationale(top []Position, k, n, score int) string {
	switch len(top) {
	case 0:
		return fmt.Sprintf("None of %s holds a position, so the case needs review.", jurors(n))
	case 1:
		return fmt.Sprintf("%d of %s %s %s; the mean of their scores is %d.", k, jurors(n), holds(k), top[0], score)
	}
	return fmt.Sprintf("%s are held by %d each of %s; a tie needs review; the mean of the scores of all who hold one of them is %d.",
		joinPositions(top), k, jurors(n), score)
}

func jurors(n int) string { return fmt.Sprintf("%d jurors", n) }

func holds(k int) string {
	if k == 1 {
		return "holds"
	}
	return "hold"
}

// ByWeight applies weighted_average to the jurors' latest evaluations, by seat. nil is a juror without one.
func ByWeight(evaluations []*Evaluation, rubric Rubric) Outcome {
	counted := slices.DeleteFunc(slices.Clone(evaluations), func(e *Evaluation) bool { return e == nil })
	weights := make([]*big.Rat, len(counted))
	for i, e := range counted {
		weights[i] = exactly(e.Confidence)
	}
	out := average(counted, weights, rubric)
	out.Position = band(out.Score)
	out.Rationale = fmt.Sprintf("The mean of the scores of %d of %s, weighted by the confidence that each states, is %d, which is in the band of %s.",
		len(counted), jurors(len(evaluations)), out.Score, out.Position)
	return out
}

// ByCalibration applies calibrated to the jurors' latest evaluations, by seat: it returns the position with the
// highest total weight. nil is a juror without an evaluation. Weights are whole numbers, so that every machine
// computes the same sums.
func ByCalibration(evaluations []*Evaluation, weights []int, rubric Rubric) Outcome {
	sums, all := map[Position]int{}, 0
	for i, e := range evaluations {
		if e != nil {
			sums[e.Position] += weights[i]
			all += weights[i]
		}
	}
	top, most := heaviest(sums)
	counted := slices.DeleteFunc(slices.Clone(evaluations), func(e *Evaluation) bool {
		return e == nil || len(top) > 0 && !slices.Contains(top, e.Position)
	})
	out := average(counted, equalWeights(counted), rubric)
	out.Position = NeedsReview
	if len(top) == 1 {
		out.Position = top[0]
	}
	out.Rationale = calibratedRationale(top, most, all, out.Score)
	return out
}

// heaviest returns the positions with the highest total weight, and that weight. It returns no position if all
// weights are 0.
func heaviest(sums map[Position]int) (top []Position, most int) {
	for _, p := range []Position{SafePass, NeedsReview, UnsafeFail} {
		switch sum := sums[p]; {
		case sum > most:
			top, most = []Position{p}, sum
		case sum == most && most > 0:
			top = append(top, p)
		}
	}
	return top, most
}

func calibratedRationale(top []Position, most, all, score int) string {
	switch len(top) {
	case 0:
		return fmt.Sprintf("No vote has any weight, so the case needs review; the mean of the scores is %d.", score)
	case 1:
		return fmt.Sprintf("The votes for %s weigh %d of %d; the mean of their scores is %d.", top[0], most, all, score)
	}
	return fmt.Sprintf("%s weigh %d each of %d; a tie needs review; the mean of the scores of all who hold one of them is %d.",
		joinPositions(top), most, all, score)
}

func joinPositions(list []Position) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = string(p)
	}
	return strings.Join(names, " and ")
}

// band is the position for a score. It takes the rounded score, because people see that score beside it.
func band(score int) Position {
	switch {
	case score >= safeFrom:
		return SafePass
	case score >= reviewFrom:
		return NeedsReview
	}
	return UnsafeFail
}

// exactly returns the number that the shortest decimal of a double names: 0.1 is one tenth, as the juror stated it.
func exactly(f float64) *big.Rat {
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	if !ok {
		return new(big.Rat) // not finite; no valid evaluation has such a confidence
	}
	return r
}

func equalWeights[T any](list []T) []*big.Rat {
	weights := make([]*big.Rat, len(list))
	for i := range weights {
		weights[i] = big.NewRat(1, 1)
	}
	return weights
}

// average computes the means of the totals, and of each axis over the evaluations that score it.
func average(evaluations []*Evaluation, weights []*big.Rat, rubric Rubric) Outcome {
	out := Outcome{AxisScores: Scores{}}
	totals := make([]int, len(evaluations))
	for i, e := range evaluations {
		totals[i] = e.TotalScore
	}
	out.Score = mean(totals, weights)
	for _, axis := range rubric {
		var scores []int
		var of []*big.Rat
		for i, e := range evaluations {
			if score, there := e.AxisScores[axis.ID]; there {
				scores, of = append(scores, score), append(of, weights[i])
			}
		}
		if len(scores) > 0 {
			out.AxisScores[axis.ID] = mean(scores, of)
		}
	}
	return out
}

// mean is the weighted mean of whole numbers from 0, rounded half up; 0 if there are none. If all weights are 0, they
// count as equal.
func mean(values []int, weights []*big.Rat) int {
	if len(values) == 0 {
		return 0
	}
	sum, weight := new(big.Rat), new(big.Rat)
	for i, v := range values {
		sum.Add(sum, new(big.Rat).Mul(weights[i], big.NewRat(int64(v), 1)))
		weight.Add(weight, weights[i])
	}
	if weight.Sign() == 0 {
		return mean(values, equalWeights(values))
	}
	half := sum.Quo(sum, weight).Add(sum, big.NewRat(1, 2))
	return int(new(big.Int).Div(half.Num(), half.Denom()).Int64())
}

// positionsOf returns the position of each seat; "" if it has none.
func positionsOf(evaluations []*Evaluation) []Position {
	positions := make([]Position, len(evaluations))
	for i, e := range evaluations {
		if e != nil {
			positions[i] = e.Position
		}
	}
	return positions
}

// validVotes counts the evaluations that jurors gave themselves.
func validVotes(evaluations []*Evaluation) int {
	n := 0
	for _, e := range evaluations {
		if e != nil && !e.Fallback {
			n++
		}
	}
	return n
}

func votesOf(seats []Seat, evaluations []*Evaluation) []Vote {
	votes := make([]Vote, len(seats))
	for i, seat := range seats {
		votes[i] = Vote{JurorID: seat.JurorID}
		if e := evaluations[i]; e != nil {
			votes[i].Position = new(e.Position)
			votes[i].TotalScore, votes[i].Confidence, votes[i].Fallback = e.TotalScore, e.Confidence, e.Fallback
		}
	}
	return votes
}

func inconclusiveRationale(valid, n int) string {
	return fmt.Sprintf("%d of %s gave a valid vote, and a verdict needs %d, so the case needs review.", valid, jurors(n), quorum)
}
