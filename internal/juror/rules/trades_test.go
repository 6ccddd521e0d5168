package rules

import (
	"slices"
	"strings"
	"testing"
)

// TestTrades: on conversations from trades that the rules were not written for, the rules find the listed faults and
// report nothing else.
func TestTrades(t *testing.T) {
	honest, faulty, caught := 0, 0, 0
	for _, one := range trades(t) {
		t.Run(one.name, func(t *testing.T) {
			got := fired(one.c)
			if one.found == nil && !one.blind {
				honest++
			} else {
				faulty++
			}
			for rule, what := range got {
				if !slices.Contains(one.found, rule) && !strings.HasPrefix(what, "minor") {
					t.Errorf("accused of %s: %s", rule, what)
				}
			}
			for _, rule := range one.found {
				if got[rule] == "" {
					t.Errorf("%s is silent", rule)
				}
			}
			if len(one.found) > 0 && !t.Failed() {
				caught++
			}
		})
	}
	t.Logf("%d honest conversations, %d of %d faulty ones found", honest, caught, faulty)
	if honest < 10 || faulty < 10 {
		t.Errorf("%d honest and %d faulty conversations are too few", honest, faulty)
	}
}
