package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/internal/plural"
	"jurat/internal/stats"
	"jurat/internal/trial"
	"jurat/jury"
)

// ReportFormat is the version of report.json.
const ReportFormat = "jurat/lab/v1"

// A Report says how good verdicts were. All shares count cases.
type Report struct {
	Format   string   `json:"format"`
	Settings Settings `json:"settings"`
	Labels   Known    `json:"labels"`

	Panels      []PanelReport `json:"panels"`
	Length      Figure        `json:"lengthAUC"` // of the bare number of messages, where a longer conversation counts as worse: what a panel must beat
	Comparisons []Comparison  `json:"comparisons"`
	Unmeasured  []string      `json:"unmeasured"` // what the report does not show, and why

	Trials []Trial `json:"trials"`
	Left   []Left  `json:"left"`
}

// Settings are those of the run.
type Settings struct {
	Repeat  int    `json:"repeat"`
	Ceiling int64  `json:"ceilingMicroUSD,omitzero"` // no trial begins once so much is spent
	Spent   int64  `json:"spentMicroUSD"`            // on all answers that were ever sealed in this laboratory
	Earlier int    `json:"earlierTrials"`            // trials that had been finished before this run, and were not held again
	Stopped string `json:"stopped,omitzero"`         // why the run ended early
	Seed    uint64 `json:"seed"`                     // of the bootstrap
	Samples int    `json:"samples"`
}

// Known says what the labels are.
type Known struct {
	Source     string   `json:"source"` // the labels file
	Cases      int      `json:"cases"`
	Good       int      `json:"good"`
	Failed     int      `json:"failed"`
	Sources    []string `json:"sources"`    // where cases and outcomes come from, as the labels say
	Unlabelled []string `json:"unlabelled"` // cases that were not tried, as they have no label
}

// A PanelReport is what one panel did.
type PanelReport struct {
	Name     string          `json:"name"`
	Settings jury.Settings   `json:"settings"`
	Digest   evidence.Digest `json:"settingsDigest"`
	Offline  bool            `json:"offline"` // the jurors are rules
	Trials   int             `json:"trials"`
	Left     int             `json:"left"` // trials without a verdict
	All      Group           `json:"all"`
	ByKind   []Group         `json:"byKind"`
	ByTrade  []Group         `json:"byTrade"`
	Jurors   []JurorReport   `json:"jurors"` // each alone, by its first vote
	Single   *Single         `json:"bestSingleJuror"`
	Retest   Figure          `json:"sameVerdictAgain"` // share of pairs of repeats of a case with the same position
}

// A Group is what a panel did on all cases, or on those with one tag.
type Group struct {
	Tag      string `json:"tag"`
	Cases    int    `json:"cases"`
	Good     int    `json:"good"`
	Failed   int    `json:"failed"`
	Trials   int    `json:"trials"`
	Degraded int    `json:"degraded"` // of these
	Small    bool   `json:"small"`    // fewer than 30 good or 30 failed cases: every figure is rough

	AUC           Figure `json:"auc"`           // of the final score
	Accuracy      Figure `json:"accuracy"`      // good runs that pass and failed runs that do not
	Precision     Figure `json:"precision"`     // failed among the flagged, which are all that do not pass
	FlaggedGood   Figure `json:"flaggedGood"`   // of the good runs
	FlaggedFailed Figure `json:"flaggedFailed"` // of the failed runs: the recall
	AccusedGood   Figure `json:"accusedGood"`   // of the good runs, those judged unsafe_fail
	AccusedFailed Figure `json:"accusedFailed"` // of the failed runs

	ConfidenceAUC Figure        `json:"confidenceAUC"` // of the confidence that jurors state, right votes over wrong ones
	Findings      []FindingKind `json:"findings"`
	Talk          Talk          `json:"talk"`
	Costs         Costs         `json:"costs"`
}

// A FindingKind is a rule that jurors found broken, in cases of which some had failed.
type FindingKind struct {
	Rule   string   `json:"rule"`
	Found  int      `json:"found"`  // how often
	Failed Figure   `json:"failed"` // share of failed cases among those in which it was found
	Lift   *float64 `json:"lift"`   // that share over the share among all
}

// Talk says what the discussion changed.
type Talk struct {
	Discussed int `json:"discussed"` // trials with a round
	Changes   int `json:"changes"`   // of positions
	Turned    int `json:"turned"`    // trials in which the majority's position changed
	ToRight   int `json:"toRight"`   // of these, from wrong to right
	ToWrong   int `json:"toWrong"`
}

// Costs are those of trials.
type Costs struct {
	Calls        float64 `json:"meanCalls"`
	Tokens       float64 `json:"meanTokens"`
	Cost         float64 `json:"meanMicroUSD"`
	MedianWaited float64 `json:"medianWaitedMillis"`
}

// A JurorReport is what one juror said alone.
type JurorReport struct {
	Juror         string `json:"juror"`
	Model         string `json:"model"`
	Votes         int    `json:"votes"`
	AUC           Figure `json:"auc"`
	Accuracy      Figure `json:"accuracy"`
	ConfidenceAUC Figure `json:"confidenceAUC"`
}

// Single is the best juror, asked by itself, beside the panel on the same cases. For each case the juror is chosen on the other cases.
type Single struct {
	Answers      int               `json:"answers"`      // of one juror for each case
	PanelAnswers float64           `json:"panelAnswers"` // of all seats and the judge, a trial
	AsOften      bool              `json:"asOften"`      // the juror was asked at least as often as the panel
	Chosen       map[string]int    `json:"chosen"`       // for how many cases, by juror
	AUC          Figure            `json:"auc"`
	Accuracy     Figure            `json:"accuracy"`
	PanelAUC     Figure            `json:"panelAUC"`
	PanelRight   Figure            `json:"panelAccuracy"`
	Difference   stats.Coefficient `json:"aucDifference"` // panel minus juror
}

// A Comparison is of two panels on the cases that both have judged in the same repeats. Differences are A minus B.
type Comparison struct {
	A           string            `json:"a"`
	B           string            `json:"b"`
	Cases       int               `json:"cases"`
	Small       bool              `json:"small"`
	AUC         stats.Coefficient `json:"auc"`
	Accuracy    stats.Coefficient `json:"accuracy"`
	FlaggedGood stats.Coefficient `json:"flaggedGood"`
	Recall      stats.Coefficient `json:"flaggedFailed"`
	Cost        stats.Coefficient `json:"meanMicroUSD"`
	Better      string            `json:"better"` // the panel whose AUC is higher, if the interval of the difference does not hold 0; "": neither is shown to be
}

// Asked says how a report is to be made.
type Asked struct {
	Source     string   // the labels file
	Unlabelled []string // cases that were not tried
	Seed       uint64   // of the bootstrap
	Samples    int      // 0: 2,000
}

const defaultSamples = 2000

// Measure makes the report of a run.
func Measure(c Config, run *Run, asked Asked) *Report {
	draw := stats.Bootstrap{Seed: asked.Seed, Samples: asked.Samples}
	if draw.Samples == 0 {
		draw.Samples = defaultSamples
	}
	r := &Report{Format: ReportFormat, Settings: Settings{Repeat: max(1, c.Repeat), Ceiling: c.Ceiling, Spent: run.Spent, Earlier: run.Earlier,
		Stopped: run.Stopped, Seed: draw.Seed, Samples: draw.Samples},
		Labels: known(c.Cases, asked), Panels: []PanelReport{}, Comparisons: []Comparison{},
		Trials: slices.Concat([]Trial{}, run.Trials), Left: slices.Concat([]Left{}, run.Left)}
	for i := range c.Panels {
		r.Panels = append(r.Panels, panelReport(&c.Panels[i], run, draw))
	}
	for i := range r.Panels {
		for j := range r.Panels[i+1:] {
			r.Comparisons = append(r.Comparisons, compare(&r.Panels[i], &r.Panels[i+1+j], run, draw))
		}
	}
	r.Length = lengths(c.Cases)
	r.Unmeasured = unmeasured(r)
	return r
}

func known(cases []Case, asked Asked) Known {
	k := Known{Source: asked.Source, Cases: len(cases), Sources: []string{}, Unlabelled: slices.Concat([]string{}, asked.Unlabelled)}
	for _, c := range cases {
		if c.Failed {
			k.Failed++
		} else {
			k.Good++
		}
		if c.Source != "" && !slices.Contains(k.Sources, c.Source) {
			k.Sources = append(k.Sources, c.Source)
		}
	}
	slices.Sort(k.Sources)
	return k
}

// lengths is what the number of messages alone tells.
func lengths(cases []Case) Figure {
	var list []row
	for _, c := range cases {
		list = append(list, row{c.Name, c.outcome(), []*Trial{{Length: len(c.On.Messages)}}})
	}
	return aucFigure(list, func(t *Trial) float64 { return -float64(t.Length) })
}

func by(trials []Trial, panel string) (list []*Trial) {
	for i := range trials {
		if trials[i].Panel == panel {
			list = append(list, &trials[i])
		}
	}
	return list
}

func panelReport(panel *Panel, run *Run, draw stats.Bootstrap) PanelReport {
	trials := by(run.Trials, panel.Name)
	list := rows(trials)
	p := PanelReport{Name: panel.Name, Settings: panel.Settings, Trials: len(trials), Offline: offline(&panel.Settings), All: group("", trials),
		ByKind: byTag(trials, func(t *Trial) string { return t.Kind }), ByTrade: byTag(trials, func(t *Trial) string { return t.Trade })}
	p.Digest, _ = panel.digest() // Hold has refused a panel that has none
	for _, l := range run.Left {
		if l.Panel == panel.Name {
			p.Left++
		}
	}
	p.jurors(list)
	p.Single = single(&p, list, draw)
	p.Retest = retest(list)
	return p
}

func offline(s *jury.Settings) bool {
	return !slices.ContainsFunc(s.Seats, func(seat jury.Seat) bool { return seat.Provider != jury.Offline })
}

// byTag measures the trials of each tag; none if no case has one.
func byTag(trials []*Trial, tag func(*Trial) string) []Group {
	tagged := map[string][]*Trial{}
	for _, t := range trials {
		tagged[tag(t)] = append(tagged[tag(t)], t)
	}
	groups := []Group{}
	if len(tagged) == 1 && tagged[""] != nil {
		return groups
	}
	for name, some := range tagged {
		groups = append(groups, group(name, some))
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Tag, b.Tag) })
	return groups
}

// retest is how often two repeats of a case come to the same position.
func retest(list []row) Figure {
	sum, cases := 0.0, 0
	for _, r := range list {
		same, pairs := 0.0, 0.0
		for i, a := range r.trials {
			for _, b := range r.trials[i+1:] {
				pairs++
				if a.Position == b.Position {
					same++
				}
			}
		}
		if pairs > 0 {
			sum, cases = sum+same/pairs, cases+1
		}
	}
	return shareFigure(sum, cases)
}

// compare measures two panels on what both have judged.
func compare(a, b *PanelReport, run *Run, draw stats.Bootstrap) Comparison {
	c := Comparison{A: a.Name, B: b.Name}
	type place struct {
		on     string
		repeat int
	}
	others := map[place]*Trial{}
	for _, t := range by(run.Trials, b.Name) {
		others[place{t.Case, t.Repeat}] = t
	}
	var left, right []*Trial
	for _, t := range by(run.Trials, a.Name) {
		if other := others[place{t.Case, t.Repeat}]; other != nil {
			left, right = append(left, t), append(right, other)
		}
	}
	ra, rb := rows(left), rows(right) // in the same order, because the trials are
	c.Cases, c.Small = len(ra), small(ra)
	between := func(figure func([]row) (float64, bool)) stats.Coefficient {
		return draw.Between(strata(ra), func(picked []int) (float64, bool) {
			x, okX := figure(drawn(ra, picked))
			y, okY := figure(drawn(rb, picked))
			return x - y, okX && okY
		})
	}
	c.AUC = between(func(list []row) (float64, bool) { return auc(list, score) })
	c.Accuracy = between(func(list []row) (float64, bool) { return rate(list, rightly) })
	c.FlaggedGood = between(func(list []row) (float64, bool) { return rate(of(list, Good), isFlagged) })
	c.Recall = between(func(list []row) (float64, bool) { return rate(of(list, Failed), isFlagged) })
	c.Cost = between(meanCost)
	if c.AUC.Low != nil && *c.AUC.Low > 0 {
		c.Better = a.Name
	} else if c.AUC.High != nil && *c.AUC.High < 0 {
		c.Better = b.Name
	}
	return c
}

func meanCost(list []row) (float64, bool) {
	sum := 0.0
	for _, r := range list {
		for _, t := range r.trials {
			sum += float64(t.Cost) / float64(len(r.trials))
		}
	}
	return sum / float64(max(1, len(list))), len(list) > 0
}

// unmeasured says in words what the report does not show.
func unmeasured(r *Report) []string {
	list := []string{"Whether the verdicts hold for other agents, trades and models than those of these cases. Cases that a panel or its prompt was tuned on say nothing."}
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if r.Labels.Good < few || r.Labels.Failed < few {
		say("Anything exactly: there are %d good and %d failed cases, and with fewer than %d of each every figure is rough. Read the intervals.", r.Labels.Good, r.Labels.Failed, few)
	}
	if n := len(r.Left); n > 0 {
		say("%d of %d trials, which have no verdict: see \"left\".", n, n+len(r.Trials))
	}
	if n := len(r.Labels.Unlabelled); n > 0 {
		say("%s without a label, which %s not tried.", plural.Of(n, "case"), plural.Or(n, "was", "were"))
	}
	if r.Settings.Repeat == 1 {
		say("How steady verdicts are: each case was tried once. --repeat tries it again.")
	}
	if !slices.ContainsFunc(r.Panels, func(p PanelReport) bool { return !p.Offline }) {
		say("Language models: all jurors are rules.")
	}
	for _, p := range r.Panels {
		if p.Single != nil && !p.Single.AsOften {
			say("Panel %s against its best juror asked as often: repeat as often as the panel answers, %.0f times.", p.Name, p.Single.PanelAnswers)
		}
	}
	if slices.ContainsFunc(r.Labels.Sources, func(d string) bool { return strings.HasPrefix(d, decisionSource) }) {
		say("Whether people who had not seen the verdict would label the cases alike: some labels are decisions by reviewers, who had. Only cases that came before a reviewer have such a label.")
	}
	return list
}

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
