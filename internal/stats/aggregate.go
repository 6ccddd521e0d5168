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

// A Method makes one verdict of many votes.
type Method string

const (
	Majority   Method = "majority"   // the choice that most voted for
	Weighted   Method = "weighted"   // weighed by the confidence that each juror states; without any, as much as the others
	Calibrated Method = "calibrated" // weighed by the log-odds of measured reliability
)

// Verdicts are what a method makes of ballots.
type Verdicts struct {
	Verdicts map[string]Choice `json:"verdicts"` // by item; null: a tie, or nobody voted
	Accuracy *float64          `json:"accuracy"` // share of labelled items whose verdict is the label; a tie is wrong. null: no labels
	Labelled int               `json:"labelled"` // items
	Correct  int               `json:"correct"`
}

// ErrNoCalibration says that the calibrated method has nothing to weigh by.
var ErrNoCalibration = errors.New("the calibrated method needs a calibration, or labels among the votes")

// Aggregate decides on each ballot. With Calibrated, and no calibration, the labels among the ballots are used: each
// ballot is then weighed by what was measured on the others. That holds for a calibration, too, that knows the item: its
// own label never weighs on a verdict.
func Aggregate(ballots []Ballot, method Method, c *Calibration) (*Verdicts, error) {
	v := &Verdicts{Verdicts: map[string]Choice{}}
	var weigh func(*Ballot) map[string]*big.Rat
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
		weigh = c.without()
	default:
		return nil, fmt.Errorf("method %q is none of %s, %s, %s", method, Majority, Weighted, Calibrated)
	}
	for i := range ballots {
		b := &ballots[i]
		verdict := heaviest(b, weigh(b))
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

// byConfidence takes confidences as the decimals that they were written as, so that sums of them are exact. Where nobody
// who voted has any, all tally alike.
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

// without weighs each ballot by what is known of all items but its own.
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

// heaviest is the choice whose voters weigh most; none on a tie, and where nobody voted or no vote weighs anything.
func heaviest(b *Ballot, weights map[string]*big.Rat) Choice {
	sums := map[Choice]*big.Rat{}
	for name, vote := range b.Votes {
		if vote == "" {
			continue
		}
		if sums[vote] == nil {
			sums[vote] = new(big.Rat)
		}
		sums[vote].Add(sums[vote], weights[name])
	}
	var best Choice
	most := new(big.Rat)
	for choice, sum := range sums {
		switch sum.Cmp(most) {
		case 1:
			best, most = choice, sum
		case 0:
			best = ""
		}
	}
	return best
}
