package phrase

// Listed returns the word of a member's name that says what it lists: order_ids lists orders.
func Listed(words []string) string {
	last := words[len(words)-1]
	if len(words) > 1 && (last == "ids" || last == "id" || last == "numbers" || last == "list") {
		return words[len(words)-2]
	}
	return last
}
