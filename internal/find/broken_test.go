package find_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"jurat/internal/find"
	"jurat/internal/ledger/storage"
	"jurat/internal/must"
	"jurat/internal/sqlitefile"
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
			must.Do(t, x.Settle(t.Context()))
		}
		must.Do(t, x.Close())
	}
	whole := func(x *find.Index) {
		follow(t, x)
		q := must.Get(find.ReadRecords(getter("text", "of the thing", "limit", "500")))(t)
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

// TestRemade: a stretch that is made again takes nothing from others of its slot, and the index of pieces stays as it would be anew.
func TestRemade(t *testing.T) {
	h := jurattest.New(t)
	x := openIndex(t, h, t.TempDir()+"/find.db")
	const n = 4120 // more than one slot
	for i := range n {
		say(t, h, fmt.Sprintf("mention %04d of the thing", i))
		if i == 20 || i == 70 || i == 90 || i == n-1 {
			follow(t, x)
			must.Do(t, x.Settle(t.Context()))
		}
	}
	if x.Stretches() < 4 {
		t.Fatalf("%d stretches", x.Stretches())
	}
	for _, in := range []storage.Range{{From: 30, To: 31}, {From: 0, To: 95}, {From: 4000, To: 4001}} {
		if err := x.CheckBlocks(t.Context()); err != nil {
			t.Errorf("before %v: %v", in, err)
		}
		must.Do(t, x.Remake(t.Context(), in))
		if err := x.CheckBlocks(t.Context()); err != nil {
			t.Errorf("after %v: %v", in, err)
		}
		for i := 0; i < n; i += atLength(13, 53) {
			q := must.Get(find.ReadRecords(getter("text", fmt.Sprintf("mention %04d", i))))(t)
			found, err := x.Records(t.Context(), q, find.Scope{All: true}, nil)
			if err != nil || len(found.Hits) != 1 || found.Hits[0].Place != int64(i) {
				t.Fatalf("after %v: mention %d is found %d times, %v", in, i, len(found.Hits), err)
			}
		}
	}
	for _, in := range []storage.Range{{From: 21, To: 71}, {From: 91, To: 4120}} { // one of a slot with others, and one that reaches into two
		must.Do(t, x.Expire(t.Context(), in))
		if err := x.CheckBlocks(t.Context()); err != nil {
			t.Errorf("after %v expired: %v", in, err)
		}
	}
}

// TestEarlierVersion: the file of an earlier program is made again from the log, with progress.
func TestEarlierVersion(t *testing.T) {
	h, path := jurattest.New(t), t.TempDir()+"/find.db"
	for i := range 50 {
		say(t, h, fmt.Sprintf("mention %03d of the thing", i))
	}
	x := openIndex(t, h, path)
	follow(t, x)
	must.Do(t, errors.Join(x.Settle(t.Context()), x.Close()))
	db, err := sqlitefile.Open(path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), "DROP TABLE blocks; PRAGMA user_version = 1")
	}
	must.Do(t, errors.Join(err, db.Close()))
	x = openIndex(t, h, path)
	if done, _ := x.Progress(); done != 0 {
		t.Errorf("%d records of the earlier file are used", done)
	}
	told := int64(0)
	must.Do(t, x.Follow(t.Context(), func(done, total int64) { told = max(told, done) }))
	if told != 50 {
		t.Errorf("progress to %d of 50", told)
	}
	q := must.Get(find.ReadRecords(getter("text", "mention 017")))(t)
	if found, err := x.Records(t.Context(), q, find.Scope{All: true}, nil); err != nil || len(found.Hits) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}
