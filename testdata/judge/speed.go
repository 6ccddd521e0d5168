package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
)

// speed has many callers add entries of a size to a log of Tessera's own, each when the one before has its place in the log, with Tessera's
// own settings, and says how many were added in a second, until the last was published.
func speed(ctx context.Context, folder string, seconds, size, callers int) error {
	if min(seconds, size, callers) < 1 {
		return errors.New("seconds, bytes and callers are whole numbers from 1")
	}
	signer, _, err := newKey()
	if err != nil {
		return err
	}
	storage, err := posix.New(ctx, posix.Config{Path: folder})
	if err != nil {
		return err
	}
	appender, stop, _, err := tessera.NewAppender(ctx, storage, tessera.NewAppendOptions().WithCheckpointSigner(signer))
	if err != nil {
		return err
	}
	begin := time.Now()
	end := begin.Add(time.Duration(seconds) * time.Second)
	var added atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for time.Now().Before(end) && failed.Load() == nil {
				entry := make([]byte, size)
				rand.Read(entry) // never fails
				if _, err := appender.Add(ctx, tessera.NewEntry(entry))(); err != nil {
					failed.Store(&err)
					return
				}
				added.Add(1)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	if err := stop(ctx); err != nil { // when the last one is published
		return err
	}
	fmt.Printf("%d entries of %d bytes, %d callers: %.0f/s\n", added.Load(), size, callers, float64(added.Load())/time.Since(begin).Seconds())
	return nil
}
