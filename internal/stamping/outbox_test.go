package stamping

import (
	"testing"
	"time"
)

// TestLateStampsContradictNoClaim: an authority whose clock is behind stamps too early. A token earlier than the claimed
// time, less the tolerance of readers, is not added: it would contradict the claim. A record whose claim is in the far
// future accepts any token.
func TestLateStampsContradictNoClaim(t *testing.T) {
	now := time.Now()
	for name, at := range map[string]struct {
		claimed, stamped time.Time
		want             bool
	}{
		"before the stamp":      {now, now.Add(time.Minute), true},
		"a little after it":     {now, now.Add(-4 * time.Minute), true},
		"too much, for now":     {now.Add(3 * time.Minute), now.Add(-3 * time.Minute), false},
		"of the far future":     {now.Add(time.Hour), now, true},
		"as late as is allowed": {now, now.Add(-5 * time.Minute), true},
	} {
		if got := fitsClaim(at.claimed, at.stamped, now); got != at.want {
			t.Errorf("%s: it is added: %v, want %v", name, got, at.want)
		}
	}
}
