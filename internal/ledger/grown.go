package ledger

import (
	"context"
	"errors"
	"sync"
	"time"

	"jurat/internal/ledger/storage"
)

// pollInterval is how often the head is read of a store that does not notify.
const pollInterval = 500 * time.Millisecond

// Grown returns a channel that gets a value when the log may have grown, by any process, since the last value was
// taken. The caller takes a value, reads what is new, and waits for the next. A caller that calls Grown, then reads
// the log, then waits, misses nothing. The channel is closed when the context is done.
//
// It costs every process one connection, or one row read twice a second, however many callers wait.
func (l *Ledger) Grown(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	l.growth.join(l, c)
	context.AfterFunc(ctx, func() { l.growth.leave(c) })
	return c
}

// growth notifies the callers of Grown.
type growth struct {
	mu      sync.Mutex // held while the members below are used, and while values are sent
	waiting map[chan struct{}]bool
	stop    context.CancelFunc // ends Ledger.watch; nil: no caller waits, so it does not run
}

func (g *growth) join(l *Ledger, c chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = map[chan struct{}]bool{}
	}
	g.waiting[c] = true
	if g.stop == nil {
		ctx, stop := context.WithCancel(context.Background()) // serves all waiting callers, and ends with the last of them
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

// tell sends to every channel that is empty.
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

// watch calls tell when any process appends, while a caller waits. It reads the head of a store only while the store
// cannot notify. So a lost connection delays notifications, but loses none.
func (l *Ledger) watch(ctx context.Context) {
	again := time.NewTicker(l.cfg.Poll)
	defer again.Stop()
	for size := int64(-1); ctx.Err() == nil; {
		if notifier, ok := l.cfg.Store.(storage.Notifier); ok {
			_ = notifier.Listen(ctx, l.growth.tell) // after any error: read the head, then listen again
		}
		// If the head cannot be read now, the next round reads it.
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
