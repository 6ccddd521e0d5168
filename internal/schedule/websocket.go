package schedule

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/coder/websocket"
)

// Close codes. RFC 6455 defines: 1000 when the trial is over, 1001 when the server is about to end, 1008 for a reader
// that sends something, 1011 when the server failed. The codes below are jurat's own.
const (
	Barred  websocket.StatusCode = 4003 // the watcher has lost the right to watch
	TooSlow websocket.StatusCode = 4008
)

// Reasons sent with the codes. They say what to do.
const (
	overReason    = "the trial is over"
	closingReason = "the server is about to end: connect again with ?after= and the last seq that you have"
	barredReason  = "you may no longer watch: sign in again"
	slowReason    = "too slow: connect again with ?after= and the last seq that you have"
	failedReason  = "the server failed: connect again with ?after= and the last seq that you have"
)

// ErrHandshake says that a request is not the beginning of a WebSocket connection.
var ErrHandshake = errors.New("this is not a WebSocket handshake")

// WebSocket upgrades the connection, sends each event as a text message, and returns when the connection is closed.
// The caller must have checked the origin. If WebSocket returns an error before the upgrade, the caller must answer
// the request; a later error is only for the log.
func (c Delivery) WebSocket(w http.ResponseWriter, r *http.Request, watch Watch) error {
	c = c.complete()
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	events, err := watch(ctx)
	if err != nil {
		return err
	}
	conn, err := accept(w, r)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	// The reader has nothing to send: CloseRead answers pings and close frames, and ends the connection if the reader
	// sends a message. It must not end with ctx, because that would cut the connection before the close code is sent.
	gone := conn.CloseRead(context.WithoutCancel(ctx))
	context.AfterFunc(gone, leave)
	go every(gone, c.Heartbeat, func() bool { return c.alive(gone, conn) })
	return c.send(gone, conn, events)
}

// accept upgrades the connection. It returns an error if it cannot, and the caller answers the request.
func accept(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	conn, err := websocket.Accept(unanswered{w}, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the caller has checked the origin
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	conn.SetReadLimit(1 << 10) // control frames are smaller, and the reader sends nothing else
	return conn, nil
}

// unanswered suppresses every answer except the upgrade.
type unanswered struct{ http.ResponseWriter }

func (u unanswered) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols {
		u.ResponseWriter.WriteHeader(status)
	}
}

func (u unanswered) Write(p []byte) (int, error) { return len(p), nil }

func (u unanswered) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// send sends events until there are none left, the reader disconnects, or is too slow.
func (c Delivery) send(gone context.Context, conn *websocket.Conn, events *Watching) error {
	unanswered := 0
	for f, err := range events.Frames {
		switch {
		case gone.Err() != nil:
			return nil
		case errors.Is(err, ErrClosing):
			conn.Close(websocket.StatusGoingAway, closingReason)
			return nil
		case errors.Is(err, ErrBarred):
			conn.Close(Barred, barredReason)
			return nil
		case err != nil:
			conn.Close(websocket.StatusInternalError, failedReason)
			return err
		}
		if !c.write(gone, conn, f.JSON) {
			return nil
		}
		if unanswered += len(f.JSON); unanswered >= c.Window {
			if !c.alive(gone, conn) {
				return nil
			}
			unanswered = 0
		}
	}
	conn.Close(websocket.StatusNormalClosure, overReason)
	return nil
}

// write sends one event. It cuts off a reader that does not take it in time: half of it may be sent, so nothing can
// follow.
func (c Delivery) write(gone context.Context, conn *websocket.Conn, doc []byte) bool {
	ctx, cancel := context.WithTimeout(gone, c.Patience)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, doc) == nil
}

// alive reports whether the reader answers a ping. It ends the connection if the reader does not in time.
func (c Delivery) alive(gone context.Context, conn *websocket.Conn) bool {
	ctx, cancel := context.WithTimeout(gone, c.Patience)
	defer cancel()
	if conn.Ping(ctx) == nil {
		return true
	}
	if gone.Err() == nil {
		conn.Close(TooSlow, slowReason)
	}
	return false
}
