package llm

// bytesPerToken is how many bytes of a question count as one token in an estimate. Most texts have more bytes per
// token, so the reserved amount suffices.
const bytesPerToken = 3

// Estimate returns what a question may consume if its answer has at most maxTokens tokens.
func (q Question) Estimate(maxTokens int) Usage {
	n := len(q.System) + len(q.Schema.JSON)
	for _, m := range q.Messages {
		n += len(m.Text)
	}
	return Usage{Input: int64(n/bytesPerToken + 1), Output: int64(maxTokens)}
}
