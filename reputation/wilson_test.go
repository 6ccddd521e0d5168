package reputation

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestWilsonRounds checks the roots by what they must be, and the bounds against floating point, which is never off by more
// than one.
func TestWilsonRounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 20_000 {
		good, bad := r.Int64N(one<<(i%24)), 10*one+r.Int64N(one)
		if i%2 == 0 {
			good, bad = bad, good
		}
		made := terms(good, bad)
		n := big.NewInt(good + bad)
		radicand := new(big.Int).Mul(big.NewInt(one), new(big.Int).Mul(big.NewInt(good), big.NewInt(bad)))
		radicand.Add(radicand, new(big.Int).Mul(n, new(big.Int).Mul(big.NewInt(one), big.NewInt(one))))
		radicand.Mul(radicand, big.NewInt(400_000_000))
		square := func(root *big.Int, more int64) int {
			x := new(big.Int).Add(root, big.NewInt(more))
			return x.Mul(x, x).Mul(x, n).Cmp(radicand)
		}
		if square(made.down, 0) > 0 || square(made.down, 1) <= 0 || square(made.up, 0) < 0 || square(made.up, -1) >= 0 {
			t.Fatalf("%d good, %d bad: %v and %v are not the roots", good, bad, made.down, made.up)
		}
		got := wilson(good, bad)
		g, b := float64(good)/one, float64(bad)/one
		root := 2 * math.Sqrt(g*b/(g+b)+1)
		lower, upper := 10_000*(g+2-root)/(g+b+4), 10_000*(g+2+root)/(g+b+4)
		if math.Abs(float64(got.Lower)-math.Floor(lower)) > 1 || math.Abs(float64(got.Upper)-math.Floor(upper)) > 1 || got.Lower < 0 || got.Upper > 10_000 || got.Lower > got.Upper {
			t.Fatalf("%d good, %d bad: %+v, want %f and %f", good, bad, got, lower, upper)
		}
	}
	for _, tt := range []struct{ good, bad, lower, upper int64 }{{10, 0, 7142, 10_000}, {0, 10, 0, 2857}, {12, 1, 6603, 9866}, {500, 500, 4684, 5315}} {
		if got := wilson(tt.good*one, tt.bad*one); got.Lower != tt.lower || got.Upper != tt.upper {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}
