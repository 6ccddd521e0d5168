package subject

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// prompt makes a message of each letter.
func prompt(letters string) (list []shownMessage) {
	for _, letter := range letters {
		list = append(list, shownAs("user", string(letter)))
	}
	return list
}

// TestTalk: of each prompt, what was shown before is found, whatever came in between.
func TestTalk(t *testing.T) {
	var talks talks
	talk, shown := talks.Of("agent", "chain"), 0
	for _, step := range []struct{ prompt, answer, want string }{
		{"sab", "c", ""},
		{"sab", "c", "1 2 3"},     // the same answer again
		{"sab", "d", "1 2 3"},     // another answer
		{"sabce", "f", "1 2 3 4"}, // on from the first
		{"sabde", "g", "1 2 3 5"}, // on from the other
		{"sxy", "z", "1"},         // another conversation with the same instructions
		{"sabcefh", "i", "1 2 3 4 6 7"},
		{"sefhij", "k", "1 6 7 13 14"}, // what is long ago was left out
		{"sk", "", "1 16"},
		{"q", "", ""},
	} {
		asked, answered := prompt(step.prompt), prompt(step.answer)
		line := talk.Repeated(asked)
		var numbers []string
		for _, s := range line {
			numbers = append(numbers, fmt.Sprint(s.Number))
		}
		if got := strings.Join(numbers, " "); got != step.want {
			t.Errorf("%s: %s, want %s", step.prompt, got, step.want)
		}
		fresh := asked[len(line):]
		if talk.Ends(asked, answered) == 0 {
			fresh = slices.Concat(fresh, answered)
		} else if step.prompt+step.answer != "sabc" || shown != 4 {
			t.Errorf("%s: the answer %s was given before", step.prompt, step.answer)
		}
		for _, m := range fresh {
			shown++
			line = append(line, stood{m, shown})
		}
		talk.Keep(line)
	}
	if other := talks.Of("agent", "other"); len(other.Repeated(prompt("sab"))) != 0 || talks.Of("agent", "chain") != talk {
		t.Error("chains are not apart")
	}
	if shownAs("a", "bc") == shownAs("ab", "c") {
		t.Error("texts run into each other")
	}
}

func TestNumbers(t *testing.T) {
	for want, numbers := range map[string][]int{
		"message 4":                          {4},
		"the messages 1 to 3":                {1, 2, 3},
		"the messages 1, 3 to 4, 9":          {1, 3, 4, 9},
		"the messages 1, 3, 5, 7, 9, others": {1, 3, 5, 7, 9, 11, 13},
	} {
		var line []stood
		for _, n := range numbers {
			line = append(line, stood{Number: n})
		}
		if diff := cmp.Diff(want, numbersOf(line)); diff != "" {
			t.Error(diff)
		}
	}
}
