package reputation

import "math/big"

// one is the weight of an observation. Those of a verdict over several records weigh a half, a quarter and so on, down to 1; so all sums are whole.
const one = 1 << dyadic

const dyadic = 20

// Bounds are the lower and the upper bound of the Wilson score interval with z = 2, in ten-thousandths, rounded down.
type Bounds struct {
	Lower int64 `json:"lower"`
	Upper int64 `json:"upper"`
}

// wilson computes the bounds from sums of weights, exactly. With g, b and n = g + b in whole observations they are
//
//	(g + 2 ∓ 2 √(g b / n + 1)) / (n + 4)
//
// Wilson 1927, with z = 2. Here all three are multiples of 1/one, so both sides are multiplied by it.
func wilson(good, bad int64) Bounds {
	t := terms(good, bad)
	lower := new(big.Int).Sub(t.centre, t.up)
	upper := new(big.Int).Add(t.centre, t.down)
	return Bounds{lower.Div(lower, t.whole).Int64(), upper.Div(upper, t.whole).Int64()}
}

// terms are the whole numbers of which the bounds are quotients.
type wilsonTerms struct {
	centre   *big.Int // 10,000 (G + 2 S)
	down, up *big.Int // 20,000 √(S G B / N + S²), rounded down and up
	whole    *big.Int // N + 4 S
}

func terms(good, bad int64) wilsonTerms {
	g, b, s, n := big.NewInt(good), big.NewInt(bad), big.NewInt(one), big.NewInt(good+bad)
	t := wilsonTerms{centre: new(big.Int), whole: new(big.Int)}
	t.centre.Mul(big.NewInt(10_000), t.centre.Add(g, new(big.Int).Lsh(s, 1)))
	t.whole.Add(n, new(big.Int).Lsh(s, 2))
	radicand := new(big.Int).Mul(new(big.Int).Mul(s, g), b)
	radicand.Add(radicand, new(big.Int).Mul(new(big.Int).Mul(s, s), n))
	radicand.Mul(radicand, big.NewInt(400_000_000))
	t.down = new(big.Int).Sqrt(new(big.Int).Div(radicand, n))
	t.up = new(big.Int).Set(t.down)
	if square := new(big.Int).Mul(t.down, t.down); square.Mul(square, n).Cmp(radicand) < 0 {
		t.up.Add(t.up, big.NewInt(1))
	}
	return t
}
