package verify

import (
	"testing"

	"jurat/evidence"
)

// TestVolume: links within each record's allowance do not count, and the bound is the last accepted number.
func TestVolume(t *testing.T) {
	naming := func(n int) *evidence.Record {
		return &evidence.Record{Payload: evidence.Payload{ActionType: evidence.Message, Saw: make([]evidence.Digest, n-1), PreviousRecord: evidence.Digest{1}}}
	}
	v := new(volume)
	for range 3 * linksOfFile / linksOfRecord {
		if v.take(naming(linksOfRecord)) {
			t.Fatal("links within each record's allowance used up the common allowance")
		}
	}
	if v.take(naming(linksOfRecord+linksOfFile)) || v.take(naming(linksOfRecord)) {
		t.Error("the largest allowed number was refused")
	}
	if !v.take(naming(linksOfRecord + 1)) {
		t.Error("one more than the largest allowed number was accepted")
	}
	if v.take(naming(linksOfRecord+1)) || v.exceeded == "" {
		t.Error("links beyond the bound were reported other than once")
	}
}

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
