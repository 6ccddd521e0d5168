package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"jurat/jury"
)

// Made says what gave a juror's votes. Reliability belongs to a model and to the template that asks it, not to a name.
type Made struct {
	Model    string `json:"model,omitzero"`    // as its provider reports it; "": unknown
	Template string `json:"template,omitzero"` // the digest of the seat's template; "": unknown
}

// madeBy returns what gave each juror's votes. It returns an error if the votes of one juror name two models or templates.
func madeBy(ballots []Ballot) (map[string]Made, error) {
	all := map[string]Made{}
	for _, b := range ballots {
		for name, made := range b.Made {
			known, before := all[name]
			if before && known != made {
				return nil, fmt.Errorf("item %q: the votes of juror %q are of model %q and template %q here, and of model %q and template %q elsewhere: measure each by itself",
					b.Item, name, made.Model, made.Template, known.Model, known.Template)
			}
			all[name] = made
		}
	}
	return all, nil
}

func (c *Calibration) find(name string) (*Juror, error) {
	i, found := slices.BinarySearchFunc(c.Jurors, name, func(j Juror, name string) int { return strings.Compare(j.Juror, name) })
	if !found {
		return nil, fmt.Errorf("the calibration has no juror %q", name)
	}
	return &c.Jurors[i], nil
}

// WeighBy gives settings the weights of a calibration file, for the method that takes them; "" is no file. It lists the jurors of whom the file
// does not say on which model and template they were measured. The error says what to do.
func WeighBy(file string, s *jury.Settings) (unbound []string, err error) {
	if (s.Method == jury.Calibrated) != (file != "") {
		return nil, errors.New("--calibration goes with --method calibrated, and that with it: 'jurat-lab calibrate' writes a calibration file")
	}
	c, err := Load(file)
	if err != nil || c == nil {
		return nil, err
	}
	if err := c.Weigh(s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c.Unbound(s), nil
}

// Weigh gives settings the weights of their seats, and how many votes these are worth. It returns an error that names a
// juror without a measurement, or one that was measured on another model or template than sits.
func (c *Calibration) Weigh(s *jury.Settings) error {
	weights := map[string]int{}
	for _, seat := range s.Seats {
		j, err := c.find(seat.JurorID)
		if err == nil {
			err = j.fits(seat)
		}
		if err != nil {
			return err
		}
		weights[seat.JurorID] = j.Weight
	}
	s.Weights, s.EffectiveVotes = weights, c.worth(weights)
	return nil
}

// fits returns why a measurement does not hold for a seat, or nil.
func (j *Juror) fits(seat jury.Seat) error {
	const again = "a weight holds for one model and one template: measure this one on labelled items, and run 'jurat-lab calibrate' again"
	switch {
	case j.Model != "" && !jury.IsModel(j.Model, seat.Model):
		return fmt.Errorf("juror %q was measured as model %q, and %q sits: %s", j.Juror, j.Model, seat.Model, again)
	case j.Template != "" && j.Template != seat.Template.String():
		return fmt.Errorf("juror %q was measured with the template %s, and sits with %s: %s", j.Juror, j.Template, seat.Template, again)
	}
	return nil
}

// Unbound lists the jurors of whom the file does not say on which model and template they were measured.
func (c *Calibration) Unbound(s *jury.Settings) (names []string) {
	for _, seat := range s.Seats {
		if j, err := c.find(seat.JurorID); err == nil && (j.Model == "" || j.Template == "") {
			names = append(names, seat.JurorID)
		}
	}
	return names
}

// worth is the number of independent votes that these jurors are worth, to two decimals.
func (c *Calibration) worth(jurors map[string]int) float64 {
	sum, pairs := 0.0, 0
	for _, p := range c.Pairs {
		_, a := jurors[p.A]
		if _, b := jurors[p.B]; a && b {
			sum, pairs = sum+p.Correlation, pairs+1
		}
	}
	votes := EffectiveVotes(len(jurors), sum/float64(max(1, pairs)))
	return min(max(math.Round(votes*100)/100, 1), float64(len(jurors)))
}

// Leader returns the juror whose weight exceeds that of all others together, so that its vote always decides. "" is
// nobody.
func (c *Calibration) Leader() string {
	all := 0
	for _, j := range c.Jurors {
		all += max(j.Weight, -j.Weight)
	}
	for _, j := range c.Jurors {
		if 2*j.Weight > all && len(c.Jurors) > 1 {
			return j.Juror
		}
	}
	return ""
}
