package schedule_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
	"jurat/internal/schedule"
	"jurat/internal/trial"
)

// BenchmarkOpen opens a scheduler on a log in a file with a hundred trials among this many records of agents. KiB_kept
// is the memory that the scheduler holds afterwards.
func BenchmarkOpen(b *testing.B) {
	for _, others := range []int{0, 10_000, 1_000_000} {
		b.Run(fmt.Sprint("others=", others), func(b *testing.B) {
			dir := b.TempDir() + "/data"
			i, _, err := installation.OpenOrCreate(b.Context(), installation.Config{Dir: dir})
			if err != nil {
				b.Fatal(err)
			}
			defer i.Close()
			c := schedule.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks(), Sit: (&bench{}).sit}
			d := open(b, c)
			run(b, d)
			for range 100 {
				submit(b, d)
			}
			for waiting := 1; waiting > 0; {
				list, _, err := d.Entries(b.Context(), "", 1, func(s *trial.Summary) bool { return !s.Over })
				if err != nil {
					b.Fatal(err)
				}
				waiting = len(list)
			}
			fill(b, dir+"/jurat.db", others)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var opened []*schedule.Scheduler
			for b.Loop() {
				opened = append(opened, open(b, c))
			}
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1024/float64(len(opened)), "KiB_kept")
			runtime.KeepAlive(opened)
		})
	}
}

// fill adds records that belong to no trial.
func fill(b *testing.B, path string, n int) {
	b.Helper()
	store, err := sqlite.Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	payload := make([]byte, 500)
	for n > 0 {
		part := min(n, 10_000)
		n -= part
		err := store.Append(context.Background(), func(head storage.Head, _ storage.Committed) (storage.Batch, error) {
			next := head.Size + int64(part)
			batch := storage.Batch{Next: storage.Head{Size: next}, Hashes: make([]tlog.Hash, tlog.StoredHashCount(next)-tlog.StoredHashCount(head.Size))}
			for k := range int64(part) {
				id := fmt.Sprintf("record-%d", head.Size+k)
				batch.Rows = append(batch.Rows, storage.Row{Index: head.Size + k, RecordID: id, Digest: evidence.DigestOf([]byte(id)), ChainID: fmt.Sprint("chain-", k/8),
					Counts: evidence.LogCounts{ChainSeq: k%8 + 1}, Payload: payload, Signatures: [][]byte{{1}}})
			}
			return batch, nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSubmit submits a trial to an idle scheduler, in an installation on disk, and waits until it is over. The
// jurors answer at once, so it measures the ledger and how soon a trial begins.
func BenchmarkSubmit(b *testing.B) {
	i, _, err := installation.OpenOrCreate(b.Context(), installation.Config{Dir: b.TempDir() + "/data"})
	if err != nil {
		b.Fatal(err)
	}
	defer i.Close()
	table := tableIn(b, filepath.Join(b.TempDir(), "work.db"))
	d := open(b, schedule.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks(), Table: table, Sit: (&bench{}).sit})
	stop := run(b, d)
	defer stop()
	var began time.Duration
	for b.Loop() {
		id := submit(b, d)
		events, err := d.Watch(b.Context(), id, 0)
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range events.Frames {
			if err != nil {
				b.Fatal(err)
			}
		}
		chain, err := i.Ledger.Chain(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		began += chain[1].Payload.Time().Sub(chain[0].Payload.Time())
	}
	b.ReportMetric(float64(began.Microseconds())/1000/float64(b.N), "ms_to_begin")
}
