package llm

// A Budget is what calls may cost together, in millionths of a US dollar. It is safe for concurrent use.
type Budget interface {
	// Reserve sets aside what a call may cost, before it is made. Its error is that there is not so much left: then nothing
	// is set aside, and the call must not be made. Otherwise settle must be called once, with what the call did cost.
	Reserve(estimate int64) (settle func(actual int64), err error)
}

// bytesPerToken is how many bytes of a question count as one token where nobody has counted them: fewer than most
// texts have, so that what is set aside suffices.
const bytesPerToken = 3

// Estimate is what a question may consume whose answer has at most so many tokens.
func (q Question) Estimate(maxTokens int) Usage {
	n := len(q.System) + len(q.Schema.JSON)
	for _, m := range q.Messages {
		n += len(m.Text)
	}
	return Usage{Input: int64(n/bytesPerToken + 1), Output: int64(maxTokens)}
}
