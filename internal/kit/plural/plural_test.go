package plural_test

import (
	"testing"

	"jurat/internal/kit/plural"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		n           int64
		thing, want string
	}{{1, "entry", "1 entry"}, {0, "entry", "0 entries"}, {183, "day", "183 days"}, {2, "key", "2 keys"}, {-1, "record", "-1 records"}} {
		if got := plural.Of(tt.n, tt.thing); got != tt.want {
			t.Errorf("%d of %q: %q, want %q", tt.n, tt.thing, got, tt.want)
		}
	}
	if plural.Or(1, "is", "are") != "is" || plural.Or(2, "is", "are") != "are" || plural.Or(0, "is", "are") != "are" {
		t.Error("one is, and none or more are")
	}
}
