package stats

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/jsonform"
	"jurat/internal/kit/fault"
	"jurat/jury"
)

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

type Juror struct {
	Juror       string  `json:"juror"`
	Made                // the model and template that the votes name
	Votes       int     `json:"votes"`       // on labelled items
	Correct     int     `json:"correct"`     // of these
	Abstentions int     `json:"abstentions"` // on labelled items
	Reliability float64 `json:"reliability"` // (correct + 1) / (votes + choices)
	Low         float64 `json:"low"`         // 95 % interval of the share that is correct (Wilson)
	High        float64 `json:"high"`
	Weight      int     `json:"weight"` // log-odds of reliability in 1/100,000, -1,000,000 to 1,000,000: who is worse than chance counts against its position
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
	for _, name := range slices.Sorted(maps.Keys(made)) {
		j := counts[name]
		j.Juror, j.Made, j.Abstentions, j.Reliability, j.Weight = name, made[name], abstained[name], j.reliability(c.Choices), j.weight(c.Choices)
		j.Low, j.High = Wilson(float64(j.Correct), j.Votes)
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

// counts has the votes of each juror, and how many were right.
func (c *Calibration) counts() map[string]Juror {
	counts := map[string]Juror{}
	for _, k := range c.Known {
		k.add(counts, 1)
	}
	return counts
}

// add adds an item to counts, or with n = -1 removes it.
func (k *Known) add(counts map[string]Juror, n int) {
	for i, name := range slices.Concat(k.Right, k.Wrong) {
		j := counts[name]
		if j.Votes += n; i < len(k.Right) {
			j.Correct += n
		}
		counts[name] = j
	}
}

// reliability is the share of correct votes, after adding one vote for each choice. So a juror without votes is as
// good as chance.
func (j Juror) reliability(choices int) float64 {
	return float64(j.Correct+1) / float64(j.Votes+choices)
}

// weight is the log-odds of reliability against chance: how strongly this juror's vote supports its choice over
// another. A juror no better than chance has weight 0, and one that is worse a negative weight.
func (j Juror) weight(choices int) int {
	right, wrong := float64(j.Correct+1), float64(j.Votes-j.Correct+choices-1)/float64(choices-1)
	return min(max(int(math.Round(Unit*math.Log(right/wrong))), -MaxWeight), MaxWeight)
}

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
	fault.While(&err, "%s", file)
	return c, err
}

// Parse reads a calibration file. It returns an error if what the file says of jurors does not follow from what it
// says of items: a forger of weights would have to forge votes.
func Parse(doc []byte) (c *Calibration, err error) {
	defer fault.While(&err, "reading calibration")
	c = new(Calibration)
	if err := json.Unmarshal(doc, c, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if c.Format != Format {
		return nil, fmt.Errorf("format is %q, want %q", c.Format, Format)
	}
	if c.Choices < 2 || c.Items != len(c.Known) || c.Items == 0 {
		return nil, fmt.Errorf("choices %d or items %d do not match %d known items", c.Choices, c.Items, len(c.Known))
	}
	for i, k := range c.Known {
		if i > 0 && c.Known[i-1].Item >= k.Item || !slices.IsSorted(k.Right) || !slices.IsSorted(k.Wrong) {
			return nil, fmt.Errorf("known/%d: not sorted, or an item is repeated", i)
		}
	}
	counts := c.counts()
	for i, j := range c.Jurors {
		if i > 0 && c.Jurors[i-1].Juror >= j.Juror {
			return nil, fmt.Errorf("jurors/%d: not sorted, or a juror is repeated", i)
		}
		n := counts[j.Juror]
		if n.Votes != j.Votes || n.Correct != j.Correct || n.weight(c.Choices) != j.Weight {
			return nil, fmt.Errorf("jurors/%d (%s): votes, correct and weight do not follow from the known items", i, j.Juror)
		}
		delete(counts, j.Juror)
	}
	if len(counts) > 0 {
		return nil, errors.New("known items name jurors that are not listed")
	}
	return c, nil
}

// A Choice is a vote: a JSON string, number or boolean in canonical form. The zero Choice means none.
type Choice string

// MarshalJSONTo implements json.MarshalerTo. It writes the zero Choice as null. Its errors are those of enc.
func (c Choice) MarshalJSONTo(enc *jsontext.Encoder) error {
	if c == "" {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteValue(jsontext.Value(c))
}

// choiceOf reads a choice; nil and null are none. It refuses objects, arrays and numbers without a canonical form.
func choiceOf(member string, v jsontext.Value) (Choice, error) {
	switch v.Kind() {
	case jsontext.KindInvalid, 'n':
		return "", nil
	case '{', '[':
		return "", errors.New(member + ": want a string, a number, a boolean or null")
	}
	v = v.Clone()
	err := v.Canonicalize()
	fault.While(&err, "%s", member)
	return Choice(v), err
}

// String returns the choice in readable form.
func (c Choice) String() string {
	if c == "" {
		return "none"
	}
	if text, err := jsontext.AppendUnquote(nil, c); err == nil {
		return string(text)
	}
	return string(c)
}

// A Ballot holds all votes on one item.
type Ballot struct {
	Item  string
	Label Choice            // the right answer; none: unknown
	Votes map[string]Choice // by juror; none: the juror abstained
	Sure  map[string]float64
	Made  map[string]Made // by juror
}

type line struct {
	Item       string         `json:"item"`
	Juror      string         `json:"juror"`
	Vote       jsontext.Value `json:"vote"` // nil: missing
	Label      jsontext.Value `json:"label"`
	Confidence *float64       `json:"confidence"`
	Made
}

// maxLine is the longest line in bytes.
const maxLine = 1 << 20

// Read reads votes in JSON Lines: {"item", "juror", "vote", "label", "confidence", "model", "template"}, the last four optional. A vote of
// null is an abstention. It returns the ballots sorted by item. Its errors name the line.
func Read(from io.Reader) ([]Ballot, error) {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, maxLine)
	ballots := map[string]*Ballot{}
	n := 0
	for scanner.Scan() {
		n++
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		if err := take(ballots, scanner.Bytes()); err != nil {
			return nil, fmt.Errorf("votes, line %d: %w", n, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("votes, line %d: %w", n+1, err)
	}
	if len(ballots) == 0 {
		return nil, errors.New("the input has no votes")
	}
	list := make([]Ballot, 0, len(ballots))
	for _, item := range slices.Sorted(maps.Keys(ballots)) {
		list = append(list, *ballots[item])
	}
	return list, nil
}

func take(ballots map[string]*Ballot, text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return err
	}
	vote, err := choiceOf("vote", l.Vote)
	label, wrong := choiceOf("label", l.Label)
	if err = cmp.Or(err, wrong); err != nil {
		return err
	}
	b := ballots[l.Item]
	if b == nil {
		b = &Ballot{Item: l.Item, Votes: map[string]Choice{}, Sure: map[string]float64{}, Made: map[string]Made{}}
		ballots[l.Item] = b
	}
	if _, twice := b.Votes[l.Juror]; twice {
		return fmt.Errorf("a second vote of juror %q on item %q", l.Juror, l.Item)
	}
	if label != "" && b.Label != "" && label != b.Label {
		return fmt.Errorf("label: item %q has the label %s here and %s before", l.Item, label, b.Label)
	}
	b.Label = cmp.Or(label, b.Label)
	b.Votes[l.Juror], b.Sure[l.Juror], b.Made[l.Juror] = vote, 1, l.Made
	if l.Confidence != nil {
		b.Sure[l.Juror] = *l.Confidence
	}
	return nil
}

func (l *line) check() error {
	switch {
	case l.Item == "":
		return errors.New("item: missing or empty")
	case l.Juror == "":
		return errors.New("juror: missing or empty")
	case l.Vote == nil:
		return errors.New("vote: missing; null is an abstention")
	case l.Confidence != nil && !(*l.Confidence >= 0 && *l.Confidence <= 1):
		return fmt.Errorf("confidence: %v: want a number from 0 to 1", *l.Confidence)
	}
	return nil
}

// A Method turns many votes into one verdict.
type Method string

const (
	Majority   Method = "majority"   // the choice with the most votes
	Weighted   Method = "weighted"   // by the confidence that each juror states; equal weights if none states any
	Calibrated Method = "calibrated" // by the log-odds of measured reliability
)

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
	var weigh func(*Ballot) func(juror string) *big.Rat
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

func equally(*Ballot) func(string) *big.Rat {
	return func(string) *big.Rat { return big.NewRat(1, 1) }
}

// byConfidence reads confidences as the decimals that were written, so that their sums are exact. If no voter states
// one, all count the same.
func byConfidence(b *Ballot) func(string) *big.Rat {
	for name, vote := range b.Votes {
		if vote != "" && b.Sure[name] > 0 {
			return func(name string) *big.Rat {
				weight, _ := new(big.Rat).SetString(strconv.FormatFloat(b.Sure[name], 'g', -1, 64)) // Read has checked it
				return weight
			}
		}
	}
	return equally(b)
}

// without weighs each ballot by what is known of all other items.
func (c *Calibration) without() func(*Ballot) func(string) *big.Rat {
	all := c.counts()
	return func(b *Ballot) func(string) *big.Rat {
		counts := maps.Clone(all)
		i, known := slices.BinarySearchFunc(c.Known, b.Item, func(k Known, item string) int { return strings.Compare(k.Item, item) })
		if known {
			c.Known[i].add(counts, -1)
		}
		return func(name string) *big.Rat { return big.NewRat(int64(counts[name].weight(c.Choices)), 1) }
	}
}

// heaviest is the choice with the largest sum of weights, among the choices that are given and those that were voted for. A choice without a
// vote has the sum 0, so it wins if jurors that are mostly wrong vote against it. It returns no choice on a tie, without votes, and, if none
// are given, if no vote has any weight.
func heaviest(b *Ballot, weigh func(juror string) *big.Rat, among []Choice) (best Choice) {
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
		weight := weigh(name)
		sums[vote].Add(sums[vote], weight)
		weighty = weighty || among != nil || weight.Sign() != 0
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

// Made says what gave a juror's votes. Reliability belongs to a model and to the template that asks it, not to a name.
type Made struct {
	Model    string `json:"model,omitzero"`    // as its provider reports it; "": unknown
	Template string `json:"template,omitzero"` // the digest of the seat's template; "": unknown
}

// madeBy returns what gave each juror's votes. It returns an error if the votes of one juror name two models or templates.
func madeBy(ballots []Ballot) (map[string]Made, error) {
	all := map[string]Made{}
	for _, b := range ballots {
		for name := range b.Votes {
			made := b.Made[name]
			known, before := all[name]
			if before && known != made {
				return nil, fmt.Errorf("item %q: the votes of juror %q are of model %q and template %q here, and "+
					"of model %q and template %q elsewhere: measure each by itself", b.Item, name, made.Model, made.Template, known.Model, known.Template)
			}
			all[name] = made
		}
	}
	return all, nil
}

// WeighBy gives settings the weights of a calibration file, for the method that takes them; "" is no file. It lists the jurors of whom the file
// does not say on which model and template they were measured. The error says what to do.
func WeighBy(file string, s *jury.Settings) (unbound []string, err error) {
	if (s.Method == jury.Calibrated) != (file != "") {
		return nil, errors.New("--calibration goes with --method calibrated, and that with it: 'jurat-lab calibrate' writes a calibration file")
	}
	c, err := Load(file)
	if err == nil && c != nil {
		unbound, err = c.Weigh(s)
		fault.While(&err, "%s", file)
	}
	return unbound, err
}

// Weigh gives settings the weights of their seats, and how many votes these are worth. It lists the jurors of whom the file does not say on
// which model and template they were measured. It returns an error that names a juror without a measurement, or one that was measured on
// another model or template than sits.
func (c *Calibration) Weigh(s *jury.Settings) (unbound []string, err error) {
	weights := map[string]int{}
	for _, seat := range s.Seats {
		i, found := slices.BinarySearchFunc(c.Jurors, seat.JurorID, func(j Juror, name string) int { return strings.Compare(j.Juror, name) })
		if !found {
			return nil, fmt.Errorf("the calibration has no juror %q", seat.JurorID)
		}
		j := &c.Jurors[i]
		if err := j.fits(seat); err != nil {
			return nil, err
		}
		if j.Model == "" || j.Template == "" {
			unbound = append(unbound, seat.JurorID)
		}
		weights[seat.JurorID] = j.Weight
	}
	s.Weights, s.EffectiveVotes = weights, c.worth(weights)
	return unbound, nil
}

// fits returns why a measurement does not hold for a seat, or nil.
func (j *Juror) fits(seat jury.Seat) error {
	const again = "a weight holds for one model and one template: measure this one on labelled items, and run 'jurat-lab calibrate' again"
	switch {
	case j.Model != "" && !jury.IsModel(j.Model, seat.Model):
		return fmt.Errorf("juror %q was measured as model %q, and %q sits: %s", j.Juror, j.Model, seat.Model, again)
	case j.Template != "" && j.Template != seat.Template.String():
		return fmt.Errorf("juror %q was measured with the template %s, and sits with %s: %s", j.Juror, j.Template, seat.Template, again)
	}
	return nil
}

// worth is the number of independent votes that these jurors are worth, to two decimals.
func (c *Calibration) worth(jurors map[string]int) float64 {
	sum, pairs := 0.0, 0
	for _, p := range c.Pairs {
		_, a := jurors[p.A]
		if _, b := jurors[p.B]; a && b {
			sum, pairs = sum+p.Correlation, pairs+1
		}
	}
	votes := EffectiveVotes(len(jurors), sum/float64(max(1, pairs)))
	return min(max(math.Round(votes*100)/100, 1), float64(len(jurors)))
}

// Leader returns the juror whose weight exceeds that of all others together, so that its vote always decides. "" is
// nobody.
func (c *Calibration) Leader() string {
	all := 0
	for _, j := range c.Jurors {
		all += max(j.Weight, -j.Weight)
	}
	for _, j := range c.Jurors {
		if 2*j.Weight > all && len(c.Jurors) > 1 {
			return j.Juror
		}
	}
	return ""
}
