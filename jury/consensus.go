package jury

// Consensus returns how far a jury agrees. positions has one entry per seat. "" is a juror that never had a position:
// it counts in the size of the jury and for no position. After a round, unanimity is enough, whatever the threshold.
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
		return result // a split is never agreed, even with a threshold of 0
	}
	result.MajorityPosition = new(top[0])
	unanimous := afterRound && result.ConsensusStatus == Unanimous
	result.ConsensusReached = unanimous || result.AgreementLevel >= threshold
	return result
}

// plurality returns the most common positions, in the order safe_pass, needs_review, unsafe_fail, and how many jurors
// hold each of them. It returns no position if no juror holds one.
func plurality(positions []Position) (top []Position, k int) {
	holders := map[Position]int{}
	for _, p := range positions {
		holders[p]++
	}
	for _, p := range inOrder() {
		switch held := holders[p]; {
		case held > k:
			top, k = []Position{p}, held
		case held == k && k > 0:
			top = append(top, p)
		}
	}
	return top, k
}

// hundredths is k/n in hundredths, rounded half up. It uses whole numbers, so that 2 of 3 are 67 on every machine.
// Divided by 100, that is the double 0.67, so a threshold of 0.67 is met exactly.
func hundredths(k, n int) int {
	if n == 0 {
		return 0
	}
	return (200*k + n) / (2 * n)
}
