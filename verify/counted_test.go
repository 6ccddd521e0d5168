package verify

import (
	"testing"

	"jurat/internal/plural"
)

func TestCounted(t *testing.T) {
	for got, want := range map[string]string{
		plural.Of(1, "review"): "1 review", plural.Of(0, "delivery"): "0 deliveries", plural.Of(2, "chain"): "2 chains", plural.Of(1, "delivery"): "1 delivery",
		theseEntries(1): "this 1 entry", theseEntries(7): "these 7 entries", plural.Or(1, "is", "are"): "is", plural.Or(0, "is", "are"): "are",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
