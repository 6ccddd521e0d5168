package ledger_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/evidence"
)

// Payloads of these benchmarks have 4 KiB.
var large = strings.Repeat("x", 4096-1024)

func largeAct() *evidence.Draft {
	return must(evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":"agent-7","request_id":"req-1","timestamp":"2026-01-31T16:15:00Z",
		"model":"m","model_version":"1","prompt":%q,"response":"You may.","parameters":{}}`, large)))
}

// BenchmarkSeal stands beside what no ledger can do without: a synced write, and a commit of the database. The
// authority of these benchmarks costs nothing.
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
			must(l.Seal(b.Context(), draft, actor, nil))
		}
	})
	b.Run("64 callers", func(b *testing.B) {
		l, draft := folder(b.TempDir()).create(b), largeAct()
		b.SetParallelism(32) // times GOMAXPROCS
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				must(l.Seal(b.Context(), draft, actor, nil))
			}
		})
	})
	b.Run("with proof", func(b *testing.B) {
		l, draft := folder(b.TempDir()).create(b), largeAct()
		for b.Loop() {
			must(l.ProveOne(b.Context(), must(l.Seal(b.Context(), draft, actor, nil))))
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

func BenchmarkFsck(b *testing.B) {
	f := folder(b.TempDir())
	l, draft := f.create(b), largeAct()
	for range 1000 {
		must(l.Seal(b.Context(), draft, actor, nil))
	}
	l.Close()
	for b.Loop() {
		wantClean(b, f.fsck(b))
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/record")
}
