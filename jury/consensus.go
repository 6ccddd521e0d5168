package jury

// Consensus says how far a jury is agreed. There is one position per seat; "" is a juror that never had one, which
// counts in the size of the jury and for nobody. After a round unanimity is enough, whatever the threshold.
func Consensus(positions []Position, threshold float64, afterRound bool) ConsensusResult {
	n := len(positions)
	top, k := plurality(positions)
	result := ConsensusResult{ConsensusStatus: Split, AgreementLevel: float64(hundredths(k, n)) / 100}
	switch {
	case k == n && n > 0:
		result.ConsensusStatus = Unanimous
	case 2*k > n:
		result.ConsensusStatus = Majority
	default:
		return result // a split is never agreed, not even with a threshold of 0
	}
	result.MajorityPosition = new(top[0])
	unanimous := afterRound && result.ConsensusStatus == Unanimous
	result.ConsensusReached = unanimous || result.AgreementLevel >= threshold
	return result
}

// plurality returns the positions that most hold, in the order safe_pass, needs_review, unsafe_fail, and how many hold
// each of them. Where nobody holds any, there are none.
func plurality(positions []Position) (top []Position, k int) {
	holders := map[Position]int{}
	for _, p := range positions {
		holders[p]++
	}
	for _, p := range []Position{SafePass, NeedsReview, UnsafeFail} {
		switch held := holders[p]; {
		case held > k:
			top, k = []Position{p}, held
		case held == k && k > 0:
			top = append(top, p)
		}
	}
	return top, k
}

// hundredths is k/n in hundredths, rounded half up. It is computed in whole numbers, so that 2 of 3 are 67 everywhere;
// divided by 100 that is the double which the text 0.67 names, so a threshold of 0.67 is met exactly.
func hundredths(k, n int) int {
	if n == 0 {
		return 0
	}
	return (200*k + n) / (2 * n)
}
