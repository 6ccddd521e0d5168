package verify

import (
	"testing"
)

// TestDetails: without room, the worst finding of each record under each guarantee stays, and the others are counted.
func TestDetails(t *testing.T) {
	d := newDetails()
	d.room = len("a long reason") + sizeOfText + sizeOfDetail + len("b") + sizeOfText
	admit := func(f Finding, reason string) {
		t.Helper()
		got, kept := d.admit(f)
		if kept != (reason != "") || kept && got.Reason != reason {
			t.Errorf("%+v: %+v, %v; want %q", f, got, kept, reason)
		}
	}
	admit(Finding{Content, NotProved, "", "r", "a long reason"}, "a long reason")
	admit(Finding{Content, NotProved, "", "s", "a long reason"}, "a long reason") // a known reason takes no room
	admit(Finding{Content, NotProved, "", "r", "b"}, "b")
	admit(Finding{Content, NotProved, "", "r", "c"}, "")
	admit(Finding{Content, Refuted, "", "r", "d"}, notTold)
	admit(Finding{Content, Refuted, "", "r", "e"}, "")
	admit(Finding{Order, NotProved, "", "r", "f"}, notTold)
	admit(Finding{Envelope, NotProved, "", "r", "g"}, notTold)
	admit(Finding{Envelope, Refuted, "", "r", "h"}, notTold)
	admit(Finding{Order, NotProved, "", "", "i"}, notTold)
	if d.leftOut != 2 {
		t.Errorf("%d are left out", d.leftOut)
	}
}
