package ledger

import (
	"context"
	"errors"
	"sync"
	"time"

	"jurat/internal/ledger/storage"
)

// pollInterval is how often a store is asked for its head, for those who wait for it to grow, where it does not tell by itself.
const pollInterval = 500 * time.Millisecond

// Grown returns a channel that has a value in it when the log may have become longer, by whatever process, since the last value was
// taken from it: whoever has taken one reads what is new, and takes the next. Whoever reads the log after having called Grown, and
// then waits, misses nothing. The channel is closed when the context is done.
//
// It costs every process one connection, or one row read twice a second, however many wait.
func (l *Ledger) Grown(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	l.growth.join(l, c)
	context.AfterFunc(ctx, func() { l.growth.leave(c) })
	return c
}

// growth tells those who wait that the log has grown.
type growth struct {
	mu      sync.Mutex // while it is held, nobody else looks at what follows, or sends
	waiting map[chan struct{}]bool
	stop    context.CancelFunc // ends looking; nil: nobody waits, and so nobody looks
}

func (g *growth) join(l *Ledger, c chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = map[chan struct{}]bool{}
	}
	g.waiting[c] = true
	if g.stop == nil {
		ctx, stop := context.WithCancel(context.Background()) // it serves all who wait, and ends with the last of them
		g.stop = stop
		go l.watch(ctx)
	}
}

func (g *growth) leave(c chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.waiting, c)
	close(c)
	if len(g.waiting) == 0 {
		g.stop()
		g.stop = nil
	}
}

// tell lets everybody know who has not got a value that is still to be taken.
func (g *growth) tell() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.waiting {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// watch tells of what any process appends, as long as somebody waits for it. A store that can listen is asked only while it cannot,
// so that a connection that was lost delays what there is to hear, and loses none of it.
func (l *Ledger) watch(ctx context.Context) {
	again := time.NewTicker(l.cfg.Poll)
	defer again.Stop()
	for size := int64(-1); ctx.Err() == nil; {
		if notifier, ok := storage.Kept(l.cfg.Store).(storage.Notifier); ok {
			_ = notifier.Listen(ctx, l.growth.tell) // whatever the reason: the store is asked, and listens again when it can
		}
		// A store that cannot be asked now is asked again: what it has then is news all the same.
		now, err := l.Size(ctx)
		if errors.Is(err, ErrClosed) {
			return
		}
		if err == nil && now != size {
			size = now
			l.growth.tell()
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
}
