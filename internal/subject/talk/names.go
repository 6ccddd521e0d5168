package talk

import "slices"

// Some providers give calls of tools no ids. Readers number such calls, and many programs give them ids of their own before they send them back. names finds
// out which id is which number's, so that a call is shown once, and the result that names the program's id is that of the call.
type names struct {
	open    map[Message][][]string // the numbers in answers to which no ids belong yet, by the message without them
	numbers map[string]string      // by the program's id
}

// Answered notes an answer whose calls have these numbers. without is the message without them.
func (t *Talk) Answered(without Message, numbers []string) {
	if t.open == nil {
		t.open, t.numbers = map[Message][][]string{}, map[string]string{}
	}
	t.open[without] = append(t.open[without], numbers)
}

// Names returns the ids of the calls of a message in a prompt as they were in the answer: the numbers, if the answer had no ids.
func (t *Talk) Names(without Message, ids []string) []string {
	if list := t.open[without]; len(list) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return t.numbers[id] != "" }) {
		for i, id := range ids {
			t.numbers[id] = list[0][i]
		}
		t.open[without] = list[1:]
	}
	named := make([]string, len(ids))
	for i, id := range ids {
		named[i] = t.Name(id)
	}
	return named
}

// Name returns an id as it was in the answer.
func (t *Talk) Name(id string) string {
	if number := t.numbers[id]; number != "" {
		return number
	}
	return id
}
