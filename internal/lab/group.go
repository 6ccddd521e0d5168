package lab

import (
	"cmp"
	"slices"
	"strings"
)

// group measures trials of one panel.
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
	f := shareFigure(hit/all*float64(cases), cases)
	return f
}

// A point is something stated in a case, and whether it was so.
type point struct {
	name   string // of the case
	stated float64
	so     bool
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

// count adds up what the discussion changed and what it cost.
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
