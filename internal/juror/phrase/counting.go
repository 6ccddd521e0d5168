package phrase

// Listed returns the word of a member's name that says what it lists: order_ids lists orders.
func Listed(words []string) string {
	last := words[len(words)-1]
	if len(words) > 1 && (last == "ids" || last == "id" || last == "numbers" || last == "list") {
		return words[len(words)-2]
	}
	return last
}

// Head returns the stem of the noun that a number counts: "two upcoming orders in March" counts orders, and "two options
// for your orders" counts options.
func Head(counted string) string {
	head := ""
	for _, word := range Words(counted) {
		if notInPhrase[word] {
			break
		}
		head = Stem(word)
	}
	return head
}

var notInPhrase = Set(`for of to in on at that which who with from by you we i and or as is are was were have has under within over per`)
