package find_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"jurat/internal/find"
	"jurat/internal/must"
	"jurat/internal/sqlitefile"
	"jurat/jurattest"
)

// TestBrokenOff: an index that is broken off at any place keeps what it has, goes on in the next process, and has each record
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
		if done, _ := x.Progress(); done != stop {
			t.Errorf("broken off at %d, the index has %d", stop, done)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
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

// TestTwoFollow: two processes that follow the log with one file at once add each record once.
func TestTwoFollow(t *testing.T) {
	h, path := jurattest.New(t), t.TempDir()+"/find.db"
	const n = 200
	x, y := openIndex(t, h, path), openIndex(t, h, path)
	var both sync.WaitGroup
	for _, one := range []*find.Index{x, y} {
		both.Go(func() {
			for done := int64(0); done < n; done, _ = one.Progress() {
				if err := one.Follow(t.Context(), nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range n {
		say(t, h, fmt.Sprintf("mention %03d of the thing", i))
	}
	both.Wait()
	q := must.Get(find.ReadRecords(getter("text", "of the thing", "limit", "500", "actor", "bot")))(t)
	for _, one := range []*find.Index{x, y} {
		if found, err := one.Records(t.Context(), q, find.Scope{All: true}, nil); err != nil || len(found.Hits) != n {
			t.Errorf("%d hits, %v; want %d", len(found.Hits), err, n)
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
	must.Do(t, x.Close())
	db, err := sqlitefile.Open(path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), "DROP TABLE notes; PRAGMA user_version = 1")
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

// TestManyReplaceAtOnce: of processes that find a file of another version at the same moment, one makes it anew, and all go on with that one: what
// each adds is found by the others, and by the next.
func TestManyReplaceAtOnce(t *testing.T) {
	h := jurattest.New(t)
	for i := range 20 {
		say(t, h, fmt.Sprintf("mention %03d of the thing", i))
	}
	for range 10 {
		path := t.TempDir() + "/find.db"
		db := must.Get(sqlitefile.Open(path))(t)
		_, err := db.Exec("CREATE TABLE words (old TEXT); PRAGMA user_version = 4")
		must.Do(t, errors.Join(err, db.Close()))
		var all [6]*find.Index
		var opened sync.WaitGroup
		for i := range all {
			opened.Go(func() { all[i] = openIndex(t, h, path) })
		}
		opened.Wait()
		for i, x := range append(all[:], openIndex(t, h, path)) {
			follow(t, x)
			q := must.Get(find.ReadRecords(getter("text", "of the thing", "limit", "500")))(t)
			if found, err := x.Records(t.Context(), q, find.Scope{All: true}, nil); err != nil || len(found.Hits) != 20 {
				t.Fatalf("index %d: %d records are found, %v", i, len(found.Hits), err)
			}
		}
	}
}
