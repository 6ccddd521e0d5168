package ledger_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/pgtest"
)

// Payloads of these benchmarks have 4 KiB.
var large = strings.Repeat("x", 4096-1024)

func largeAct() *evidence.Draft {
	return must(evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":"agent-7","request_id":"req-1","timestamp":"2000-01-01T00:00:00Z",
		"model":"m","model_version":"1","prompt":%q,"response":"You may.","parameters":{}}`, large)))
}

// BenchmarkSeal compares Seal with its unavoidable parts: a synced write and a commit of the database. The authority of
// these benchmarks takes no time.
func BenchmarkSeal(b *testing.B) {
	b.Run("write and fsync 4 KiB", benchmarkFile)
	b.Run("database commit 4 KiB", benchmarkCommit)
	b.Run("without the log", func(b *testing.B) {
		draft := largeAct()
		for b.Loop() {
			r := must(draft.Seal(evidence.Sealing{Signers: actor, RecordID: "01890000-0000-7000-8000-000000000001"}))
			r.LogEntry(evidence.LogCounts{})
		}
	})
	b.Run("one caller", func(b *testing.B) {
		l, draft := folder(b.TempDir()).create(b), largeAct()
		for b.Loop() {
			must(l.Seal(b.Context(), draft, actor))
		}
	})
	b.Run("64 callers", func(b *testing.B) {
		l, draft := folder(b.TempDir()).create(b), largeAct()
		b.SetParallelism(32) // times GOMAXPROCS
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				must(l.Seal(b.Context(), draft, actor))
			}
		})
	})
	b.Run("with proof", func(b *testing.B) {
		l, draft := folder(b.TempDir()).create(b), largeAct()
		for b.Loop() {
			must(l.ProveOne(b.Context(), must(l.Seal(b.Context(), draft, actor))))
		}
	})
}

func benchmarkFile(b *testing.B) {
	file := must(os.Create(filepath.Join(b.TempDir(), "file")))
	defer file.Close()
	page := make([]byte, 4096)
	for b.Loop() {
		if _, err := file.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkCommit(b *testing.B) {
	for _, pageSize := range []string{"4096", "8192"} {
		b.Run("pages of "+pageSize, func(b *testing.B) {
			db := must(sql.Open("sqlite", filepath.Join(b.TempDir(), "db")+
				"?_pragma=page_size("+pageSize+")&_journal_mode=WAL&_synchronous=FULL"))
			defer db.Close()
			db.SetMaxOpenConns(1)
			must(db.ExecContext(b.Context(), `CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB)`))
			insert := must(db.PrepareContext(b.Context(), `INSERT INTO t (data) VALUES (?)`))
			page := make([]byte, 4096)
			for b.Loop() {
				must(insert.ExecContext(b.Context(), page))
			}
		})
	}
}

// BenchmarkSealOnPostgres seals payloads of 2 KiB with a server on the same machine, which writes to the folder for
// temporary files. It measures one caller in turn with a commit of one row of 4 KiB, by medians. For many callers, the
// ratio is to the records that all cores make and sign without a log.
func BenchmarkSealOnPostgres(b *testing.B) {
	f := onPostgres(b, pgtest.Database(b))
	l := f.create(b)
	draft := must(evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":"agent-7","request_id":"req-1","timestamp":"2000-01-01T00:00:00Z",
		"model":"m","model_version":"1","prompt":%q,"response":"You may.","parameters":{}}`, large[:2048-300])))
	var record time.Duration
	b.Run("without a log, on all cores", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r := must(draft.Seal(evidence.Sealing{Signers: actor, RecordID: "01890000-0000-7000-8000-000000000001"}))
				r.LogEntry(evidence.LogCounts{})
			}
		})
		record = b.Elapsed() / time.Duration(b.N)
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	})
	b.Run("one caller", func(b *testing.B) {
		conn := must(pgxpool.New(b.Context(), must(f.url())))
		defer conn.Close()
		must(conn.Exec(b.Context(), `CREATE TABLE IF NOT EXISTS jurat.bare (id bigserial PRIMARY KEY, data bytea)`))
		page := make([]byte, 4096)
		var bare, sealing []time.Duration // in turn, as what disturbs the disk disturbs both
		for b.Loop() {
			begin := time.Now()
			must(conn.Exec(b.Context(), `INSERT INTO jurat.bare (data) VALUES ($1)`, page))
			between := time.Now()
			must(l.Seal(b.Context(), draft, actor))
			bare, sealing = append(bare, between.Sub(begin)), append(sealing, time.Since(between))
		}
		slices.Sort(bare)
		slices.Sort(sealing)
		commit, seal := bare[len(bare)/2], sealing[len(sealing)/2]
		b.ReportMetric(float64(commit.Microseconds()), "µs/bare-commit")
		b.ReportMetric(float64(seal.Microseconds()), "µs/record")
		b.ReportMetric(float64(seal)/float64(commit), "ratio")
	})
	three := []*ledger.Ledger{l, must(f.open(b)), must(f.open(b))}
	for _, callers := range []int{16, 64, 256} {
		for _, nodes := range [][]*ledger.Ledger{three[:1], three} {
			b.Run(fmt.Sprintf("%d callers, %d nodes", callers, len(nodes)), func(b *testing.B) {
				var next atomic.Int64
				b.SetParallelism(callers / runtime.GOMAXPROCS(0))
				b.RunParallel(func(pb *testing.PB) {
					node := nodes[int(next.Add(1))%len(nodes)]
					for pb.Next() {
						must(node.Seal(b.Context(), draft, actor))
					}
				})
				took := float64(b.Elapsed()) / float64(b.N)
				b.ReportMetric(float64(time.Second)/took, "records/s")
				b.ReportMetric(float64(record)/took, "of-signing")
			})
		}
	}
}

func BenchmarkFsck(b *testing.B) {
	f := folder(b.TempDir())
	l, draft := f.create(b), largeAct()
	for range 1000 {
		must(l.Seal(b.Context(), draft, actor))
	}
	l.Close()
	for b.Loop() {
		wantClean(b, f.fsck(b))
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/record")
}
