package lab

import (
	"slices"

	"jurat/internal/stats"
	"jurat/jury"
)

// first returns a juror's own first vote in a trial; nil if it had none.
func (t *Trial) first(juror string) *Voice {
	i := slices.IndexFunc(t.Alone, func(v Voice) bool { return v.Juror == juror })
	if i < 0 || t.Alone[i].Position == "" {
		return nil
	}
	return &t.Alone[i]
}

// alone turns the rows into those of one juror: its first votes instead of the verdicts. Cases on which it has none are left out.
func alone(list []row, juror string) (own []row) {
	for _, r := range list {
		n := row{name: r.name, outcome: r.outcome}
		for _, t := range r.trials {
			if v := t.first(juror); v != nil {
				n.trials = append(n.trials, &Trial{Case: t.Case, Outcome: t.Outcome, Position: v.Position, Score: v.Score, Alone: []Voice{*v}})
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

// single compares the panel with its best juror, asked as often as the repeats allow and at most as often as the panel. It returns nil if no juror
// has first votes on all cases.
func single(p *PanelReport, list []row, draw stats.Bootstrap) *Single {
	calls := float64(len(p.Settings.Seats))
	if n := len(list); n > 0 {
		calls = panelAnswers(list)
	}
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
	if len(asked) == 0 || len(list) < 2 {
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
	s.Difference = draw.Between(strata(list), func(picked []int) (float64, bool) {
		a, okA := auc(drawn(list, picked), score)
		b, okB := auc(drawn(held, picked), score)
		return a - b, okA && okB
	})
	return s
}

// panelAnswers is how many answers a trial of the panel has on average: first votes, statements and the judge's.
func panelAnswers(list []row) float64 {
	n, trials := 0.0, 0.0
	for _, r := range list {
		for _, t := range r.trials {
			n += float64(t.Answers)
			trials++
		}
	}
	return n / trials
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
