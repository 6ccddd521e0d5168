// Package live tells whoever is connected what happens in a trial, over WebSocket or as server-sent events.
//
// Both carry the same events in the same JSON. Each event has a number, and whoever was disconnected asks for what comes after the
// last one that it has. So disconnecting somebody costs nobody anything, and it is what happens to readers who are too slow.
//
// A reader is sent no more than Config.Window bytes without having to answer a ping. That is less than the operating systems on the
// way hold, so a WebSocket reader who has stopped reading is found out while there is still room to tell it so: it finds the close
// code when it goes on. Only an event that is larger by itself can fill the way up, and then the connection is cut without a word.
//
// # Watchers read a list, and the trial writes it
//
// An event is encoded once, and added to a list that only grows; whoever watches goes through it at a pace of its own, so no queue
// can overflow and nobody can hold up the trial. Watchers are woken a moment later than they could be, all together: answers come in
// bursts with the clerk's acts behind them, and a thousand wake-ups between two of these would compete with the trial for the
// processor. That the log has grown, in whatever process, each process hears once (`Ledger.Grown`), and reads what is new once, for
// all who watch here. `BenchmarkWatchers` holds a trial before a thousand WebSocket connections: woken at once they made it 1.2 to
// 1.5 times as long on two busy cores, woken 20 ms later, all together, 1.00 to 1.03 times.
//
// # A reader who is too slow is told so while there is room
//
// A WebSocket reader is sent no more than 32 KiB without having to answer a ping, which is less than systems on the way hold. So
// whoever has stopped reading is found out before the way is full, and finds a close code with words in it; waiting until a write
// blocks would leave nothing but a cut connection.
package live

import (
	"context"
	"errors"
	"net/http"
	"time"

	"jurat/internal/docket"
)

// Config says how readers are treated.
type Config struct {
	Heartbeat time.Duration // after so long a sign of life is given, and over WebSocket one demanded; 0: 15 s
	Patience  time.Duration // how long a reader may take for what it is sent, or to answer a ping; 0: 10 s
	Window    int           // bytes that a WebSocket reader may be behind; 0: 32 KiB
}

// Watch begins to watch. Its context ends when the reader has gone.
type Watch func(context.Context) (*docket.Watching, error)

// ErrBarred, as the cause of why a request's context ended, says that whoever watches may not any more.
var ErrBarred = errors.New("whoever watches may not any more")

// While ends the request that it returns when may does not return nil any more, which is asked as often as a sign of life is given:
// with its error as the cause. Whoever calls While calls end when nobody watches.
func (c Config) While(r *http.Request, may func(context.Context) error) (watched *http.Request, end func()) {
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

func (c Config) complete() Config {
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
