package schedule

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Delivery says how readers are treated.
type Delivery struct {
	Heartbeat time.Duration // after so long a sign of life is given, and over WebSocket one demanded; 0: 15 s
	Patience  time.Duration // how long a reader may take for what it is sent, or to answer a ping; 0: 10 s
	Window    int           // bytes that a WebSocket reader may be behind; 0: 32 KiB
}

// Watch begins to watch. Its context ends when the reader has gone.
type Watch func(context.Context) (*Watching, error)

// ErrBarred, as the cause of why a request's context ended, says that whoever watches may not any more.
var ErrBarred = errors.New("whoever watches may not any more")

// While ends the request that it returns when may does not return nil any more, which is asked as often as a sign of life is given:
// with its error as the cause. Whoever calls While calls end when nobody watches.
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

// every calls do once in a while until ctx ends, or do says that it is enough.
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
