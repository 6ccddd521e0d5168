package operator

import (
	"errors"
	"strings"
	"testing"

	"jurat/evidence"
)

// TestLongEntries: a line that no entry can have is wrong, and no error of reading.
func TestLongEntries(t *testing.T) {
	for _, n := range []int{evidence.MaxEntry, evidence.MaxEntry + 1, evidence.MaxEntry + spelling, 2 * evidence.MaxEntry} {
		for _, end := range []string{"", "\n"} {
			if err := ReadEntries(strings.NewReader(strings.Repeat(" ", n)+end), nil); !errors.Is(err, ErrEntries) {
				t.Errorf("%d bytes and %q: %v", n, end, err)
			}
		}
	}
}
