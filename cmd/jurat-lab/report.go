package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/court/stats"
	"jurat/internal/kit/plural"
	"jurat/jury"
)

const reportFormat = "jurat/lab/v1"

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

type Settings struct {
	Repeat  int    `json:"repeat"`
	Ceiling int64  `json:"ceilingMicroUSD,omitzero"` // no trial begins once so much is spent
	Spent   int64  `json:"spentMicroUSD"`            // on all answers that were ever sealed in this laboratory
	Earlier int    `json:"earlierTrials"`            // trials that had been finished before this run, and were not held again
	Stopped string `json:"stopped,omitzero"`         // why the run ended early
	Seed    uint64 `json:"seed"`                     // of the bootstrap
	Samples int    `json:"samples"`
}

type Left struct {
	Panel  string `json:"panel"`
	Case   string `json:"case"`
	Repeat int    `json:"repeat"`
	Why    string `json:"why"`
}

type Known struct {
	Source     string   `json:"source"` // the labels file
	Cases      int      `json:"cases"`
	Good       int      `json:"good"`
	Failed     int      `json:"failed"`
	Sources    []string `json:"sources"`    // where cases and outcomes come from, as the labels say
	Unlabelled []string `json:"unlabelled"` // cases that were not tried, as they have no label
}

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

type Talk struct {
	Discussed int `json:"discussed"` // trials with a round
	Changes   int `json:"changes"`   // of positions
	Turned    int `json:"turned"`    // trials in which the majority's position changed
	ToRight   int `json:"toRight"`   // of these, from wrong to right
	ToWrong   int `json:"toWrong"`
}

type Costs struct {
	Calls        float64 `json:"meanCalls"`
	Tokens       float64 `json:"meanTokens"`
	Cost         float64 `json:"meanMicroUSD"`
	MedianWaited float64 `json:"medianWaitedMillis"`
}

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

func (o *order) report() *Report {
	return &Report{Format: reportFormat, Settings: Settings{Repeat: o.repeat, Ceiling: o.ceiling, Seed: o.draw.Seed, Samples: o.draw.Samples},
		Labels: known(o), Panels: []PanelReport{}, Comparisons: []Comparison{}, Trials: []Trial{}, Left: []Left{}}
}

func (r *Report) add(c *cell) {
	if c.found == nil {
		r.Left = append(r.Left, Left{Panel: c.panel.name, Case: c.on.Name, Repeat: c.repeat, Why: c.why})
		return
	}
	r.Trials = append(r.Trials, *c.found)
	if c.earlier {
		r.Settings.Earlier++
	}
}

func (r *Report) measure(o *order) {
	for i := range o.panels {
		r.Panels = append(r.Panels, r.panel(&o.panels[i], o.draw))
	}
	for i := range r.Panels {
		for j := range r.Panels[i+1:] {
			r.Comparisons = append(r.Comparisons, r.compare(&r.Panels[i], &r.Panels[i+1+j], o.draw))
		}
	}
	var list []row
	for _, c := range o.cases {
		list = append(list, row{c.Name, c.Outcome, []*Trial{{Length: len(c.On.Messages)}}})
	}
	r.Length = aucFigure(list, func(t *Trial) float64 { return -float64(t.Length) })
	r.Unmeasured = unmeasured(r)
}

func known(o *order) Known {
	k := Known{Source: o.source, Cases: len(o.cases), Sources: []string{}, Unlabelled: slices.Concat([]string{}, o.unlabelled)}
	for _, c := range o.cases {
		if c.Outcome == Failed {
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

func by(trials []Trial, panel string) (list []*Trial) {
	for i := range trials {
		if trials[i].Panel == panel {
			list = append(list, &trials[i])
		}
	}
	return list
}

func (r *Report) panel(of *panel, draw stats.Bootstrap) PanelReport {
	trials := by(r.Trials, of.name)
	list := rows(trials)
	p := PanelReport{Name: of.name, Settings: of.settings, Digest: of.digest, Trials: len(trials), Offline: offline(&of.settings), All: group("", trials),
		ByKind: byTag(trials, func(t *Trial) string { return t.Kind }), ByTrade: byTag(trials, func(t *Trial) string { return t.Trade })}
	for _, l := range r.Left {
		if l.Panel == of.name {
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

func (r *Report) compare(a, b *PanelReport, draw stats.Bootstrap) Comparison {
	c := Comparison{A: a.Name, B: b.Name}
	var left, right []*Trial
	type place struct {
		on     string
		repeat int
	}
	others := map[place]*Trial{}
	for _, t := range by(r.Trials, b.Name) {
		others[place{t.Case, t.Repeat}] = t
	}
	for _, t := range by(r.Trials, a.Name) {
		if other := others[place{t.Case, t.Repeat}]; other != nil {
			left, right = append(left, t), append(right, other)
		}
	}
	ra, rb := rows(left), rows(right) // in the same order, because the trials are
	c.Cases, c.Small = len(ra), small(ra)
	differ := func(figure func([]row) (float64, bool)) stats.Coefficient { return between(draw, ra, rb, figure) }
	c.AUC = differ(scoreAUC)
	c.Accuracy = differ(func(list []row) (float64, bool) { return rate(list, rightly) })
	c.FlaggedGood = differ(func(list []row) (float64, bool) { return rate(of(list, Good), isFlagged) })
	c.Recall = differ(func(list []row) (float64, bool) { return rate(of(list, Failed), isFlagged) })
	c.Cost = differ(meanCost)
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

func unmeasured(r *Report) []string {
	list := []string{"Whether verdicts hold for other agents, trades and models than in these cases. Cases that a panel or its prompt was tuned on say nothing."}
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if r.Labels.Good < few || r.Labels.Failed < few {
		say("Anything exactly: of %d good and %d failed cases, figures are rough below %d of each. Read the intervals.", r.Labels.Good, r.Labels.Failed, few)
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
		say("Whether people who had not seen the verdict would label alike: some labels are decisions of reviewers, who had. Only cases a reviewer saw have one.")
	}
	return list
}

// A Part is a piece of a report for people: a text, a table whose first row is its head, or both.
type Part struct {
	Heading string
	Text    []string
	Caption string // of the table
	Table   [][]string
	Detail  bool // of one panel: the page has it, and a terminal has not
}

//go:embed report.html
var source string

// render returns the report as a page, which needs neither script nor network.
func render(r *Report) ([]byte, error) {
	var out bytes.Buffer
	page, err := template.New("report").Parse(source)
	if err == nil {
		err = page.Execute(&out, r.parts())
	}
	if err != nil {
		return nil, fmt.Errorf("writing page: %w", err)
	}
	return out.Bytes(), nil
}

func (r *Report) parts() []Part {
	head := Part{Text: []string{fmt.Sprintf("%s, %d good and %d failed (%s); %s, %d of them held before.", plural.Of(r.Labels.Cases, "case"), r.Labels.Good,
		r.Labels.Failed, r.Labels.Source, plural.Of(len(r.Trials), "trial"), r.Settings.Earlier)}, Table: [][]string{groupHead("panel")},
		Caption: "Each panel on all cases. Intervals are 95 %, and count cases. Bare length is what the number of messages alone tells"}
	if r.Settings.Stopped != "" {
		head.Text = append(head.Text, fmt.Sprintf("The run is not whole: %s; left: %s.", r.Settings.Stopped, plural.Of(len(r.Left), "trial")))
	}
	for i := range r.Panels {
		head.Table = append(head.Table, groupRow(r.Panels[i].Name, &r.Panels[i].All))
	}
	head.Table = append(head.Table, []string{"(bare length)", "", "", figure(r.Length)})
	parts := []Part{head}
	if len(r.Comparisons) > 0 {
		parts = append(parts, comparisons(r))
	}
	for i := range r.Panels {
		parts = append(parts, r.Panels[i].parts()...)
	}
	return append(parts, Part{Heading: "Not measured", Text: r.Unmeasured},
		Part{Text: []string{"Spent in this laboratory: " + dollars(float64(r.Settings.Spent)) + ". report.json has the figures of each trial."}, Detail: true})
}

func comparisons(r *Report) Part {
	p := Part{Heading: "Which is better?", Caption: fmt.Sprintf("Differences on cases both judged: bootstrap over cases, %d samples, seed %d", r.Settings.Samples,
		r.Settings.Seed), Table: [][]string{{"difference", "cases", "AUC", "accuracy", "good flagged", "failed flagged", "USD/trial", "shown to be better"}}}
	for _, c := range r.Comparisons {
		p.Table = append(p.Table, []string{c.A + " minus " + c.B, fmt.Sprint(c.Cases), difference(c.AUC), difference(c.Accuracy), difference(c.FlaggedGood),
			difference(c.Recall), c.Cost.Text("%+.4f", 1e-6), cmp.Or(c.Better, "neither")})
	}
	return p
}

func groupHead(what string) []string {
	return []string{what, "good", "failed", "AUC", "accuracy", "precision", "good flagged", "failed flagged", "good accused", "failed accused", "confidence AUC", "USD/trial"}
}

func groupRow(name string, g *Group) []string {
	if g.Small {
		name += " (small)"
	}
	return []string{name, fmt.Sprint(g.Good), fmt.Sprint(g.Failed), figure(g.AUC), figure(g.Accuracy), figure(g.Precision), figure(g.FlaggedGood),
		figure(g.FlaggedFailed), figure(g.AccusedGood), figure(g.AccusedFailed), figure(g.ConfidenceAUC), dollars(g.Costs.Cost)}
}

func (p *PanelReport) parts() []Part {
	first := Part{Heading: "Panel " + p.Name}
	seats := ""
	for _, s := range p.Settings.Seats {
		seats += fmt.Sprintf("%s (%s %s), ", s.JurorID, s.Provider, s.Model)
	}
	g, t, c := &p.All, p.All.Talk, p.All.Costs
	say := func(format string, args ...any) { first.Text = append(first.Text, fmt.Sprintf(format, args...)) }
	say("%smethod %s; %d trials, %d left. Same verdict when tried again: %s.", seats, p.Settings.Method, p.Trials, p.Left, figure(p.Retest))
	say("%d of the trials are degraded.", g.Degraded)
	say("%d trials were discussed: %d positions changed, %d majorities turned, %d to right, %d to wrong.", t.Discussed, t.Changes, t.Turned, t.ToRight, t.ToWrong)
	say("On average a trial has %.1f calls and %.0f tokens and costs %s; median wait for models: %.1f s.", c.Calls, c.Tokens, dollars(c.Cost), c.MedianWaited/1000)
	if s := p.Single; s != nil {
		say("Best juror, chosen on other cases, asked %d times a case: AUC %s, accuracy %s. Panel, %.1f answers a trial: AUC %s, accuracy %s. AUC difference: %s.",
			s.Answers, figure(s.AUC), figure(s.Accuracy), s.PanelAnswers, figure(s.PanelAUC), figure(s.PanelRight), difference(s.Difference))
	}
	parts := []Part{first, tagsPart("kind", p.ByKind), tagsPart("trade", p.ByTrade), p.jurorsPart(), findingsPart(g.Findings)}
	for i := range parts {
		parts[i].Detail = true
	}
	return parts
}

func tagsPart(what string, groups []Group) Part {
	p := Part{Caption: "By " + what, Table: [][]string{groupHead(what)}}
	for i := range groups {
		p.Table = append(p.Table, groupRow(groups[i].Tag, &groups[i]))
	}
	return p
}

func (p *PanelReport) jurorsPart() Part {
	part := Part{Caption: "Each juror by its first vote, before any talk", Table: [][]string{{"juror", "model", "votes", "AUC", "accuracy", "confidence AUC"}}}
	for _, j := range p.Jurors {
		part.Table = append(part.Table, []string{j.Juror, j.Model, fmt.Sprint(j.Votes), figure(j.AUC), figure(j.Accuracy), figure(j.ConfidenceAUC)})
	}
	return part
}

func findingsPart(list []FindingKind) Part {
	p := Part{Caption: "What was found, in how many cases, and how many of these had failed. A lift of 1 says nothing", Table: [][]string{{"rule", "found", "cases", "share of failed", "lift"}}}
	for _, f := range list {
		p.Table = append(p.Table, []string{f.Rule, fmt.Sprint(f.Found), fmt.Sprint(f.Failed.Cases), figure(f.Failed), number(f.Lift)})
	}
	return p
}

func figure(f Figure) string                { return f.Text("%.2f", 1) }
func difference(d stats.Coefficient) string { return d.Text("%+.2f", 1) }
func number(v *float64) string              { return stats.Coefficient{Value: v}.Text("%.2f", 1) }
func dollars(micro float64) string          { return fmt.Sprintf("$%.4f", micro/1e6) }

// A vote is a line of a votes file, as 'jurat-lab calibrate' reads it.
type vote struct {
	Item       string         `json:"item"`
	Juror      string         `json:"juror"`
	Vote       *jury.Position `json:"vote"` // null: none
	Label      jury.Position  `json:"label"`
	Confidence *float64       `json:"confidence,omitzero"`
	stats.Made
}

// votesOf writes the first votes of a panel's jurors, of the first repeat alone: repeats of a case are not independent items. The right
// answer is safe_pass for a good case and unsafe_fail for a failed one, so needs_review is never right. A juror that took another position when
// it was asked again abstains: that is what weights are applied to.
func votesOf(trials []Trial, of *panel) ([]byte, error) {
	var out bytes.Buffer
	made := map[string]stats.Made{}
	for _, seat := range of.settings.Seats {
		made[seat.JurorID] = stats.Made{Model: seat.Model, Template: seat.Template.String()}
	}
	for _, t := range by(trials, of.name) {
		if t.Repeat != 1 {
			continue
		}
		label := jury.SafePass
		if t.Outcome == Failed {
			label = jury.UnsafeFail
		}
		for _, v := range t.Alone {
			line := vote{Item: t.Case, Juror: v.Juror, Label: label, Made: made[v.Juror]}
			if v.Position != "" && !v.Abstained {
				line.Vote, line.Confidence = &v.Position, &v.Confidence
			}
			doc, err := json.Marshal(line)
			if err != nil {
				return nil, err
			}
			out.Write(append(doc, '\n'))
		}
	}
	return out.Bytes(), nil
}
