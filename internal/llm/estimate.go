package llm

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
