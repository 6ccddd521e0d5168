package verify

import (
	"fmt"
	"strings"
)

// counted is a number of things, in English: "1 entry", "2 entries".
func counted[N int | int64](n N, thing string) string {
	switch stem, y := strings.CutSuffix(thing, "y"); {
	case n == 1:
		return "1 " + thing
	case y:
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// oneOr is how a sentence goes on after a number: as it does after 1, or as it does after any other.
func oneOr[N int | int64](n N, one, other string) string {
	if n == 1 {
		return one
	}
	return other
}

func theseEntries(n int64) string {
	return oneOr(n, "this ", "these ") + counted(n, "entry")
}
