package installation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/pgtest"
)

// BenchmarkMachines: callers on one, two and three machines with one database seal at once, each with its agent's key,
// as in a server: payloads of 2 KiB, a P-256 signature and a token of the built-in authority.
func BenchmarkMachines(b *testing.B) {
	for _, count := range []int{1, 2, 3} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			key := filepath.Join(b.TempDir(), "wrapping.key")
			if err := os.WriteFile(key, filestore.Generate(), 0o600); err != nil {
				b.Fatal(err)
			}
			c := Config{DB: pgtest.Database(b), WrappingKey: key}
			var machines []*Installation
			for range count {
				c.Dir = b.TempDir()
				i, _, err := OpenOrCreate(b.Context(), c)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { i.Close() })
				machines = append(machines, i)
			}
			draft := benchDraft(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var all sync.WaitGroup
			for n := range 64 * count {
				i := machines[n%count]
				all.Go(func() {
					for left.Add(-1) >= 0 {
						if err := sealOnce(b, i, draft); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func sealOnce(b *testing.B, i *Installation, draft *evidence.Draft) error {
	signers, err := i.Keys.Signers(b.Context(), draft.Role(), draft.Actor())
	if err != nil {
		return err
	}
	_, err = i.Ledger.Seal(b.Context(), draft, signers)
	return err
}

func benchDraft(b *testing.B) *evidence.Draft {
	b.Helper()
	const frame = `{"agent_id":"agent-7","request_id":"req-1","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1","parameters":{"temperature":0.5},` +
		`"prompt":"May I send the parcel?","response":%q}`
	draft, err := evidence.ParseDraft(fmt.Appendf(nil, frame, strings.Repeat("It is 17 km away. ", 91)))
	if err != nil {
		b.Fatal(err)
	}
	return draft
}
