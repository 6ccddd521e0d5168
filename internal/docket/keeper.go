package docket

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"jurat/api"
	"jurat/internal/find"
	"jurat/internal/ledger"
)

// A Keeper keeps the index of words of a log at the end of the log, while searches use it. Its methods may be called
// concurrently.
type Keeper struct {
	Ledger *ledger.Ledger
	Path   string       // of the file; "": in memory
	Log    *slog.Logger // nil: no log

	mu      sync.Mutex // held while the index is opened
	index   *find.Index
	closed  bool
	failing bool // the last attempt failed, and the log has it; used by Run alone
}

const (
	followEvery = time.Second
	catchUp     = 200 * time.Millisecond // for which a search waits for the newest records
)

// Run opens the index and follows the log until ctx ends, then closes the index. An error is logged, and the next
// attempt comes a second later: a server without an index seals and judges as before.
func (k *Keeper) Run(ctx context.Context) {
	defer k.Close()
	for tick := time.NewTicker(followEvery); ; {
		err := k.follow(ctx)
		if ctx.Err() != nil {
			tick.Stop()
			return
		}
		k.report(err)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (k *Keeper) report(err error) {
	failing := err != nil
	if failing && !k.failing && k.Log != nil {
		k.Log.Error("the index of words does not follow the log, so searches may miss records; delete its file if it is damaged", "file", k.Path, "error", err)
	}
	k.failing = failing
}

func (k *Keeper) follow(ctx context.Context) error {
	x, err := k.Open(ctx)
	if err != nil {
		return err
	}
	return x.Follow(ctx, k.teller())
}

// tellEvery is how often the log says how far an index has come that is far behind, such as one that is made again after an update of the
// program.
const tellEvery = 5 * time.Second

// teller returns a function that logs progress.
func (k *Keeper) teller() func(done, total int64) {
	last := time.Now()
	return func(done, total int64) {
		if k.Log != nil && time.Since(last) >= tellEvery {
			last = time.Now()
			k.Log.Info("the index of words is being made from the log; searches find what it has so far", "file", k.Path, "records", done, "of", total)
		}
	}
}

var errClosed = errors.New("the index of words is closed")

// Open returns the index. The first call opens it. Its errors are those of the file and of reading the log.
func (k *Keeper) Open(ctx context.Context) (*find.Index, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, errClosed
	}
	if k.index != nil {
		return k.index, nil
	}
	x, err := find.Open(ctx, k.Ledger, k.Path)
	if err != nil {
		return nil, err
	}
	k.index = x
	return x, nil
}

// Close closes the index.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.index == nil {
		return nil
	}
	x := k.index
	k.index = nil
	return x.Close()
}

// Ready returns the index for a search, and what it does not have. It waits for the newest records, but not for long.
func (k *Keeper) Ready(ctx context.Context) (*find.Index, api.IndexState, error) {
	x, err := k.Open(ctx)
	if err != nil {
		return nil, api.IndexState{}, err
	}
	soon, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	_ = x.Follow(soon, nil) // what it did not read counts as behind, and Run logs why
	size, err := k.Ledger.Size(ctx)
	done, _ := x.Progress()
	return x, api.IndexState{Behind: max(0, size-done)}, err
}
