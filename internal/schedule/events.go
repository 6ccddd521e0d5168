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

// Events sends events as server-sent events, each with its seq as id, and returns when the last one was sent or the reader has gone.
// A reader who comes for what is after the last event gets 204, on which browsers do not come again. An error that comes before
// anything was sent has not been answered yet; any other is for the server's log.
func (c Delivery) Events(w http.ResponseWriter, r *http.Request, watch Watch) error {
	c = c.complete()
	ctx, leave := context.WithCancel(r.Context())
	var beating sync.WaitGroup
	defer beating.Wait() // nobody writes when this has returned
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
	w.Header().Set("Connection", "close")     // the deadlines set here would be those of the next answer
	w.Header().Set("X-Accel-Buffering", "no") // proxies that would gather events are asked not to
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead { // there is no body, however long it would be
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
			return nil // it comes again by itself
		case err != nil:
			return err
		}
		if !out.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", f.Seq, f.Type, f.JSON)) {
			return nil
		}
	}
	return nil
}

// lines writes what two of us have to say to one reader.
type lines struct {
	mu       sync.Mutex // held while one of them writes
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

// write reports whether the reader has taken it in time.
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
