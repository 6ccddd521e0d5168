package trust

import (
	"slices"

	"jurat/evidence"
)

// Anchor returns the times that the tokens of a stamped checkpoint prove: what the checkpoint covers existed by then. Each later generation of
// tokens shows that the earlier ones existed by its time. doubts says which tokens prove nothing; err is that of a forgery.
func (c *Checker) Anchor(a *evidence.Anchor) (proved []Stamped, doubts []error, err error) {
	imprints, err := a.Imprints()
	if err != nil {
		return nil, nil, err
	}
	shown := Proof{}
	for generation, tokens := range slices.Backward(a.Timestamps) {
		from := len(proved)
		for _, token := range tokens {
			t, err := c.Token(token, imprints[generation], shown)
			switch {
			case err == nil:
				proved = append(proved, t)
			case Uncheckable(err):
				doubts = append(doubts, err)
			default:
				return nil, nil, err
			}
		}
		for _, t := range proved[from:] {
			shown.Add(t)
		}
	}
	return proved, doubts, nil
}
