package main

import (
	"testing"

	"jurat/internal/plural"
)

func TestCounted(t *testing.T) {
	if one, two := plural.Of(1, "entry"), plural.Of(2, "entry"); one != "1 entry" || two != "2 entries" {
		t.Errorf("%q and %q", one, two)
	}
	for n, want := range map[int]string{0: "0 time stamps", 1: "1 time stamp", 2: "2 time stamps"} {
		if got := plural.Of(n, "time stamp"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
