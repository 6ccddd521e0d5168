package subject

import "slices"

// Some providers give calls of tools no ids. Readers number such calls, and many programs give them ids of their own before they send them back. names finds
// out which answer a message with calls was, so that a call is shown once, and the result that names the program's id is that of the call.
type names struct {
	numbers map[shownMessage][][]string // of the calls in each answer, by the message without them
}

// Answered notes an answer whose calls have these numbers. without is the message without them.
func (t *talk) Answered(without shownMessage, numbers []string) {
	if t.numbers == nil {
		t.numbers = map[shownMessage][][]string{}
	}
	t.numbers[without] = append(t.numbers[without], numbers)
}

// Numbers returns the numbers that the calls of a message had in the answer; nil: they had ids, or there was no such answer. first is the number that the first
// call has by its place in the prompt. A program that leaves out what is long ago sends its calls in other places: the latest answer counts then.
func (t *talk) Numbers(without shownMessage, first string) []string {
	list := t.numbers[without]
	if len(list) == 0 {
		return nil
	}
	at := slices.IndexFunc(list, func(numbers []string) bool { return numbers[0] == first })
	if at < 0 {
		at = len(list) - 1
	}
	return list[at]
}
