package pages

import (
	"fmt"
	"time"

	"jurat/api"
	"jurat/internal/words"
	"jurat/reputation"
)

// Continuous is the page of what the server tries without being asked.
type Continuous struct {
	*api.ContinuousTrial
	Thresholds []Threshold
}

// A Threshold is where an agent's reputation is, seen from a threshold.
type Threshold struct {
	api.ThresholdState
	Since time.Time // zero: nothing was crossed yet
}

// NewContinuous makes the page. Its error says that a time cannot be read.
func NewContinuous(status api.ContinuousTrial) (*Continuous, error) {
	c := &Continuous{ContinuousTrial: &status}
	for _, one := range status.Thresholds {
		made := Threshold{ThresholdState: one}
		if one.Since != "" {
			var err error
			if made.Since, err = time.Parse(time.RFC3339, one.Since); err != nil {
				return nil, fmt.Errorf("reading a threshold: %w", err)
			}
		}
		c.Thresholds = append(c.Thresholds, made)
	}
	return c, nil
}

// Raters is whose verdicts the bounds are from; "": the agent has not been judged.
func (t Threshold) Raters() reputation.ClassName { return reputation.ClassName(t.Class) }

// Tried reports whether anything is tried, or only thresholds are watched.
func (c *Continuous) Tried() bool { return c.Drawn > 0 || c.Sampled > 0 }

// More is how many debts are not listed.
func (c *Continuous) More() int { return c.Owed - len(c.Debts) }

func (c *Continuous) view() string { return "continuous" }

func (c *Continuous) headline(lang words.Lang) string { return words.PagesIn(lang).Continuous.Title }

// side says where bounds are, seen from a threshold.
func side(says *words.Pages, of string) string {
	switch of {
	case "below":
		return says.Continuous.Below
	case "across":
		return says.Continuous.Across
	case "above":
		return says.Continuous.Above
	}
	return says.Continuous.Unknown
}

// microDollars writes millionths of a dollar.
func microDollars(n int64) string { return fmt.Sprintf("$%d.%02d", n/1_000_000, n/10_000%100) }
