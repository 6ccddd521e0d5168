// Package plural says how many there are of something, in English.
package plural

import (
	"fmt"
	"strings"
)

// Of is a number of things: "1 entry", "2 entries", "3 days".
func Of[N int | int64](n N, thing string) string {
	stem, y := strings.CutSuffix(thing, "y")
	switch {
	case n == 1:
		return "1 " + thing
	case y && !strings.HasSuffix(stem, "a") && !strings.HasSuffix(stem, "e") && !strings.HasSuffix(stem, "o"):
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Or is how a sentence goes on after a number: as it does after 1, or as it does after any other.
func Or[N int | int64](n N, one, other string) string {
	if n == 1 {
		return one
	}
	return other
}
