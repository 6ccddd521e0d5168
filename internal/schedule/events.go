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
