package verify

import "jurat/internal/plural"

func theseEntries(n int64) string {
	return plural.Or(n, "this ", "these ") + plural.Of(n, "entry")
}
