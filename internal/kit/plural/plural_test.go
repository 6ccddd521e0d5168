package plural_test

import (
	"testing"

	"jurat/internal/kit/plural"
	"jurat/internal/test/must"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		n           int64
		thing, want string
	}{{1, "entry", "1 entry"}, {0, "entry", "0 entries"}, {183, "day", "183 days"}, {2, "key", "2 keys"}, {-1, "record", "-1 records"}} {
		must.Equal(t, plural.Of(tt.n, tt.thing), tt.want, tt.n, "of", tt.thing)
	}
	must.Hold(t, plural.Or(1, "is", "are") == "is" && plural.Or(2, "is", "are") == "are" && plural.Or(0, "is", "are") == "are",
		"one is, and none or more are")
}
