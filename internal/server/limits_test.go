package server

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"jurat/api"
)

// TestCrowdsOfStrangers: callers without a token, from many addresses, do not shut out a caller with a token. Their
// addresses are forgotten as soon as they have their full allowance again.
func TestCrowdsOfStrangers(t *testing.T) {
	now := time.Now()
	l := newRateLimiter(Rate{PerSecond: 1, Burst: 2}, func() time.Time { return now })
	for i := range maxStrangers {
		if err := l.Allow(fmt.Sprint("address ", i), true); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := l.Allow("one address more", true); !errors.Is(err, api.ErrTooMany) {
		t.Errorf("the number of remembered addresses is not limited: %v", err)
	}
	if err := l.Allow("a token", false); err != nil {
		t.Errorf("a caller with a token was refused: %v", err)
	}
	now = now.Add(2 * time.Second)
	if err := l.Allow("one address more", true); err != nil || len(l.callers) != 1 {
		t.Errorf("%v, %d are remembered", err, len(l.callers))
	}
	// Pauses between many requests do not help.
	for range 5 {
		_ = l.Allow("one address more", true)
	}
	now = now.Add(time.Second)
	l.sweep(now)
	if l.callers["one address more"] == nil {
		t.Error("an address was forgotten before its allowance was full again")
	}
	now = now.Add(-time.Hour)
	if err := l.Allow("a clock that went back", true); err != nil {
		t.Error(err)
	}
}
