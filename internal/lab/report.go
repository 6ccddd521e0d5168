package lab

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/stats"
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
	Ceiling int64  `json:"ceilingMicroUSD,omitzero"` // on all calls ever made in this laboratory
	Spent   int64  `json:"spentMicroUSD"`            // on these
	Reuse   bool   `json:"reuse"`
	Earlier int    `json:"earlierTrials"`    // trials that had been finished before this run, and were not held again
	Stopped string `json:"stopped,omitzero"` // why the run ended early
	Seed    uint64 `json:"seed"`             // of the bootstrap
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
	Name       string          `json:"name"`
	Settings   jury.Settings   `json:"settings"`
	Digest     evidence.Digest `json:"settingsDigest"`
	Offline    bool            `json:"offline"` // the jurors are rules
	Trials     int             `json:"trials"`
	Left       int             `json:"left"`          // trials without a verdict
	Reused     int             `json:"reusedAnswers"` // answers that had been given to another panel
	All        Group           `json:"all"`
	ByKind     []Group         `json:"byKind"`
	ByTrade    []Group         `json:"byTrade"`
	MeanTrades MeanAUC         `json:"meanAUCOverTrades"`
	Jurors     []JurorReport   `json:"jurors"` // each alone, by its first vote
	Pairs      []Pair          `json:"pairs"`
	Effective  *float64        `json:"effectiveVotes"` // null: no pair of jurors can be compared
	Agreement  *stats.Stats    `json:"agreement"`      // what 'jurat-lab stats' says of the same trials; null: there is none
	Single     *Single         `json:"bestSingleJuror"`
	Retest     Figure          `json:"sameVerdictAgain"` // share of pairs of repeats of a case with the same position
}

// A Group is what a panel did on all cases, or on those with one tag.
type Group struct {
	Tag    string `json:"tag"`
	Cases  int    `json:"cases"`
	Good   int    `json:"good"`
	Failed int    `json:"failed"`
	Trials int    `json:"trials"`
	Small  bool   `json:"small"` // fewer than 30 good or 30 failed cases: every figure is rough

	AUC           Figure `json:"auc"`           // of the final score
	Accuracy      Figure `json:"accuracy"`      // good runs that pass and failed runs that do not
	Precision     Figure `json:"precision"`     // failed among the flagged, which are all that do not pass
	FlaggedGood   Figure `json:"flaggedGood"`   // of the good runs
	FlaggedFailed Figure `json:"flaggedFailed"` // of the failed runs: the recall
	AccusedGood   Figure `json:"accusedGood"`   // of the good runs, those judged unsafe_fail
	AccusedFailed Figure `json:"accusedFailed"` // of the failed runs

	Verdicts      []Confusion   `json:"verdicts"`
	Brier         *float64      `json:"brier"` // of score/100 as a forecast that the run is good; 0 is best, 0.25 says nothing
	ScoreBins     []Bin         `json:"scoreCalibration"`
	SureBins      []Bin         `json:"confidenceCalibration"`
	ConfidenceAUC Figure        `json:"confidenceAUC"` // of the confidence that jurors state, right votes over wrong ones
	Findings      []FindingKind `json:"findings"`
	Talk          Talk          `json:"talk"`
	Missing       Missing       `json:"missing"`
	Costs         Costs         `json:"costs"`
}

// Confusion counts trials by verdict and outcome.
type Confusion struct {
	Position jury.Position `json:"position"`
	Good     int           `json:"good"`
	Failed   int           `json:"failed"`
}

// A Bin is a part of a scale: what was stated there, and how often it was so.
type Bin struct {
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Count  int     `json:"count"`  // of trials or votes
	Stated float64 `json:"stated"` // their mean
	Right  Figure  `json:"right"`
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

// Missing says what takes away from the trials.
type Missing struct {
	Degraded     int `json:"degraded"`
	Inconclusive int `json:"inconclusive"`
	Absences     int `json:"absences"`
	Abstentions  int `json:"abstentions"` // votes that did not count in the end, though their juror was asked
}

// Costs are those of trials, without answers that were reused.
type Costs struct {
	Calls        float64 `json:"meanCalls"`
	Tokens       float64 `json:"meanTokens"`
	Cost         float64 `json:"meanMicroUSD"`
	MedianCost   float64 `json:"medianMicroUSD"`
	MedianWaited float64 `json:"medianWaitedMillis"`
	MedianTook   float64 `json:"medianTookMillis"`
}

// MeanAUC is a mean over trades, in which each trade counts the same.
type MeanAUC struct {
	Figure
	Trades int `json:"trades"` // with good and failed cases
}

// A JurorReport is what one juror said alone. Answers that were reused are left out.
type JurorReport struct {
	Juror         string `json:"juror"`
	Model         string `json:"model"`
	Votes         int    `json:"votes"`
	AUC           Figure `json:"auc"`
	Accuracy      Figure `json:"accuracy"`
	ConfidenceAUC Figure `json:"confidenceAUC"`
}

// A Pair is the correlation of two jurors' errors in phase 1.
type Pair struct {
	A           string   `json:"a"`
	B           string   `json:"b"`
	Votes       int      `json:"votes"`
	Correlation *float64 `json:"correlation"` // null: one of them was always or never wrong
}

// Single is the best juror, asked by itself, beside the panel on the same cases. For each case the juror is chosen on the other cases.
type Single struct {
	Answers      int            `json:"answers"`      // of one juror for each case
	PanelAnswers float64        `json:"panelAnswers"` // of all seats and the judge, a trial
	AsOften      bool           `json:"asOften"`      // the juror was asked at least as often as the panel
	Chosen       map[string]int `json:"chosen"`       // for how many cases, by juror
	AUC          Figure         `json:"auc"`
	Accuracy     Figure         `json:"accuracy"`
	PanelAUC     Figure         `json:"panelAUC"`
	PanelRight   Figure         `json:"panelAccuracy"`
	Difference   Difference     `json:"aucDifference"` // panel minus juror
}

// A Comparison is of two panels on the cases that both have judged in the same repeats. Differences are A minus B.
type Comparison struct {
	A           string     `json:"a"`
	B           string     `json:"b"`
	Cases       int        `json:"cases"`
	Small       bool       `json:"small"`
	Shared      int        `json:"sharedAnswers"` // first answers that one of them took from the other
	AUC         Difference `json:"auc"`
	Accuracy    Difference `json:"accuracy"`
	FlaggedGood Difference `json:"flaggedGood"`
	Recall      Difference `json:"flaggedFailed"`
	Cost        Difference `json:"meanMicroUSD"`
	Better      string     `json:"better"` // the panel whose AUC is higher, if the interval of the difference does not hold 0; "": neither is shown to be
}

// ParseReport reads a report. It refuses unknown members and other versions.
func ParseReport(doc []byte) (*Report, error) {
	var version struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(doc, &version); err != nil {
		return nil, fmt.Errorf("reading report: %w", evidence.Steady(err))
	}
	if version.Format != ReportFormat {
		return nil, fmt.Errorf("reading report: format is %q, want %q", version.Format, ReportFormat)
	}
	r := new(Report)
	if err := json.Unmarshal(doc, r, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading report: %w", evidence.Steady(err))
	}
	return r, nil
}

// Tags are the groups by kind and those by trade.
func (p PanelReport) Tags() [2][]Group { return [2][]Group{p.ByKind, p.ByTrade} }

// SpentFloat is what was spent, as pages show amounts.
func (r *Report) SpentFloat() float64 { return float64(r.Settings.Spent) }

// CeilingFloat is the ceiling.
func (r *Report) CeilingFloat() float64 { return float64(r.Settings.Ceiling) }
