package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// Format is the version of the calibration file.
const Format = "jurat/calibration/v1"

// Unit is how many units of weight one natural unit of log-odds is: weights are whole numbers, so that sums of them are
// exact.
const Unit = 100_000

// MaxWeight is the greatest weight: a juror who was never wrong is not taken to be infallible.
const MaxWeight = 1_000_000

// A Calibration says how reliable jurors were where the right answer was known.
type Calibration struct {
	Format         string  `json:"format"`
	Choices        int     `json:"choices"` // between how many things there was to choose
	Items          int     `json:"items"`   // that had a label
	Jurors         []Juror `json:"jurors"`
	Pairs          []Pair  `json:"pairs"`
	EffectiveVotes float64 `json:"effectiveVotes"` // how many independent jurors these are worth, given how their errors go together
	Known          []Known `json:"known"`          // what each labelled item added, so that no item is judged by its own label
}

// A Juror is how one of them did.
type Juror struct {
	Juror       string  `json:"juror"`
	Votes       int     `json:"votes"`       // on labelled items
	Correct     int     `json:"correct"`     // of these
	Abstentions int     `json:"abstentions"` // on labelled items
	Reliability float64 `json:"reliability"` // (correct + 1) / (votes + choices)
	Low         float64 `json:"low"`         // 95 % interval of the share that is correct (Wilson)
	High        float64 `json:"high"`
	Weight      int     `json:"weight"` // log-odds of reliability in units of 1/100,000, 0 to 1,000,000
}

// A Pair is how the errors of two jurors go together.
type Pair struct {
	A           string  `json:"a"`
	B           string  `json:"b"`
	Items       int     `json:"items"`       // labelled, on which both voted
	Correlation float64 `json:"correlation"` // of their errors (phi); 0 where one of them made none, or nothing but errors
}

// Known is who was right on one labelled item.
type Known struct {
	Item  string   `json:"item"`
	Right []string `json:"right"`
	Wrong []string `json:"wrong"`
}

// Calibrate measures jurors on the ballots that have a label.
func Calibrate(ballots []Ballot) (*Calibration, error) {
	c := &Calibration{Format: Format, Choices: choices(ballots), Jurors: []Juror{}, Pairs: []Pair{}, Known: []Known{}}
	abstained := map[string]int{}
	for _, b := range ballots {
		if b.Label == "" {
			continue
		}
		c.Known = append(c.Known, b.known())
		for name, vote := range b.Votes {
			if vote == "" {
				abstained[name]++
			}
		}
	}
	c.Items = len(c.Known)
	if c.Items == 0 {
		return nil, fmt.Errorf("none of %d items has a label, and without labels nobody's reliability can be measured", len(ballots))
	}
	counts := c.counts()
	for _, name := range jurors(ballots) {
		c.Jurors = append(c.Jurors, measured(name, counts[name], c.Choices, abstained[name]))
	}
	c.pair()
	return c, nil
}

// choices is between how many things there is to choose, at least two. Labels are not looked at: one that nobody voted for
// would change what its own item is judged by.
func choices(ballots []Ballot) int {
	seen := map[Choice]bool{}
	for _, b := range ballots {
		for _, vote := range b.Votes {
			seen[vote] = true
		}
	}
	delete(seen, "")
	return max(2, len(seen))
}

// known says who was right. Abstentions are neither right nor wrong.
func (b *Ballot) known() Known {
	k := Known{Item: b.Item, Right: []string{}, Wrong: []string{}}
	for name, vote := range b.Votes {
		switch vote {
		case "":
		case b.Label:
			k.Right = append(k.Right, name)
		default:
			k.Wrong = append(k.Wrong, name)
		}
	}
	slices.Sort(k.Right)
	slices.Sort(k.Wrong)
	return k
}

// A tally is how often a juror voted, and how often rightly.
type tally struct{ votes, correct int }

func (c *Calibration) counts() map[string]tally {
	counts := map[string]tally{}
	for _, k := range c.Known {
		k.add(counts, 1)
	}
	return counts
}

// add counts an item in, or with -1 out again.
func (k *Known) add(counts map[string]tally, n int) {
	for _, name := range k.Right {
		counts[name] = tally{counts[name].votes + n, counts[name].correct + n}
	}
	for _, name := range k.Wrong {
		counts[name] = tally{counts[name].votes + n, counts[name].correct}
	}
}

func measured(name string, n tally, choices, abstained int) Juror {
	low, high := wilson(n.correct, n.votes)
	return Juror{Juror: name, Votes: n.votes, Correct: n.correct, Abstentions: abstained, Reliability: n.reliability(choices),
		Low: low, High: high, Weight: n.weight(choices)}
}

// reliability is the share of correct votes, with one vote more for each choice: who was never tried is as good as chance.
func (n tally) reliability(choices int) float64 {
	return float64(n.correct+1) / float64(n.votes+choices)
}

// weight is how much more likely a vote of this juror makes its choice than another one: the log-odds of reliability
// against chance. Who is no better than chance weighs nothing.
func (n tally) weight(choices int) int {
	right, wrong := float64(n.correct+1), float64(n.votes-n.correct+choices-1)/float64(choices-1)
	return min(max(int(math.Round(Unit*math.Log(right/wrong))), 0), MaxWeight)
}

// wilson is the 95 % score interval of a share.
func wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	p, m := float64(k)/float64(n), float64(n)
	centre, half := p+z*z/(2*m), z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, (centre-half)/(1+z*z/m)), min(1, (centre+half)/(1+z*z/m))
}

// pair measures how errors go together, and how many independent votes that leaves.
func (c *Calibration) pair() {
	sum := 0.0
	for i, a := range c.Jurors {
		for _, b := range c.Jurors[i+1:] {
			p := c.correlate(a.Juror, b.Juror)
			sum += p.Correlation
			c.Pairs = append(c.Pairs, p)
		}
	}
	n := float64(len(c.Jurors))
	c.EffectiveVotes = n
	if len(c.Pairs) > 0 {
		// Errors that avoid each other do not make more votes than there are jurors.
		c.EffectiveVotes = n / (1 + (n-1)*max(0, sum/float64(len(c.Pairs))))
	}
}

// correlate is the phi coefficient of two jurors' errors.
func (c *Calibration) correlate(a, b string) Pair {
	var both [2][2]int // by whether a and b were wrong
	for _, k := range c.Known {
		wrongA, votedA := k.wrong(a)
		wrongB, votedB := k.wrong(b)
		if votedA && votedB {
			both[wrongA][wrongB]++
		}
	}
	p := Pair{A: a, B: b, Items: both[0][0] + both[0][1] + both[1][0] + both[1][1]}
	a0, a1, b0, b1 := both[0][0]+both[0][1], both[1][0]+both[1][1], both[0][0]+both[1][0], both[0][1]+both[1][1]
	if a0 > 0 && a1 > 0 && b0 > 0 && b1 > 0 {
		p.Correlation = (float64(both[1][1])*float64(both[0][0]) - float64(both[1][0])*float64(both[0][1])) /
			math.Sqrt(float64(a0)*float64(a1)*float64(b0)*float64(b1))
	}
	return p
}

// wrong is 1 if a juror voted wrongly on an item.
func (k *Known) wrong(juror string) (wrong int, voted bool) {
	if _, ok := slices.BinarySearch(k.Wrong, juror); ok {
		return 1, true
	}
	_, right := slices.BinarySearch(k.Right, juror)
	return 0, right
}

// Parse reads a calibration file. What it says of jurors must follow from what it says of items: who makes up weights
// has to make up votes.
func Parse(doc []byte) (*Calibration, error) {
	c := new(Calibration)
	if err := json.Unmarshal(doc, c, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading calibration: %w", err)
	}
	if c.Format != Format {
		return nil, fmt.Errorf("reading calibration: format is %q, want %q", c.Format, Format)
	}
	if c.Choices < 2 || c.Items != len(c.Known) || c.Items == 0 {
		return nil, fmt.Errorf("reading calibration: choices %d or items %d are not those of %d known items", c.Choices, c.Items, len(c.Known))
	}
	for i, k := range c.Known {
		if i > 0 && c.Known[i-1].Item >= k.Item || !slices.IsSorted(k.Right) || !slices.IsSorted(k.Wrong) {
			return nil, fmt.Errorf("reading calibration: known/%d: not sorted, or an item twice", i)
		}
	}
	counts := c.counts()
	for i, j := range c.Jurors {
		if i > 0 && c.Jurors[i-1].Juror >= j.Juror {
			return nil, fmt.Errorf("reading calibration: jurors/%d: not sorted, or one twice", i)
		}
		n := counts[j.Juror]
		if n.votes != j.Votes || n.correct != j.Correct || n.weight(c.Choices) != j.Weight {
			return nil, fmt.Errorf("reading calibration: jurors/%d (%s): votes, correct and weight do not follow from the known items", i, j.Juror)
		}
		delete(counts, j.Juror)
	}
	if len(counts) > 0 {
		return nil, fmt.Errorf("reading calibration: known items name jurors that are not listed")
	}
	return c, nil
}

// Weights are those of the named jurors, by name; the error names one who was not measured.
func (c *Calibration) Weights(names ...string) (map[string]int, error) {
	weights := map[string]int{}
	for _, name := range names {
		i, found := slices.BinarySearchFunc(c.Jurors, name, func(j Juror, name string) int { return strings.Compare(j.Juror, name) })
		if !found {
			return nil, fmt.Errorf("the calibration does not know the juror %q", name)
		}
		weights[name] = c.Jurors[i].Weight
	}
	return weights, nil
}
