//go:build unix

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/log/installation"
	"jurat/internal/test/must"
)

// BenchmarkRoom measures how much of the disk a record takes, how long it takes to prove one alone, and to expire the
// older half, in a log of as many records as BenchmarkAppend has. Each record has 2 KiB of English, a P-256 signature and
// a token of the built-in authority of its own.
func BenchmarkRoom(b *testing.B) {
	n := logSize(b)
	english := documents(b)
	now := time.Now()
	h := open(b, longAgo(b, n/2, english))
	fillWith(b, h, n-n/2, english, now)
	size := h.database(b)
	var proving timings
	for b.Loop() {
		proving.took(b, func(ctx context.Context) error {
			rows, err := h.Ledger.RowsFrom(ctx, rand.Int64N(n), 1) //nolint:gosec // any
			if err != nil {
				return err
			}
			record, err := rows[0].Record()
			if err == nil {
				_, err = h.Ledger.Prove(ctx, record)
			}
			return err
		})
	}
	of(b, "bytes/record", size/float64(n), 2048)
	b.ReportMetric(proving.median()/1000, "ms/proof")
	begin := time.Now()
	done := must.Get(h.Expire(b.Context(), installation.ExpiryOrder{Before: now.AddDate(0, -7, 0), Reason: "old", By: "b"}))(b)
	b.ReportMetric(microseconds(time.Since(begin))/float64(done.Records), "µs/expired")
	b.ReportMetric(h.database(b)/size, "left-of-file")
	must.Need(b, done.Records >= n/2-10, "%+v", done)
}

// documents are English texts.
func documents(b *testing.B) string {
	b.Helper()
	files, err := filepath.Glob("../../../docs/*.md")
	must.Need(b, err == nil && len(files) != 0, "%v %v", files, err)
	var all strings.Builder
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(b)
		all.Write(text)
	}
	return all.String()
}

// longAgo makes an installation whose records were sealed a year ago.
func longAgo(b *testing.B, n int64, english string) installation.Config {
	b.Helper()
	then := time.Now().AddDate(-1, 0, 0)
	config := installation.Config{Dir: filepath.Join(b.TempDir(), "data")}
	past := config
	past.Now = func() time.Time { return then }
	must.Do(b, installation.Create(b.Context(), past))
	h := open(b, past)
	fillWith(b, h, n, english, then)
	must.Do(b, h.close())
	return config
}

// fillWith seals records of 2 KiB of a text. A hundred are in each chain.
func fillWith(b *testing.B, h *house, n int64, english string, at time.Time) {
	b.Helper()
	var next atomic.Int64
	times(b, n, 256, func(ctx context.Context) error {
		i := next.Add(1)
		from := rand.IntN(len(english) - 2048) //nolint:gosec // texts
		text := strings.ToValidUTF8(english[from:from+2048], "?")
		d, err := evidence.ParseDraft(fmt.Appendf(nil, `{"agent_id":%q,"request_id":"req-%d","timestamp":%q,"model":"m","model_version":"1","parameters":{"temperature":0.5},"prompt":"May I?","response":%s}`,
			agent, i, evidence.FormatTime(at), quoted(text)))
		if err == nil {
			_, err = h.Ledger.Seal(ctx, d, h.signers)
		}
		return err
	})
}

// database returns the size of the database, with nothing left in its write-ahead log.
func (h *house) database(b *testing.B) (bytes float64) {
	b.Helper()
	must.Do(b, h.Ledger.Expiry().Reclaim(b.Context(), nil))
	for _, end := range []string{"", "-wal"} {
		info := must.Get(os.Stat(filepath.Join(h.Dir, installation.DatabaseFile+end)))(b)
		bytes += float64(info.Size())
	}
	return bytes
}

// quoted is a text as JSON.
func quoted(text string) []byte {
	doc, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text is valid UTF-8 here
	}
	return doc
}
