package lab

import (
	"cmp"
	"slices"
	"strings"

	"jurat/jury"
)

// group measures trials of one panel.
func group(tag string, trials []*Trial) Group {
	list := rows(trials)
	good, failed := of(list, Good), of(list, Failed)
	g := Group{Tag: tag, Cases: len(list), Good: len(good), Failed: len(failed), Trials: len(trials), Small: small(list),
		AUC: aucFigure(list, score), Accuracy: share(list, rightly), Precision: precision(list),
		FlaggedGood: share(good, isFlagged), FlaggedFailed: share(failed, isFlagged),
		AccusedGood: share(good, isAccused), AccusedFailed: share(failed, isAccused),
		Verdicts: verdicts(trials), ScoreBins: scoreBins(list), SureBins: sureBins(list), ConfidenceAUC: confidenceAUC(list, finalVotes),
		Findings: findings(list)}
	g.Brier = brier(list)
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
	f := shareFigure(hit/all*float64(cases), cases)
	return f
}

func verdicts(trials []*Trial) (table []Confusion) {
	for _, p := range []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail} {
		c := Confusion{Position: p}
		for _, t := range trials {
			switch {
			case t.Position != p:
			case t.Outcome == Failed:
				c.Failed++
			default:
				c.Good++
			}
		}
		table = append(table, c)
	}
	return table
}

// brier is the mean square of how far score/100 is from 1 for a good run, and from 0 for a failed one.
func brier(list []row) *float64 {
	if len(list) == 0 {
		return nil
	}
	sum := 0.0
	for _, r := range list {
		for _, t := range r.trials {
			off := score(t) / 100
			if r.outcome == Good {
				off = 1 - off
			}
			sum += off * off / float64(len(r.trials))
		}
	}
	return new(sum / float64(len(list)))
}

// A point is something stated in a case, and whether it was so.
type point struct {
	name   string // of the case
	stated float64
	so     bool
}

// bins sorts points into parts of a scale, which begin at these borders. Intervals count the cases of a part, not its points.
func bins(points []point, borders []float64, end float64) (list []Bin) {
	for i, from := range borders {
		to := end
		if i+1 < len(borders) {
			to = borders[i+1]
		}
		b := Bin{From: from, To: to}
		hit, cases := 0, map[string]bool{}
		for _, p := range points {
			if p.stated < from || p.stated >= to && !(i+1 == len(borders) && p.stated <= to) {
				continue
			}
			b.Count++
			b.Stated += p.stated
			cases[p.name] = true
			if p.so {
				hit++
			}
		}
		if b.Count > 0 {
			b.Stated /= float64(b.Count)
			b.Right = shareFigure(float64(hit)/float64(b.Count)*float64(len(cases)), len(cases))
		}
		list = append(list, b)
	}
	return list
}

func scoreBins(list []row) []Bin {
	var points []point
	for _, r := range list {
		for _, t := range r.trials {
			points = append(points, point{r.name, score(t), r.outcome == Good})
		}
	}
	return bins(points, []float64{0, 20, 40, 60, 80}, 100)
}

// votePoints are the confidences of votes, and whether the votes were right.
func votePoints(list []row, votes func(*Trial) []Voice) (points []point) {
	for _, r := range list {
		for _, t := range r.trials {
			for _, v := range votes(t) {
				if v.Position != "" {
					points = append(points, point{r.name, v.Confidence, right(v.Position, r.outcome)})
				}
			}
		}
	}
	return points
}

func finalVotes(t *Trial) []Voice { return t.Final }

func sureBins(list []row) []Bin {
	return bins(votePoints(list, finalVotes), []float64{0, 0.5, 0.6, 0.7, 0.8, 0.9}, 1)
}

// confidenceAUC says how well stated confidence tells right votes from wrong ones. Its interval counts cases: a case with votes of both
// kinds counts for both.
func confidenceAUC(list []row, votes func(*Trial) []Voice) Figure {
	var ok, wrong []float64
	with := [2]map[string]bool{{}, {}}
	for _, p := range votePoints(list, votes) {
		if p.so {
			ok, with[0][p.name] = append(ok, p.stated), true
		} else {
			wrong, with[1][p.name] = append(wrong, p.stated), true
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
	type seen struct {
		found int
		cases map[string]bool
		bad   int
	}
	rules := map[string]*seen{}
	for _, r := range list {
		for _, t := range r.trials {
			for _, f := range t.Findings {
				s := rules[f.Rule]
				if s == nil {
					s = &seen{cases: map[string]bool{}}
					rules[f.Rule] = s
				}
				s.found++
				if !s.cases[r.name] && r.outcome == Failed {
					s.bad++
				}
				s.cases[r.name] = true
			}
		}
	}
	base, _ := rate(list, func(t *Trial) bool { return t.Outcome == Failed })
	kinds := []FindingKind{}
	for rule, s := range rules {
		k := FindingKind{Rule: rule, Found: s.found, Failed: shareFigure(float64(s.bad), len(s.cases))}
		if base > 0 {
			k.Lift = new(*k.Failed.Value / base)
		}
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b FindingKind) int {
		return cmp.Or(b.Failed.Cases-a.Failed.Cases, b.Found-a.Found, strings.Compare(a.Rule, b.Rule))
	})
	return kinds
}

// count adds up what the discussion changed, what was missing and what it cost.
func (g *Group) count(trials []*Trial) {
	var calls, tokens, cost, waited, took []float64
	for _, t := range trials {
		if t.Rounds > 0 {
			g.Talk.Discussed++
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
		g.Missing.add(t)
		calls, tokens, cost = append(calls, float64(t.Calls)), append(tokens, float64(t.InputTokens+t.OutputTokens)), append(cost, float64(t.Cost))
		waited, took = append(waited, float64(t.Waited)), append(took, float64(t.Took))
	}
	g.Costs = Costs{mean(calls), mean(tokens), mean(cost), median(cost), median(waited), median(took)}
}

func (m *Missing) add(t *Trial) {
	if t.Degraded {
		m.Degraded++
	}
	if t.Inconclusive {
		m.Inconclusive++
	}
	m.Absences += t.Absences
	for _, v := range t.Final {
		if v.Position == "" {
			m.Abstentions++
		}
	}
}
