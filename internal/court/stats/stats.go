// Package stats computes what trials have in common: how much jurors agree, which positions change and toward which,
// what discussion and final judge change, what answers cost.
//
// # Calibration
//
// Calibrate measures each juror's reliability, and the correlation of their errors, on items with known answers.
// Aggregate weighs votes by that.
//
// All counts are whole numbers in a fixed order, so neither the order of lines nor of jurors changes a result.
package stats

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"jurat/evidence"
	"jurat/internal/court/trial"
	"jurat/internal/log/ledger"
	"jurat/jury"
)

type Stats struct {
	Trials       int                   `json:"trials"`
	Verdicts     map[jury.Position]int `json:"verdicts"` // the juries' verdicts
	Outcomes     map[jury.Position]int `json:"outcomes"` // the positions that count: a person's, if a person decided
	Decided      int                   `json:"decided"`  // trials with a person's decision on the verdict
	Changed      int                   `json:"changed"`  // of these, trials whose outcome differs from the jury's verdict
	Open         int                   `json:"open"`     // trials that wait for a person
	Degraded     int                   `json:"degraded"`
	Inconclusive int                   `json:"inconclusive"`

	AfterPhase1     Agreement `json:"afterPhase1"`
	AfterDiscussion Agreement `json:"afterDiscussion"`

	Discussed        int `json:"discussed"`        // trials with at least one round
	ChangedByTalk    int `json:"changedByTalk"`    // of these, trials in which the majority's position changed
	Judged           int `json:"judged"`           // trials with a verdict by their method
	ChangedByVerdict int `json:"changedByVerdict"` // of these, trials whose verdict differs from the majority after the discussion

	Statements  int `json:"statements"`
	Changes     int `json:"changes"`     // of position
	ToMajority  int `json:"toMajority"`  // of these, to the previous majority's position
	Unsupported int `json:"unsupported"` // of these, without a new citation

	Jurors []JurorStats `json:"jurors"` // including the judge
}

// JurorStats describes one seat over all trials.
type JurorStats struct {
	JurorID   string `json:"jurorId"`
	Asked     int    `json:"asked"`
	Answered  int    `json:"answered"`
	Absences  int    `json:"absences"`
	Fallbacks int    `json:"fallbacks"` // stand-ins for blocked answers
	Changes   int    `json:"changes"`   // of position

	Attempts     int   `json:"attempts"` // calls; 0 for rules
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
	Cost         int64 `json:"costMicroUSD"`        // millionths of a US dollar
	Latency      int64 `json:"medianLatencyMillis"` // of an answer, with all its attempts

	latencies []int64
}

// A Tally collects trials one by one.
type Tally struct {
	stats  Stats
	phase1 [][]jury.Position
	talked [][]jury.Position
	jurors map[string]*JurorStats
}

func New() *Tally {
	return &Tally{stats: Stats{Verdicts: map[jury.Position]int{}, Outcomes: map[jury.Position]int{}}, jurors: map[string]*JurorStats{}}
}

// Closed reads the chains of a log's finished trials, one at a time, and tells how many records it has read. It ends after an error.
func Closed(ctx context.Context, l *ledger.Ledger, progress func(done, total int64)) iter.Seq2[[]*evidence.Record, error] {
	return func(yield func([]*evidence.Record, error) bool) {
		size, err := l.Size(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for r, err := range l.Records(ctx, 0) {
			var chain []*evidence.Record
			if err == nil {
				if progress(r.Index+1, size); r.Payload.ActionType != evidence.TrialClosing {
					continue
				}
				chain, err = l.Chain(ctx, r.Payload.ChainID)
			}
			if !yield(chain, err) || err != nil {
				return
			}
		}
	}
}

// Add adds the chain of one finished trial, in log order: its acts, and people's decisions on it. It returns an error
// if the chain is not a finished trial.
func (t *Tally) Add(chain []*evidence.Record) error {
	v, err := trial.ViewOf(nil, chain)
	if err != nil {
		return err
	}
	result, err := v.Result()
	if err != nil {
		return err
	}
	t.decided(v.Outcome)
	for _, said := range v.Said {
		t.said(said)
	}
	t.outcome(result)
	t.phase1 = append(t.phase1, held(result, result.Phase1Evaluations))
	t.talked = append(t.talked, lastHeld(v, result))
	return nil
}

func (t *Tally) decided(o *jury.TrialOutcome) {
	s := &t.stats
	s.Outcomes[o.Position]++
	count(&s.Open, o.Open)
	count(&s.Decided, o.Decision != nil)
	count(&s.Changed, o.Decision != nil && o.Position != o.Verdict.Position)
}

func count(n *int, is bool) {
	if is {
		*n++
	}
}

func (t *Tally) outcome(r *jury.Result) {
	s := &t.stats
	s.Trials++
	s.Verdicts[r.FinalVerdict]++
	count(&s.Degraded, r.Degraded)
	count(&s.Inconclusive, r.Inconclusive)
	count(&s.Judged, !r.Inconclusive)
	count(&s.ChangedByVerdict, !r.Inconclusive && r.FinalVerdict != r.DiscussionVerdict)
	count(&s.Discussed, r.TotalRounds > 0)
	count(&s.ChangedByTalk, r.TotalRounds > 0 && r.Phase1Verdict != r.DiscussionVerdict)
	for _, round := range r.DiscussionRounds {
		s.Statements += len(round.Statements)
	}
	for _, c := range r.Changes {
		s.Changes++
		t.juror(c.JurorID).Changes++
		count(&s.ToMajority, c.ToMajority)
		count(&s.Unsupported, c.Unsupported)
	}
}

// held returns each seat's position. A stand-in has none.
func held(r *jury.Result, evaluations []jury.Evaluation) []jury.Position {
	list := make([]jury.Position, len(r.Phase3Judgment.Votes))
	for i, vote := range r.Phase3Judgment.Votes {
		for _, e := range evaluations {
			if e.JurorID == vote.JurorID && !e.Fallback {
				list[i] = e.Position
			}
		}
	}
	return list
}

// lastHeld returns each seat's position at the end of the discussion. The final judgment may have counted earlier votes.
func lastHeld(v *trial.View, r *jury.Result) []jury.Position {
	votes := r.Phase3Judgment.Votes
	if talked := v.Votes.AfterDiscussion; talked != nil {
		votes = talked.Votes
	}
	list := make([]jury.Position, len(votes))
	for i, vote := range votes {
		if vote.Position != nil && !vote.Fallback && !vote.Abstained {
			list[i] = *vote.Position
		}
	}
	return list
}

func (t *Tally) juror(id string) *JurorStats {
	if t.jurors[id] == nil {
		t.jurors[id] = &JurorStats{JurorID: id}
	}
	return t.jurors[id]
}

func (t *Tally) said(said *trial.Said) {
	j := t.juror(said.Juror)
	switch body := said.Body.(type) {
	case *jury.Absent:
		j.Absences++
	case *jury.Evaluation:
		j.answered(body.Fallback)
	case *jury.Statement:
		j.answered(body.UpdatedEvaluation != nil && body.UpdatedEvaluation.Fallback)
	default:
		j.answered(false)
	}
	j.Asked++
	j.add(said.Effort)
}

func (j *JurorStats) answered(fallback bool) {
	count(&j.Fallbacks, fallback)
	count(&j.Answered, !fallback)
}

func (j *JurorStats) add(e jury.Effort) {
	if len(e.Attempts) == 0 {
		return
	}
	var b jury.Bill
	b.Add(e)
	j.Attempts, j.InputTokens, j.OutputTokens, j.Cost = j.Attempts+b.Calls, j.InputTokens+b.InputTokens, j.OutputTokens+b.OutputTokens, j.Cost+b.Cost
	j.latencies = append(j.latencies, b.Latency)
}

func (t *Tally) Stats() *Stats {
	s := t.stats
	s.AfterPhase1, s.AfterDiscussion = agreement(t.phase1), agreement(t.talked)
	s.Jurors = []JurorStats{}
	for _, id := range slices.Sorted(maps.Keys(t.jurors)) {
		one := *t.jurors[id]
		if n := len(one.latencies); n > 0 {
			sorted := slices.Sorted(slices.Values(one.latencies))
			one.Latency = (sorted[(n-1)/2] + sorted[n/2]) / 2
		}
		one.latencies = nil
		s.Jurors = append(s.Jurors, one)
	}
	return &s
}

// Agreement measures how much jurors agree over many trials, beyond chance.
type Agreement struct {
	Level float64     `json:"level"` // mean of the share of seats that hold the most common position
	Kappa Coefficient `json:"fleissKappa"`
	Alpha Coefficient `json:"krippendorffAlpha"` // for nominal data
}

// drawing is the bootstrap of agreement, over trials.
var drawing = Bootstrap{Seed: 20250101, Samples: 1000}

// positions are the categories, in the order of counts.
var positions = []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail}

// counts is the number of jurors with each position in one trial.
type counts [3]int

func (c counts) sum() int { return c[0] + c[1] + c[2] }

// agreement measures trials by the position of each seat; "" means that the seat had none.
func agreement(trials [][]jury.Position) Agreement {
	a := Agreement{}
	table := make([]counts, len(trials))
	for i, votes := range trials {
		for _, vote := range votes {
			if at := slices.Index(positions, vote); at >= 0 {
				table[i][at]++
			}
		}
		a.Level += jury.Consensus(votes, 2, false).AgreementLevel / float64(len(trials))
	}
	a.Kappa = estimate(table, fleiss)
	a.Alpha = estimate(table, krippendorff)
	return a
}

// estimate computes a coefficient, which is undefined if agreement cannot be measured: fewer than two votes in every trial, or the same
// position in all votes. 1 is full agreement, and 0 agreement by chance.
func estimate(table []counts, of func([]counts) (float64, bool)) Coefficient {
	all := make([]int, len(table))
	for i := range all {
		all[i] = i
	}
	drawn := make([]counts, len(table))
	return drawing.Between([][]int{all}, func(picked []int) (float64, bool) {
		for i, at := range picked {
			drawn[i] = table[at]
		}
		return of(drawn)
	})
}

// fleiss is Fleiss' kappa over trials with at least two votes, whose number may differ. The share of agreeing pairs
// is averaged over trials; agreement by chance follows from the shares of all votes.
func fleiss(table []counts) (float64, bool) {
	var total [3]float64
	votes, trials, observed := 0.0, 0.0, 0.0
	for _, c := range table {
		n := float64(c.sum())
		if n < 2 {
			continue
		}
		pairs := 0.0
		for i, k := range c {
			pairs += float64(k * (k - 1))
			total[i] += float64(k)
		}
		observed += pairs / (n * (n - 1))
		votes += n
		trials++
	}
	if trials == 0 {
		return 0, false
	}
	observed /= trials
	chance := 0.0
	for _, k := range total {
		chance += (k / votes) * (k / votes)
	}
	if chance == 1 { // exact: one of the shares is 1 and the others 0
		return 0, false
	}
	return (observed - chance) / (1 - chance), true
}

// krippendorff is Krippendorff's alpha for nominal data with any number of votes per trial, from the matrix of
// coincidences.
func krippendorff(table []counts) (float64, bool) {
	var total [3]float64
	votes, disagreeing := 0.0, 0.0
	for _, c := range table {
		n := float64(c.sum())
		if n < 2 {
			continue // a single vote has no pair
		}
		for i, k := range c {
			total[i] += float64(k)
			disagreeing += float64(k) * (n - float64(k)) / (n - 1)
		}
		votes += n
	}
	if votes < 2 {
		return 0, false
	}
	expected := 0.0
	for _, k := range total {
		expected += k * (votes - k)
	}
	if expected == 0 {
		return 0, false
	}
	return 1 - (votes-1)*disagreeing/expected, true
}

// Z is the 97.5 % quantile of the standard normal distribution.
const Z = 1.959963984540054

// A Coefficient is a number with its 95 % interval. Members that are nil are not defined.
type Coefficient struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// Text writes the number in a unit, with its interval.
func (c Coefficient) Text(format string, unit float64) string {
	switch {
	case c.Value == nil:
		return "not defined"
	case c.Low == nil || c.High == nil:
		return fmt.Sprintf(format, *c.Value*unit)
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", *c.Value*unit, *c.Low*unit, *c.High*unit)
}

// Wilson is the 95 % score interval of a share (Wilson 1927). Hits may be a sum of shares of cases, and so need not be whole.
func Wilson(hits float64, cases int) (low, high float64) {
	if cases == 0 {
		return 0, 1
	}
	n := float64(cases)
	p := hits / n
	centre, half := p+Z*Z/(2*n), Z*math.Sqrt(max(0, p*(1-p)/n+Z*Z/(4*n*n)))
	return max(0, (centre-half)/(1+Z*Z/n)), min(1, (centre+half)/(1+Z*Z/n))
}

// Phi is the correlation of two yes-or-no properties, from how often they were so: both[1][0] counts where the first alone was. It is
// not defined if one of them always or never held.
func Phi(both [2][2]float64) (phi float64, defined bool) {
	a0, a1, b0, b1 := both[0][0]+both[0][1], both[1][0]+both[1][1], both[0][0]+both[1][0], both[0][1]+both[1][1]
	if a0 <= 0 || a1 <= 0 || b0 <= 0 || b1 <= 0 {
		return 0, false
	}
	return (both[1][1]*both[0][0] - both[1][0]*both[0][1]) / math.Sqrt(a0*a1*b0*b1), true
}

// EffectiveVotes is how many independent voters n voters are worth whose errors correlate by mean. Voters who tend to err apart are not
// counted as more than they are.
func EffectiveVotes(n int, mean float64) float64 {
	return float64(n) / (1 + float64(n-1)*max(0, mean))
}

// A Bootstrap says how cases are drawn again: from a fixed seed, so that the same trials give the same interval.
type Bootstrap struct {
	Seed    uint64
	Samples int
}

// Between measures a figure on all cases of the strata, and its percentile interval over samples. Each sample draws, with replacement, from each
// stratum as many cases as it has. There is no interval if the figure is undefined in more than a tenth of the samples.
func (b Bootstrap) Between(strata [][]int, figure func(drawn []int) (float64, bool)) (c Coefficient) {
	all := slices.Concat(strata...)
	value, defined := figure(all)
	if !defined {
		return c
	}
	c.Value = &value
	random := rand.New(rand.NewPCG(b.Seed, b.Seed))
	drawn, values := make([]int, 0, len(all)), make([]float64, 0, b.Samples)
	for range b.Samples {
		drawn = drawn[:0]
		for _, stratum := range strata {
			for range stratum {
				drawn = append(drawn, stratum[random.IntN(len(stratum))])
			}
		}
		if v, ok := figure(drawn); ok {
			values = append(values, v)
		}
	}
	if len(all) >= 2 && len(values) > 0 && 10*len(values) >= 9*b.Samples {
		slices.Sort(values)
		c.Low, c.High = new(quantile(values, 0.025)), new(quantile(values, 0.975))
	}
	return c
}

func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
