package schedule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// EventStream is the media type of server-sent events (HTML, section 9.2).
const EventStream = "text/event-stream"

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

// Events sends server-sent events, each with its seq as id. It returns after the last event, or when the reader
// disconnects. If there is nothing after the reader's last event, it answers 204, after which browsers do not
// reconnect. If it returns an error before it sent anything, the caller must answer the request; a later error is
// only for the log.
func (c Delivery) Events(w http.ResponseWriter, r *http.Request, watch Watch) error {
	c = c.complete()
	ctx, leave := context.WithCancel(r.Context())
	var beating sync.WaitGroup
	defer beating.Wait() // no goroutine writes after the return
	defer leave()
	events, err := watch(ctx)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	if events.Over {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Content-Type", EventStream)
	w.Header().Set("Connection", "close")     // the deadlines set here would also hold for the next answer
	w.Header().Set("X-Accel-Buffering", "no") // asks proxies not to buffer events
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead { // the answer has no body
		return nil
	}
	out := &lines{w: w, control: http.NewResponseController(w), patience: c.Patience}
	if !out.write("retry: 1000\n\n") {
		return nil
	}
	beating.Go(func() {
		every(ctx, c.Heartbeat, func() bool {
			if out.write(":\n\n") {
				return true
			}
			leave()
			return false
		})
	})
	for f, err := range events.Frames {
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrClosing):
			return nil // the reader reconnects
		case err != nil:
			return err
		}
		if !out.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", f.Seq, f.Type, f.JSON)) {
			return nil
		}
	}
	return nil
}

// lines writes for the two goroutines that send to one reader.
type lines struct {
	mu       sync.Mutex // held while one of them writes
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

// write reports whether the reader took the text in time.
func (l *lines) write(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.control.SetWriteDeadline(time.Now().Add(l.patience)) != nil {
		return false
	}
	if _, err := l.w.Write([]byte(text)); err != nil {
		return false
	}
	return l.control.Flush() == nil
}
