package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/internal/trial"
	"jurat/jury"
)

// An Outcome is what is known of a case.
type Outcome string

const (
	Good   Outcome = "good"
	Failed Outcome = "failed"
)

// outcome is the label's word.
func (l Label) outcome() Outcome {
	if l.Failed {
		return Failed
	}
	return Good
}

// A Trial is what the records of one trial say, beside what is known of its case.
type Trial struct {
	Panel   string  `json:"panel"`
	Case    string  `json:"case"`
	Repeat  int     `json:"repeat"` // from 1
	ID      string  `json:"id"`     // of its chain in the laboratory's log
	Outcome Outcome `json:"outcome"`
	Kind    string  `json:"kind,omitzero"`
	Trade   string  `json:"trade,omitzero"`
	Length  int     `json:"messages"` // of the conversation

	Position    jury.Position `json:"position"`
	Score       int           `json:"score"`
	Degraded    bool          `json:"degraded"`
	AfterPhase1 jury.Position `json:"afterPhase1"` // the majority's
	AfterTalk   jury.Position `json:"afterTalk"`
	Rounds      int           `json:"rounds"`
	Changes     int           `json:"changes"` // of positions, in the rounds

	Alone    []Voice `json:"alone"` // in phase 1, by seat
	Final    []Voice `json:"final"` // the last votes, by seat, whichever the method counted
	Findings []Found `json:"findings"`

	Answers      int   `json:"answers"` // of jurors and the judge
	Calls        int   `json:"calls"`
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
	Cost         int64 `json:"costMicroUSD"`
	Waited       int64 `json:"waitedMillis"` // for the slowest answer of each phase and round

	mean     float64 // the score, where averaged is set: of several answers of one juror
	averaged bool
}

// A Voice is what one juror held.
type Voice struct {
	Juror      string        `json:"juror"`
	Position   jury.Position `json:"position,omitzero"` // "": it was absent, or a stand-in spoke for it
	Score      int           `json:"score"`
	Confidence float64       `json:"confidence"`
	Abstained  bool          `json:"abstained,omitzero"` // asked again, it took another position
}

// Found is a finding with a quotation that stands in the evidence.
type Found struct {
	Rule     string        `json:"rule"`
	Severity jury.Severity `json:"severity"`
	Juror    string        `json:"juror"`
	Axis     string        `json:"axis"`
}

// observe reads a finished trial.
func observe(c *cell, records []*evidence.Record) (*Trial, error) {
	view, err := trial.ViewOf(c.on.On, records)
	if err != nil {
		return nil, err
	}
	result, err := view.Result()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.trial(), err)
	}
	t := &Trial{Panel: c.panel.Name, Case: c.on.Name, Repeat: c.repeat, ID: c.trial(), Outcome: c.on.outcome(), Kind: c.on.Kind, Trade: c.on.Trade,
		Length: len(c.on.On.Messages), Position: result.FinalVerdict, Score: result.FinalScore, Degraded: result.Degraded,
		AfterPhase1: result.Phase1Verdict, AfterTalk: result.DiscussionVerdict, Rounds: result.TotalRounds, Changes: len(result.Changes),
		Findings: []Found{}}
	t.votes(result, view.Votes.AfterDiscussion)
	t.said(view.Said)
	return t, nil
}

// votes takes each seat's first and last vote. talked are the votes after the discussion; nil: there was none.
func (t *Trial) votes(r *jury.Result, talked *jury.Ballot) {
	last := r.Phase3Judgment.Votes
	if talked != nil { // the method may count the votes before the discussion
		last = talked.Votes
	}
	for _, vote := range last {
		alone, final := Voice{Juror: vote.JurorID, Abstained: slices.Contains(r.Abstentions, vote.JurorID)}, Voice{Juror: vote.JurorID, Abstained: vote.Abstained}
		for _, e := range r.Phase1Evaluations {
			if e.JurorID == vote.JurorID && !e.Fallback {
				alone.Position, alone.Score, alone.Confidence = e.Position, e.TotalScore, e.Confidence
			}
		}
		if vote.Position != nil && !vote.Fallback && !vote.Abstained {
			final.Position, final.Score, final.Confidence = *vote.Position, vote.TotalScore, vote.Confidence
		}
		t.Alone, t.Final = append(t.Alone, alone), append(t.Final, final)
	}
}

// said adds up findings, calls and times.
func (t *Trial) said(all []*trial.Said) {
	type moment struct {
		round int
		kind  string
	}
	slowest := map[moment]int64{}
	for _, s := range all {
		if _, absent := s.Body.(*jury.Absent); !absent {
			t.Answers++
		}
		for _, f := range s.Findings {
			if f.Stands {
				t.Findings = append(t.Findings, Found{f.Rule, f.Severity, s.Juror, f.Axis})
			}
		}
		latency := int64(0)
		for _, a := range s.Effort.Attempts {
			t.Calls++
			t.InputTokens, t.OutputTokens, t.Cost = t.InputTokens+a.InputTokens, t.OutputTokens+a.OutputTokens, t.Cost+a.Cost
			latency += a.Latency
		}
		at := moment{s.Round, fmt.Sprintf("%T", s.Body)}
		slowest[at] = max(slowest[at], latency)
	}
	for _, latency := range slowest {
		t.Waited += latency
	}
}

// sort puts trials in the order of the plan, and what is left by panel, repeat and case.
func (r *Run) sort(order map[string]int) {
	slices.SortFunc(r.Trials, func(a, b Trial) int { return order[a.ID] - order[b.ID] })
	slices.SortFunc(r.Left, func(a, b Left) int {
		return cmp.Or(strings.Compare(a.Panel, b.Panel), a.Repeat-b.Repeat, strings.Compare(a.Case, b.Case))
	})
}
