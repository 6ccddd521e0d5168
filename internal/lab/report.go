package lab

import (
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
