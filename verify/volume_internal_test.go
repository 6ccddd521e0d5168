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
		if v.Take(naming(linksOfRecord)) {
			t.Fatal("links within each record's allowance used up the common allowance")
		}
	}
	if v.Take(naming(linksOfRecord+linksOfFile)) || v.Take(naming(linksOfRecord)) {
		t.Error("the largest allowed number was refused")
	}
	if !v.Take(naming(linksOfRecord + 1)) {
		t.Error("one more than the largest allowed number was accepted")
	}
	if v.Take(naming(linksOfRecord+1)) || v.Exceeded == "" {
		t.Error("links beyond the bound were reported other than once")
	}
}
