package stats

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// A Method turns many votes into one verdict.
type Method string

const (
	Majority   Method = "majority"   // the choice with the most votes
	Weighted   Method = "weighted"   // by the confidence that each juror states; equal weights if none states any
	Calibrated Method = "calibrated" // by the log-odds of measured reliability
)

// Verdicts is the result of a method on ballots.
type Verdicts struct {
	Verdicts map[string]Choice `json:"verdicts"` // by item; null: a tie, or no votes
	Accuracy *float64          `json:"accuracy"` // share of labelled items with a correct verdict; a tie is wrong. null: no labels
	Labelled int               `json:"labelled"` // number of items
	Correct  int               `json:"correct"`
}

// ErrNoCalibration says that the calibrated method has no reliabilities.
var ErrNoCalibration = errors.New("the calibrated method needs a calibration, or labels among the votes")

// Aggregate decides each ballot. Calibrated without a calibration uses the labels of the ballots: it weighs each
// ballot by what was measured on the others. A calibration that knows the item is used in the same way, so an item's
// own label never affects its verdict. Aggregate returns ErrNoCalibration if there are neither, and an error for an
// unknown method.
func Aggregate(ballots []Ballot, method Method, c *Calibration) (*Verdicts, error) {
	v := &Verdicts{Verdicts: map[string]Choice{}}
	var weigh func(*Ballot) map[string]*big.Rat
	var among []Choice
	switch method {
	case Majority:
		weigh = equally
	case Weighted:
		weigh = byConfidence
	case Calibrated:
		if c == nil {
			var err error
			if c, err = Calibrate(ballots); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrNoCalibration, err)
			}
		}
		weigh, among = c.without(), voted(ballots)
	default:
		return nil, fmt.Errorf("unknown method %q: want %s, %s or %s", method, Majority, Weighted, Calibrated)
	}
	for i := range ballots {
		b := &ballots[i]
		verdict := heaviest(b, weigh(b), among)
		v.Verdicts[b.Item] = verdict
		if b.Label != "" {
			v.Labelled++
			if verdict == b.Label {
				v.Correct++
			}
		}
	}
	if v.Labelled > 0 {
		v.Accuracy = new(float64(v.Correct) / float64(v.Labelled))
	}
	return v, nil
}

// equally gives every vote the weight 1.
func equally(b *Ballot) map[string]*big.Rat {
	weights := map[string]*big.Rat{}
	for name := range b.Votes {
		weights[name] = big.NewRat(1, 1)
	}
	return weights
}

// byConfidence reads confidences as the decimals that were written, so that their sums are exact. If no voter states
// one, all count the same.
func byConfidence(b *Ballot) map[string]*big.Rat {
	weights, any := map[string]*big.Rat{}, false
	for name, vote := range b.Votes {
		weights[name], _ = new(big.Rat).SetString(strconv.FormatFloat(b.Sure[name], 'g', -1, 64)) // Read has checked it
		any = any || vote != "" && weights[name].Sign() > 0
	}
	if !any {
		return equally(b)
	}
	return weights
}

// without weighs each ballot by what is known of all other items.
func (c *Calibration) without() func(*Ballot) map[string]*big.Rat {
	all := c.counts()
	return func(b *Ballot) map[string]*big.Rat {
		counts := maps.Clone(all)
		i, known := slices.BinarySearchFunc(c.Known, b.Item, func(k Known, item string) int { return strings.Compare(k.Item, item) })
		if known {
			c.Known[i].add(counts, -1)
		}
		weights := map[string]*big.Rat{}
		for name := range b.Votes {
			weights[name] = big.NewRat(int64(counts[name].weight(c.Choices)), 1)
		}
		return weights
	}
}

// heaviest is the choice with the largest sum of weights, among the choices that are given and those that were voted for. A choice without a
// vote has the sum 0, so it wins if jurors that are mostly wrong vote against it. It returns no choice on a tie, without votes, and, if none are given, if no vote
// has any weight.
func heaviest(b *Ballot, weights map[string]*big.Rat, among []Choice) (best Choice) {
	sums, weighty := map[Choice]*big.Rat{}, false
	for _, choice := range among {
		sums[choice] = new(big.Rat)
	}
	for name, vote := range b.Votes {
		if vote == "" {
			continue
		}
		if sums[vote] == nil {
			sums[vote] = new(big.Rat)
		}
		sums[vote].Add(sums[vote], weights[name])
		weighty = weighty || among != nil || weights[name].Sign() != 0
	}
	if !weighty {
		return ""
	}
	var most *big.Rat
	for choice, sum := range sums {
		switch {
		case most == nil || sum.Cmp(most) > 0:
			best, most = choice, sum
		case sum.Cmp(most) == 0:
			best = ""
		}
	}
	return best
}

// voted lists the choices that anybody voted for on any ballot.
func voted(ballots []Ballot) (all []Choice) {
	for _, b := range ballots {
		for _, vote := range b.Votes {
			if vote != "" && !slices.Contains(all, vote) {
				all = append(all, vote)
			}
		}
	}
	return all
}
