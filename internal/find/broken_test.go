package find_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"jurat/internal/find"
	"jurat/jurattest"
)

// TestBrokenOff: an index that is broken off at any place, also between two stretches, goes on in the next process, and has each record
// once. One whose file was deleted while it was open is made again by the next.
func TestBrokenOff(t *testing.T) {
	h, path := jurattest.New(t), t.TempDir()+"/find.db"
	const n = 120
	for i := range n {
		say(t, h, fmt.Sprintf("mention %03d of the thing", i))
	}
	for stop := int64(7); stop < n; stop += 31 {
		x := openIndex(t, h, path)
		ctx, cancel := context.WithCancel(t.Context())
		err := x.Follow(ctx, func(done, _ int64) {
			if done >= stop {
				cancel()
			}
		})
		if done, _ := x.Progress(); stop < n-31 && done >= n {
			t.Logf("it was done at %d before it was broken off", stop)
		} else if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
		if stop%2 == 1 { // otherwise the process dies before the newest records are in the file
			if err := x.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	whole := func(x *find.Index) {
		follow(t, x)
		q, err := find.ReadRecords(getter("text", "of the thing", "limit", "500"))
		if err != nil {
			t.Fatal(err)
		}
		found, err := x.Records(t.Context(), q, find.Scope{All: true}, nil)
		if err != nil || len(found.Hits) != n {
			t.Errorf("%d records are found, %v; want %d", len(found.Hits), err, n)
		}
	}
	x := openIndex(t, h, path)
	whole(x)
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	whole(openIndex(t, h, path))
}
