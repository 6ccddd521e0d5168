package main

import "testing"

func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 time stamps", 1: "1 time stamp", 2: "2 time stamps"} {
		if got := counted(n, "time stamp"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
