package stats

import (
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/go-json-experiment/json"

	"jurat/internal/jsonform"
)

// Format is the version of the calibration file.
const Format = "jurat/calibration/v1"

// Unit is the number of units of weight per natural unit of log-odds. Weights are whole numbers, so that their sums
// are exact.
const Unit = 100_000

// MaxWeight is the greatest weight, and its negative the least: a juror without errors still counts as fallible.
const MaxWeight = 1_000_000

// A Calibration holds the reliability of jurors, measured on items with known answers.
type Calibration struct {
	Format         string  `json:"format"`
	Choices        int     `json:"choices"` // how many choices there were
	Items          int     `json:"items"`   // labelled items
	Jurors         []Juror `json:"jurors"`
	Pairs          []Pair  `json:"pairs"`
	EffectiveVotes float64 `json:"effectiveVotes"` // the equivalent number of independent jurors, by the correlation of their errors
	Known          []Known `json:"known"`          // each labelled item's contribution, so that no item is judged by its own label
}

// A Juror is the measurement of one juror.
type Juror struct {
	Juror       string  `json:"juror"`
	Made                // the model and template that the votes name
	Votes       int     `json:"votes"`       // on labelled items
	Correct     int     `json:"correct"`     // of these
	Abstentions int     `json:"abstentions"` // on labelled items
	Reliability float64 `json:"reliability"` // (correct + 1) / (votes + choices)
	Low         float64 `json:"low"`         // 95 % interval of the share that is correct (Wilson)
	High        float64 `json:"high"`
	Weight      int     `json:"weight"` // log-odds of reliability in units of 1/100,000, -1,000,000 to 1,000,000: a juror worse than chance counts against its position
}

// A Pair is the correlation of two jurors' errors.
type Pair struct {
	A           string  `json:"a"`
	B           string  `json:"b"`
	Items       int     `json:"items"`       // labelled, with votes of both
	Correlation float64 `json:"correlation"` // of their errors (phi); 0 if one of them made none, or only errors
}

// Known says which jurors were right on one labelled item.
type Known struct {
	Item  string   `json:"item"`
	Right []string `json:"right"`
	Wrong []string `json:"wrong"`
}

// Calibrate measures jurors on the labelled ballots. It returns an error if there are none.
func Calibrate(ballots []Ballot) (*Calibration, error) {
	c := &Calibration{Format: Format, Choices: choices(ballots), Jurors: []Juror{}, Pairs: []Pair{}, Known: []Known{}}
	abstained := map[string]int{}
	made, err := madeBy(ballots)
	if err != nil {
		return nil, err
	}
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
		return nil, fmt.Errorf("none of the %d items has a label: measuring reliability needs labels", len(ballots))
	}
	counts := c.counts()
	for _, name := range jurors(ballots) {
		j := measured(name, counts[name], c.Choices, abstained[name])
		j.Made = made[name]
		c.Jurors = append(c.Jurors, j)
	}
	c.pair()
	return c, nil
}

// choices counts the different choices that were voted for, but at least two. It ignores labels: one without votes
// would affect the judgment of its own item.
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

// known returns which jurors were right. Abstentions are neither right nor wrong.
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

// A tally counts a juror's votes and correct votes.
type tally struct{ votes, correct int }

func (c *Calibration) counts() map[string]tally {
	counts := map[string]tally{}
	for _, k := range c.Known {
		k.add(counts, 1)
	}
	return counts
}

// add adds an item to counts, or with n = -1 removes it.
func (k *Known) add(counts map[string]tally, n int) {
	for _, name := range k.Right {
		counts[name] = tally{counts[name].votes + n, counts[name].correct + n}
	}
	for _, name := range k.Wrong {
		counts[name] = tally{counts[name].votes + n, counts[name].correct}
	}
}

func measured(name string, n tally, choices, abstained int) Juror {
	low, high := Wilson(float64(n.correct), n.votes)
	return Juror{Juror: name, Votes: n.votes, Correct: n.correct, Abstentions: abstained, Reliability: n.reliability(choices),
		Low: low, High: high, Weight: n.weight(choices)}
}

// reliability is the share of correct votes, after adding one vote for each choice. So a juror without votes is as
// good as chance.
func (n tally) reliability(choices int) float64 {
	return float64(n.correct+1) / float64(n.votes+choices)
}

// weight is the log-odds of reliability against chance: how strongly this juror's vote supports its choice over
// another. A juror no better than chance has weight 0, and one that is worse a negative weight.
func (n tally) weight(choices int) int {
	right, wrong := float64(n.correct+1), float64(n.votes-n.correct+choices-1)/float64(choices-1)
	return min(max(int(math.Round(Unit*math.Log(right/wrong))), -MaxWeight), MaxWeight)
}

// pair measures the correlation of errors, and the number of independent votes that it leaves.
func (c *Calibration) pair() {
	sum := 0.0
	for i, a := range c.Jurors {
		for _, b := range c.Jurors[i+1:] {
			p := c.correlate(a.Juror, b.Juror)
			sum += p.Correlation
			c.Pairs = append(c.Pairs, p)
		}
	}
	c.EffectiveVotes = EffectiveVotes(len(c.Jurors), sum/float64(max(1, len(c.Pairs))))
}

// correlate is the phi coefficient of two jurors' errors.
func (c *Calibration) correlate(a, b string) Pair {
	p := Pair{A: a, B: b}
	var both [2][2]float64 // by whether a and b were wrong
	for _, k := range c.Known {
		wrongA, votedA := k.wrong(a)
		wrongB, votedB := k.wrong(b)
		if votedA && votedB {
			both[wrongA][wrongB]++
			p.Items++
		}
	}
	p.Correlation, _ = Phi(both)
	return p
}

// wrong is 1 if a juror's vote on an item was wrong.
func (k *Known) wrong(juror string) (wrong int, voted bool) {
	if _, ok := slices.BinarySearch(k.Wrong, juror); ok {
		return 1, true
	}
	_, right := slices.BinarySearch(k.Right, juror)
	return 0, right
}

// Load is Parse for the file of a name. It returns nil if none is named.
func Load(file string) (*Calibration, error) {
	if file == "" {
		return nil, nil
	}
	doc, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c, err := Parse(jsonform.CutMark(doc))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// Parse reads a calibration file. It returns an error if what the file says of jurors does not follow from what it
// says of items: a forger of weights would have to forge votes.
func Parse(doc []byte) (*Calibration, error) {
	c := new(Calibration)
	if err := json.Unmarshal(doc, c, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading calibration: %w", err)
	}
	if c.Format != Format {
		return nil, fmt.Errorf("reading calibration: format is %q, want %q", c.Format, Format)
	}
	if c.Choices < 2 || c.Items != len(c.Known) || c.Items == 0 {
		return nil, fmt.Errorf("reading calibration: choices %d or items %d do not match %d known items", c.Choices, c.Items, len(c.Known))
	}
	for i, k := range c.Known {
		if i > 0 && c.Known[i-1].Item >= k.Item || !slices.IsSorted(k.Right) || !slices.IsSorted(k.Wrong) {
			return nil, fmt.Errorf("reading calibration: known/%d: not sorted, or an item is repeated", i)
		}
	}
	counts := c.counts()
	for i, j := range c.Jurors {
		if i > 0 && c.Jurors[i-1].Juror >= j.Juror {
			return nil, fmt.Errorf("reading calibration: jurors/%d: not sorted, or a juror is repeated", i)
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
