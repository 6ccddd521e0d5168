package main

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"jurat/internal/court/stats"
	"jurat/jury"
)

// A Figure is a number with its 95 % interval, and on how many cases it rests.
type Figure struct {
	stats.Coefficient
	Cases int `json:"cases"`
}

func figureOf(value, low, high float64, cases int) Figure {
	return Figure{stats.Coefficient{Value: &value, Low: &low, High: &high}, cases}
}

// rankAUC is the chance that a number of above is greater than one of below; equal ones count half. It sorts the lists, of which none may be empty.
func rankAUC(above, below []float64) (auc float64, defined bool) {
	if len(above) == 0 || len(below) == 0 {
		return 0, false
	}
	slices.Sort(above)
	slices.Sort(below)
	less, equal := 0, 0 // of below, compared with the number at hand
	sum := 0.0
	for _, a := range above {
		for less < len(below) && below[less] < a {
			less++
		}
		equal = max(equal, less)
		for equal < len(below) && below[equal] == a {
			equal++
		}
		sum += float64(less) + float64(equal-less)/2
	}
	return sum / float64(len(above)) / float64(len(below)), true
}

// hanleyMcNeil is the variance of an area under a curve of m and n cases (Hanley and McNeil 1982, approximation by exponential distributions).
func hanleyMcNeil(auc float64, m, n int) float64 {
	q1, q2, square := auc/(2-auc), 2*auc*auc/(1+auc), auc*auc
	return (auc*(1-auc) + float64(m-1)*(q1-square) + float64(n-1)*(q2-square)) / float64(m*n)
}

// rankFigure gives an area under a curve its score interval: all areas from which it is at most 1.96 of their own standard errors away.
func rankFigure(auc float64, m, n int) Figure {
	outside := func(area float64) bool { return math.Abs(area-auc) > stats.Z*math.Sqrt(hanleyMcNeil(area, m, n)) }
	return figureOf(auc, borderOf(auc, 0, outside), borderOf(auc, 1, outside), m+n)
}

// borderOf searches the border of an interval between a point inside of it and the end of the scale.
func borderOf(inside, end float64, outside func(float64) bool) float64 {
	if !outside(end) && end == inside {
		return end
	}
	for range 60 {
		middle := (inside + end) / 2
		if outside(middle) {
			end = middle
		} else {
			inside = middle
		}
	}
	return inside
}

// shareFigure is a share of cases with Wilson's interval; without cases, none. Hits is a sum of shares of cases, and so need not be whole.
func shareFigure(hits float64, cases int) Figure {
	if cases == 0 {
		return Figure{}
	}
	low, high := stats.Wilson(hits, cases)
	return figureOf(hits/float64(cases), low, high, cases)
}

func mean(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

func median(list []float64) float64 {
	n := len(list)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func flagged(p jury.Position) bool { return p != jury.SafePass }

// right reports whether a position fits the outcome: a good run passes, a failed one does not. needs_review is a flag, too.
func right(p jury.Position, o Outcome) bool { return flagged(p) == (o == Failed) }

// A row is a case with its trials by one panel.
type row struct {
	name    string
	outcome Outcome
	trials  []*Trial
}

func rows(trials []*Trial) (list []row) {
	at := map[string]int{}
	for _, t := range trials {
		i, known := at[t.Case]
		if !known {
			i = len(list)
			at[t.Case] = i
			list = append(list, row{name: t.Case, outcome: t.Outcome})
		}
		list[i].trials = append(list[i].trials, t)
	}
	return list
}

// between measures how a figure of one list of rows differs from that of another, in which each case has the same place.
func between(draw stats.Bootstrap, a, b []row, figure func([]row) (float64, bool)) stats.Coefficient {
	both, x, y := make([][]int, 2), make([]row, 0, len(a)), make([]row, 0, len(b))
	for i, r := range a {
		which := 0
		if r.outcome == Failed {
			which = 1
		}
		both[which] = append(both[which], i)
	}
	return draw.Between(both, func(picked []int) (float64, bool) {
		x, y = x[:0], y[:0]
		for _, at := range picked {
			x, y = append(x, a[at]), append(y, b[at])
		}
		of, okA := figure(x)
		other, okB := figure(y)
		return of - other, okA && okB
	})
}

// share is the mean over rows of the share of their trials that have a property.
func share(list []row, has func(*Trial) bool) Figure {
	return shareFigure(hits(list, has), len(list))
}

func hits(list []row, has func(*Trial) bool) (sum float64) {
	for _, r := range list {
		n := 0
		for _, t := range r.trials {
			if has(t) {
				n++
			}
		}
		sum += float64(n) / float64(len(r.trials))
	}
	return sum
}

// rate is share without an interval, for the bootstrap.
func rate(list []row, has func(*Trial) bool) (float64, bool) {
	if len(list) == 0 {
		return 0, false
	}
	return hits(list, has) / float64(len(list)), true
}

func of(list []row, o Outcome) []row {
	return slices.DeleteFunc(slices.Clone(list), func(r row) bool { return r.outcome != o })
}

// auc is the area under the curve of a number that is higher for good runs.
func auc(list []row, number func(*Trial) float64) (float64, bool) {
	var good, failed []float64
	for _, r := range list {
		for _, t := range r.trials {
			if r.outcome == Failed {
				failed = append(failed, number(t))
			} else {
				good = append(good, number(t))
			}
		}
	}
	return rankAUC(good, failed)
}

func scoreAUC(list []row) (float64, bool) { return auc(list, score) }

func aucFigure(list []row, number func(*Trial) float64) Figure {
	value, defined := auc(list, number)
	if !defined {
		return Figure{}
	}
	return rankFigure(value, len(of(list, Good)), len(of(list, Failed)))
}

func score(t *Trial) float64 {
	if t.averaged {
		return t.mean
	}
	return float64(t.Score)
}

func rightly(t *Trial) bool { return right(t.Position, t.Outcome) }

func isFlagged(t *Trial) bool { return flagged(t.Position) }

func isAccused(t *Trial) bool { return t.Position == jury.UnsafeFail }

// few is how many good and failed cases there must be before figures are not said to be small.
const few = 30

func small(list []row) bool { return len(of(list, Good)) < few || len(of(list, Failed)) < few }

func group(tag string, trials []*Trial) Group {
	list := rows(trials)
	good, failed := of(list, Good), of(list, Failed)
	g := Group{Tag: tag, Cases: len(list), Good: len(good), Failed: len(failed), Trials: len(trials), Small: small(list),
		AUC: aucFigure(list, score), Accuracy: share(list, rightly), Precision: precision(list),
		FlaggedGood: share(good, isFlagged), FlaggedFailed: share(failed, isFlagged),
		AccusedGood: share(good, isAccused), AccusedFailed: share(failed, isAccused),
		ConfidenceAUC: confidenceAUC(list, finalVotes),
		Findings:      findings(list)}
	g.count(trials)
	return g
}

// precision is the share of failed among flagged runs. A run that was flagged in half of its trials counts half.
func precision(list []row) Figure {
	hit, all := hits(of(list, Failed), isFlagged), hits(list, isFlagged)
	if all == 0 {
		return Figure{}
	}
	cases := 0
	for _, r := range list {
		if slices.ContainsFunc(r.trials, isFlagged) {
			cases++
		}
	}
	return shareFigure(hit/all*float64(cases), cases)
}

func finalVotes(t *Trial) []Voice { return t.Final }

// confidenceAUC says how well stated confidence tells right votes from wrong ones. A case with votes of both kinds counts for both.
func confidenceAUC(list []row, votes func(*Trial) []Voice) Figure {
	var ok, wrong []float64
	with := [2]map[string]bool{{}, {}}
	for _, r := range list {
		for _, t := range r.trials {
			for _, v := range votes(t) {
				switch {
				case v.Position == "":
				case right(v.Position, r.outcome):
					ok, with[0][r.name] = append(ok, v.Confidence), true
				default:
					wrong, with[1][r.name] = append(wrong, v.Confidence), true
				}
			}
		}
	}
	value, defined := rankAUC(ok, wrong)
	if !defined {
		return Figure{}
	}
	f := rankFigure(value, len(with[0]), len(with[1]))
	f.Cases = len(list)
	return f
}

// findings says of each rule how many of the cases in which it was found had failed, the most frequent first.
func findings(list []row) []FindingKind {
	found, cases := map[string]int{}, map[string][]row{}
	for _, r := range list {
		rules := map[string]bool{}
		for _, t := range r.trials {
			for _, f := range t.Findings {
				found[f.Rule]++
				rules[f.Rule] = true
			}
		}
		for rule := range rules {
			cases[rule] = append(cases[rule], r)
		}
	}
	kinds := []FindingKind{}
	for rule, some := range cases {
		failed := len(of(some, Failed))
		k := FindingKind{Rule: rule, Found: found[rule], Failed: shareFigure(float64(failed), len(some))}
		if base := float64(len(of(list, Failed))) / float64(len(list)); base > 0 {
			k.Lift = new(*k.Failed.Value / base)
		}
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b FindingKind) int {
		return cmp.Or(b.Failed.Cases-a.Failed.Cases, b.Found-a.Found, strings.Compare(a.Rule, b.Rule))
	})
	return kinds
}

func (g *Group) count(trials []*Trial) {
	var calls, tokens, cost, waited []float64
	for _, t := range trials {
		if t.Rounds > 0 {
			g.Talk.Discussed++
		}
		if t.Degraded {
			g.Degraded++
		}
		g.Talk.Changes += t.Changes
		if t.Rounds > 0 && t.AfterPhase1 != t.AfterTalk {
			g.Talk.Turned++
			switch before, after := right(t.AfterPhase1, t.Outcome), right(t.AfterTalk, t.Outcome); {
			case after && !before:
				g.Talk.ToRight++
			case before && !after:
				g.Talk.ToWrong++
			}
		}
		calls, tokens, cost = append(calls, float64(t.Calls)), append(tokens, float64(t.InputTokens+t.OutputTokens)), append(cost, float64(t.Cost))
		waited = append(waited, float64(t.Waited))
	}
	g.Costs = Costs{mean(calls), mean(tokens), mean(cost), median(waited)}
}

// alone turns the rows into those of one juror: its first votes instead of the verdicts. Cases on which it has none are left out.
func alone(list []row, juror string) (own []row) {
	for _, r := range list {
		n := row{name: r.name, outcome: r.outcome}
		for _, t := range r.trials {
			for _, v := range t.Alone {
				if v.Juror == juror && v.Position != "" {
					n.trials = append(n.trials, &Trial{Case: t.Case, Outcome: t.Outcome, Position: v.Position, Score: v.Score, Alone: []Voice{v}})
				}
			}
		}
		if len(n.trials) > 0 {
			own = append(own, n)
		}
	}
	return own
}

func (p *PanelReport) jurors(list []row) {
	p.Jurors = []JurorReport{}
	for _, seat := range p.Settings.Seats {
		own := alone(list, seat.JurorID)
		r := JurorReport{Juror: seat.JurorID, Model: seat.Model, AUC: aucFigure(own, score), Accuracy: share(own, rightly),
			ConfidenceAUC: confidenceAUC(own, func(t *Trial) []Voice { return t.Alone })}
		for _, one := range own {
			r.Votes += len(one.trials)
		}
		p.Jurors = append(p.Jurors, r)
	}
}

// single compares the panel with its best juror, asked as often as the repeats allow, at most as the panel; nil: no juror voted first on all cases.
func single(p *PanelReport, list []row, draw stats.Bootstrap) *Single {
	if len(list) < 2 {
		return nil
	}
	var all []float64 // answers of the panel in each trial: first votes, statements and the judge's
	for _, r := range list {
		for _, t := range r.trials {
			all = append(all, float64(t.Answers))
		}
	}
	calls := mean(all)
	answers := int(calls)
	for _, r := range list {
		answers = min(answers, len(r.trials))
	}
	asked := map[string][]row{}
	for _, seat := range p.Settings.Seats {
		if own := means(alone(list, seat.JurorID), answers); len(own) == len(list) && len(own) > 0 {
			asked[seat.JurorID] = own
		}
	}
	if len(asked) == 0 {
		return nil
	}
	s := &Single{Answers: answers, PanelAnswers: calls, AsOften: float64(answers) >= calls, Chosen: map[string]int{},
		PanelAUC: aucFigure(list, score), PanelRight: share(list, rightly)}
	var held []row
	for i := range list {
		juror := best(p.Settings.Seats, asked, i)
		s.Chosen[juror]++
		held = append(held, asked[juror][i])
	}
	s.AUC, s.Accuracy = aucFigure(held, score), share(held, rightly)
	s.Difference = between(draw, list, held, scoreAUC)
	return s
}

// means turns several answers of a juror to a case into one: the mean score and the most frequent position, the gravest of equally frequent ones.
func means(own []row, answers int) (list []row) {
	for _, r := range own {
		if len(r.trials) < answers {
			continue
		}
		var scores []float64
		counts := map[jury.Position]int{}
		for _, t := range r.trials[:answers] {
			scores = append(scores, score(t))
			counts[t.Position]++
		}
		position := jury.UnsafeFail
		for _, p := range []jury.Position{jury.NeedsReview, jury.SafePass} {
			if counts[p] > counts[position] {
				position = p
			}
		}
		list = append(list, row{r.name, r.outcome, []*Trial{{Case: r.name, Outcome: r.outcome, Position: position, mean: mean(scores), averaged: true}}})
	}
	return list
}

// best returns the juror that does best on all cases but one: by AUC, then by accuracy, then by seat.
func best(seats []jury.Seat, asked map[string][]row, but int) (juror string) {
	highest, most := -1.0, -1.0
	for _, seat := range seats {
		own, has := asked[seat.JurorID]
		if !has {
			continue
		}
		others := slices.Delete(slices.Clone(own), but, but+1)
		area, _ := auc(others, score)
		accuracy, _ := rate(others, rightly)
		if area > highest || area == highest && accuracy > most {
			juror, highest, most = seat.JurorID, area, accuracy
		}
	}
	return juror
}
