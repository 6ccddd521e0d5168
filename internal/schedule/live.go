package schedule

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Delivery says how events are sent to readers.
type Delivery struct {
	Heartbeat time.Duration // interval of heartbeats; over WebSocket these are pings that the reader must answer; 0: 15 s
	Patience  time.Duration // how long a reader may take to receive what it is sent, or to answer a ping; 0: 10 s
	Window    int           // bytes that a WebSocket reader may be behind; 0: 32 KiB
}

// Watch begins to watch a trial. The context ends when the reader disconnects.
type Watch func(context.Context) (*Watching, error)

// ErrBarred, as the cause of a request context's end, says that the watcher has lost the right to watch.
var ErrBarred = errors.New("the watcher may no longer watch")

// While cancels the returned request as soon as may returns an error, with that error as the cause. It calls may at
// each heartbeat. The caller must call end when the watching ends.
func (c Delivery) While(r *http.Request, may func(context.Context) error) (watched *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	go every(ctx, c.complete().Heartbeat, func() bool {
		err := may(ctx)
		if err != nil {
			cancel(err)
		}
		return err == nil
	})
	return r.WithContext(ctx), func() { cancel(nil) }
}

func (c Delivery) complete() Delivery {
	if c.Heartbeat == 0 {
		c.Heartbeat = 15 * time.Second
	}
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	if c.Window == 0 {
		c.Window = 32 << 10
	}
	return c
}

// every calls do at each interval until ctx ends or do returns false.
func every(ctx context.Context, interval time.Duration, do func() bool) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if !do() {
				return
			}
		}
	}
}
