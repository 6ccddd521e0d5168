package schedule_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"jurat/api"
	"jurat/internal/filestore"
	"jurat/internal/installation"
	"jurat/internal/must"
	"jurat/internal/pgtest"
	"jurat/internal/schedule"
)

// TestDatabaseAway takes the database away again and again, for a moment. Each trial comes to its end, although a single attempt that failed would
// break it off: a database that was away is no attempt.
func TestDatabaseAway(t *testing.T) {
	server := pgtest.Start(t)
	dir := t.TempDir()
	key := filepath.Join(dir, "wrapping.key")
	must.Do(t, os.WriteFile(key, filestore.Generate(), 0o600))
	i, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: filepath.Join(dir, "node"), DB: server.Database(t) + "?connect_timeout=60", WrappingKey: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	table := must.Get(schedule.OpenTable(t.Context(), i.Database(), ""))(t)
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{delay: 200 * time.Millisecond}
	d := open(t, schedule.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks(), Vouch: i.Vouch, Table: table, Sit: b.sit, Attempts: 1, Backoff: time.Hour, Lease: time.Second})
	run(t, d)
	var ids []string
	for range 8 {
		ids = append(ids, submit(t, d))
	}
	for n := range 5 {
		time.Sleep(1500 * time.Millisecond) // trials go on meanwhile
		if n%2 == 0 {
			server.Halt(t)
		} else {
			server.Kill(t)
		}
		time.Sleep(300 * time.Millisecond)
		server.Restart(t)
	}
	for _, id := range ids {
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			e := entry(t, d, id)
			if e.State == api.Over {
				break
			}
			if e.State == api.BrokenOff || time.Now().After(end) {
				t.Errorf("%s is %s: %s", id, e.State, e.Reason)
				break
			}
		}
	}
}
