//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"jurat/evidence"
	"jurat/internal/court/schedule"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/test/must"
	"jurat/internal/web/docket"
	"jurat/internal/web/find"
)

// vocabulary is what agents say, in three scripts.
var vocabulary = strings.Fields(`invoice parcel refund transfer approved customer address route delayed warehouse tomorrow please confirm deliver the of and to
	перевод одобрен возврат клиент адрес маршрут склад завтра подтвердите доставка 返金 配送 住所 確認 倉庫 明日 経路 送金 承認 遅延`)

// said returns what the agent says in its record number i. Each hundredth names a number of its own.
func said(i int64) (*evidence.Draft, error) {
	r := rand.New(rand.NewPCG(uint64(i), 7)) //nolint:gosec // texts
	var text strings.Builder
	if i%100 == 0 {
		fmt.Fprintf(&text, "reference %07d. ", i)
	}
	for text.Len() < 1700 {
		text.WriteString(vocabulary[r.IntN(len(vocabulary))] + " ")
	}
	return evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":%q,"request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1","parameters":{},"prompt":"May I?","response":%q}`, agent, text.String()))
}

// roomOf returns the size of a database whose write-ahead log is empty.
func roomOf(b *testing.B, file string) float64 {
	b.Helper()
	db, err := sqlite.OpenFile(file)
	if err == nil {
		_, err = db.ExecContext(b.Context(), "PRAGMA wal_checkpoint(TRUNCATE)")
		err = errors.Join(err, db.Close())
	}
	info, statErr := os.Stat(file)
	err = errors.Join(err, statErr)
	must.Do(b, err)
	return float64(info.Size())
}

// BenchmarkFind searches a log of as many records as BenchmarkAppend has. The limit of a search is reading as many records by their places as it found.
func BenchmarkFind(b *testing.B) {
	h := furnish(b)
	n := logSize(b)
	var next atomic.Int64
	times(b, n, 512, func(ctx context.Context) error {
		d, err := said(next.Add(1))
		if err == nil {
			_, err = h.Ledger.Seal(ctx, d, h.signers)
		}
		return err
	})
	file := filepath.Join(h.Dir, "find.db")
	keeper := &docket.Keeper{Ledger: h.Ledger, Path: file}
	var indexing timings
	indexing.took(b, func(ctx context.Context) error {
		x, err := keeper.Open(ctx)
		if err != nil {
			return err
		}
		return x.Follow(ctx, nil)
	})
	room := roomOf(b, file)
	b.Cleanup(func() {
		must.Want(b, keeper.Close(), nil)
	})
	held := must.Get(schedule.Open(b.Context(), schedule.Config{Ledger: h.Ledger, Keys: h.Keys, Locks: h.Locks, Sit: func(*subject.Case, int64) trial.Config { return deliberating() }}))(b)
	trials := must.Get(held.Trials(b.Context()))(b)
	trusted := must.Get(h.Trust(b.Context()))(b)
	reader := docket.Reader{Scope: find.Scope{All: true}}
	for _, q := range []struct {
		name string
		text func(i int) string
	}{
		{"one", func(i int) string { return fmt.Sprintf("reference %07d", 100*(1+int64(i*31)%(n/100))) }},
		{"many", func(i int) string {
			return vocabulary[i%len(vocabulary)] + " " + vocabulary[(i*7+1)%len(vocabulary)]
		}},
		{"japanese", func(i int) string { return []string{"返金", "配送", "住所"}[i%3] }},
		{"none", func(i int) string { return fmt.Sprintf("zebra crossing %d", i) }},
	} {
		b.Run(q.name, func(b *testing.B) {
			var search, read timings
			for i := 0; b.Loop(); i++ {
				found := 0
				search.took(b, func(ctx context.Context) error {
					values := map[string]string{"text": q.text(i), "limit": "20"}
					list, err := keeper.Records(ctx, func(name string) string { return values[name] }, trials, &reader, trusted)
					found = len(list.Hits)
					return err
				})
				if (found == 0) != (q.name == "none") && q.name != "many" {
					b.Fatalf("%d hits of %q", found, q.text(i))
				}
				read.took(b, func(ctx context.Context) error {
					for j := range max(found, 1) {
						rows, err := h.Ledger.RowsFrom(ctx, (int64(i)*7919+int64(j)*104729)%n, 1)
						if err == nil {
							_, err = rows[0].Record()
						}
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			of(b, "µs/search", search.median(), read.median())
			b.ReportMetric(float64(n)/indexing[0].Seconds(), "indexed/s")
			b.ReportMetric(room/float64(n), "B/record")
		})
	}
}
