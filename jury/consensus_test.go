package jury

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConsensus(t *testing.T) {
	const s, r, u, none = SafePass, NeedsReview, UnsafeFail, Position("")
	tests := []struct {
		positions []Position
		threshold float64
		after     bool
		status    ConsensusStatus
		level     float64
		reached   bool
		majority  Position
	}{
		{[]Position{s, s, s}, 2, false, Unanimous, 1, false, s},
		{[]Position{s, s, s}, 2, true, Unanimous, 1, true, s},
		{[]Position{s, s, s}, 1, false, Unanimous, 1, true, s},
		{[]Position{s, u, s}, 1, false, Majority, 0.67, false, s},
		{[]Position{s, u, u}, 0.67, false, Majority, 0.67, true, u},
		{[]Position{s, u, u}, 0.67, true, Majority, 0.67, true, u},
		{[]Position{s, u, u}, 0.68, true, Majority, 0.67, false, u},
		{[]Position{s, u, r}, 0, true, Split, 0.33, false, none},
		{[]Position{s, u}, 0.5, true, Split, 0.5, false, none},
		{[]Position{s, none}, 0.5, true, Split, 0.5, false, none},
		{[]Position{none, none}, 0, true, Split, 0, false, none},
		{[]Position{s, s, none}, 0.67, false, Majority, 0.67, true, s},
		{[]Position{s, s, none}, 2, true, Majority, 0.67, false, s},
		{[]Position{s, s, u, u}, 0.5, true, Split, 0.5, false, none},
		{[]Position{s, s, u, r}, 0, true, Split, 0.5, false, none},
		{[]Position{r, r, r, r, r, s, s, u}, 0.63, false, Majority, 0.63, true, r}, // 0.625, half up
		{nil, 0, true, Split, 0, false, none},
	}
	for _, tt := range tests {
		want := ConsensusResult{ConsensusStatus: tt.status, AgreementLevel: tt.level, ConsensusReached: tt.reached}
		if tt.majority != "" {
			want.MajorityPosition = &tt.majority
		}
		if diff := cmp.Diff(want, Consensus(tt.positions, tt.threshold, tt.after)); diff != "" {
			t.Errorf("%v threshold %v after %v (-want +got):\n%s", tt.positions, tt.threshold, tt.after, diff)
		}
	}
}

// TestConsensusOfAll compares every jury of 2 to 7 with the result of simple rules.
func TestConsensusOfAll(t *testing.T) {
	cast := []Position{SafePass, NeedsReview, UnsafeFail, ""}
	for n := 2; n <= 7; n++ {
		for code := range int(math.Pow(4, float64(n))) {
			positions := make([]Position, n)
			for i := range positions {
				positions[i] = cast[code>>(2*i)&3]
			}
			for _, threshold := range []float64{0.5, 0.67, 1, 2} {
				for _, after := range []bool{false, true} {
					want := byHand(positions, threshold, after)
					if got := told(Consensus(positions, threshold, after)); got != want {
						t.Fatalf("%q threshold %v after %v: got %s, want %s", positions, threshold, after, got, want)
					}
				}
			}
		}
	}
}

func told(c ConsensusResult) string {
	p := Position("null")
	if c.MajorityPosition != nil {
		p = *c.MajorityPosition
	}
	return fmt.Sprintf("%s %.2f %t %s", c.ConsensusStatus, c.AgreementLevel, c.ConsensusReached, p)
}

// byHand checks one juror after the other: does more than half of the jury have this one's position?
func byHand(positions []Position, threshold float64, after bool) string {
	n, most := len(positions), 0
	status, majority := "split", "null"
	for _, p := range positions {
		with := 0
		for _, q := range positions {
			if p == q && p != "" {
				with++
			}
		}
		most = max(most, with)
		if with > n-with {
			status, majority = "majority", string(p)
		}
	}
	if most == n {
		status = "unanimous"
	}
	level := math.Floor(float64(most)/float64(n)*100+0.5) / 100
	reached := status != "split" && (level >= threshold || after && most == n)
	return fmt.Sprintf("%s %.2f %t %s", status, level, reached, majority)
}
