// Package stats says what trials have in common: how far jurors agree, who moves and toward whom, what discussion and
// final judge change, what answers cost.
//
// # Calibration
//
// Calibrate measures, on items whose right answer is known, how reliable each juror is and how much their
// errors go together, and weighs votes by that.
//
// Everything is counted in whole numbers and put in order first, so that neither the order of lines nor of jurors
// changes a result.
package stats

import (
	"slices"
	"sort"

	"jurat/evidence"
	"jurat/internal/trial"
	"jurat/jury"
)

// Stats is what trials have in common.
type Stats struct {
	Trials       int                   `json:"trials"`
	Verdicts     map[jury.Position]int `json:"verdicts"` // the juries'
	Outcomes     map[jury.Position]int `json:"outcomes"` // what counts: a person's position where a person decided
	Decided      int                   `json:"decided"`  // trials on whose verdict a person decided
	Changed      int                   `json:"changed"`  // of these, the outcome is another than the jury's verdict
	Open         int                   `json:"open"`     // trials that wait for a person
	Degraded     int                   `json:"degraded"`
	Inconclusive int                   `json:"inconclusive"`

	AfterPhase1     Agreement `json:"afterPhase1"`
	AfterDiscussion Agreement `json:"afterDiscussion"`

	Discussed        int `json:"discussed"`        // trials with at least one round
	ChangedByTalk    int `json:"changedByTalk"`    // of these, the majority's verdict was another afterwards
	Judged           int `json:"judged"`           // trials that came to a verdict by their method
	ChangedByVerdict int `json:"changedByVerdict"` // of these, the verdict is another than the majority's after the discussion

	Statements  int `json:"statements"`
	Changes     int `json:"changes"`     // of position
	ToMajority  int `json:"toMajority"`  // of these, to the position that most held before
	Unsupported int `json:"unsupported"` // of these, without citing anything new

	Jurors []JurorStats `json:"jurors"` // the judge among them
}

// JurorStats is what one seat did over all trials.
type JurorStats struct {
	JurorID   string `json:"jurorId"`
	Asked     int    `json:"asked"`
	Answered  int    `json:"answered"`
	Absences  int    `json:"absences"`
	Fallbacks int    `json:"fallbacks"` // a stand-in for a blocked answer
	Changes   int    `json:"changes"`   // of position

	Attempts     int   `json:"attempts"` // calls; 0 for rules
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
	Cost         int64 `json:"costMicroUSD"`        // millionths of a US dollar
	Latency      int64 `json:"medianLatencyMillis"` // of an answer, all its attempts together

	latencies []int64
}

// A Tally takes in trials one by one.
type Tally struct {
	stats  Stats
	phase1 [][]jury.Position
	talked [][]jury.Position
	jurors map[string]*JurorStats
}

// New returns a tally of no trials.
func New() *Tally {
	return &Tally{stats: Stats{Verdicts: map[jury.Position]int{}, Outcomes: map[jury.Position]int{}}, jurors: map[string]*JurorStats{}}
}

// Add takes in the chain of one finished trial, in log order: its acts, and what people decided on it.
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
	t.talked = append(t.talked, finally(result))
	return nil
}

// decided counts what counts of a trial, which is over, and so has an outcome.
func (t *Tally) decided(o *jury.TrialOutcome) {
	s := &t.stats
	s.Outcomes[o.Position]++
	if o.Open {
		s.Open++
	}
	if o.Decision != nil {
		s.Decided++
		if o.Position != o.Verdict.Position {
			s.Changed++
		}
	}
}

// outcome counts what a jury came to.
func (t *Tally) outcome(r *jury.Result) {
	s := &t.stats
	s.Trials++
	s.Verdicts[r.FinalVerdict]++
	if r.Degraded {
		s.Degraded++
	}
	if r.Inconclusive {
		s.Inconclusive++
	} else {
		s.Judged++
		if r.FinalVerdict != r.DiscussionVerdict {
			s.ChangedByVerdict++
		}
	}
	if r.TotalRounds > 0 {
		s.Discussed++
		if r.Phase1Verdict != r.DiscussionVerdict {
			s.ChangedByTalk++
		}
	}
	for _, round := range r.DiscussionRounds {
		s.Statements += len(round.Statements)
	}
	for _, c := range r.Changes {
		s.Changes++
		t.juror(c.JurorID).Changes++
		if c.ToMajority {
			s.ToMajority++
		}
		if c.Unsupported {
			s.Unsupported++
		}
	}
}

// held is what each seat held, by seat; a stand-in is nobody's opinion.
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

// finally is what each seat held when the discussion was over.
func finally(r *jury.Result) []jury.Position {
	list := make([]jury.Position, len(r.Phase3Judgment.Votes))
	for i, vote := range r.Phase3Judgment.Votes {
		if vote.Position != nil && !vote.Fallback {
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

// said counts what one seat said, or that it was absent.
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
	if fallback {
		j.Fallbacks++
	} else {
		j.Answered++
	}
}

func (j *JurorStats) add(e jury.Effort) {
	if len(e.Attempts) == 0 {
		return
	}
	latency := int64(0)
	for _, a := range e.Attempts {
		j.Attempts++
		j.InputTokens += a.InputTokens
		j.OutputTokens += a.OutputTokens
		j.Cost += a.Cost
		latency += a.Latency
	}
	j.latencies = append(j.latencies, latency)
}

// Stats sums up.
func (t *Tally) Stats() *Stats {
	s := t.stats
	s.AfterPhase1, s.AfterDiscussion = agreement(t.phase1), agreement(t.talked)
	s.Jurors = []JurorStats{}
	for _, j := range t.jurors {
		one := *j
		if n := len(one.latencies); n > 0 {
			sorted := slices.Sorted(slices.Values(one.latencies))
			one.Latency = (sorted[(n-1)/2] + sorted[n/2]) / 2
		}
		one.latencies = nil
		s.Jurors = append(s.Jurors, one)
	}
	sort.Slice(s.Jurors, func(i, j int) bool { return s.Jurors[i].JurorID < s.Jurors[j].JurorID })
	return &s
}
