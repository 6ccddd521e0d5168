package queue

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// deaf is a client that ignores Stop until the test releases it.
type deaf struct {
	client
	letGo chan struct{}
}

func (d deaf) Stop(context.Context) error { <-d.letGo; return nil }

// TestStopHasAnEnd checks that Stop waits for running jobs without limit, but for River only for a limited time.
func TestStopHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deaf{letGo: make(chan struct{})}
		defer close(d.letGo)
		q := &Queue{client: d, here: map[string]bool{"trial-1": true}, left: map[string]time.Time{}}
		stopped := make(chan error, 1)
		go func() { stopped <- q.Stop(t.Context()) }()
		time.Sleep(time.Hour)
		select {
		case err := <-stopped:
			t.Errorf("Stop returned while a job was running: %v", err)
		default:
		}
		q.leave("trial-1")
		if err := <-stopped; err == nil || !strings.Contains(err.Error(), "River") {
			t.Errorf("%v", err)
		}
	})
}
