package lab

import (
	"fmt"
	"slices"
	"strings"

	"jurat/internal/plural"
	"jurat/internal/stats"
	"jurat/jury"
)

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

// known describes the labels.
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
