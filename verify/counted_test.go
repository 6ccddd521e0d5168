package verify

import "testing"

func TestCounted(t *testing.T) {
	for got, want := range map[string]string{
		counted(1, "review"): "1 review", counted(0, "delivery"): "0 deliveries", counted(2, "chain"): "2 chains", counted(1, "delivery"): "1 delivery",
		theseEntries(1): "this 1 entry", theseEntries(7): "these 7 entries", oneOr(1, "is", "are"): "is", oneOr(0, "is", "are"): "are",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
