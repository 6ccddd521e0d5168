package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/internal/pgtest"
)

// BenchmarkAppend appends batches of records with payloads of 2 KiB, one signature and one time stamp, and compares with
// the commit of one row of 4 KiB. The hashes are random.
func BenchmarkAppend(b *testing.B) {
	url := pgtest.Database(b)
	s := create(b, url)
	b.Run("commit of 4 KiB alone", func(b *testing.B) {
		pool := connect(b, url)
		if _, err := pool.Exec(b.Context(), `CREATE TABLE jurat.bare (id bigserial PRIMARY KEY, data bytea)`); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { pool.Exec(b.Context(), `DROP TABLE jurat.bare`) })
		page := make([]byte, 4096)
		for b.Loop() {
			if _, err := pool.Exec(b.Context(), `INSERT INTO jurat.bare (data) VALUES ($1)`, page); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Cleanup(func() {
		var bytes, records float64
		err := s.pool.QueryRow(context.Background(), `SELECT sum(pg_total_relation_size(c.oid)), (SELECT count(*) FROM jurat.records)
			FROM pg_class c WHERE c.oid IN ('jurat.records'::regclass, 'jurat.timestamps'::regclass, 'jurat.waiting'::regclass)`).Scan(&bytes, &records)
		if err != nil {
			b.Error(err)
		}
		b.Logf("%.0f bytes on disk for each of %.0f records, of which 2048 are its payload, 550 its token and 71 its signature", bytes/records, records)
	})
	n := 0
	for _, size := range []int{1, 16, 128, 512} {
		b.Run(fmt.Sprintf("%d records", size), func(b *testing.B) {
			for b.Loop() {
				err := s.Append(b.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
					batch := storage.Batch{Next: storage.Head{Size: head.Size + int64(size)}}
					var q storage.Query
					for i := range int64(size) {
						n++
						payload := text(2048)
						row := storage.Row{Index: head.Size + i, RecordID: fmt.Sprintf("01890000-0000-7000-8000-%012d", n), Digest: evidence.DigestOf(payload),
							ChainID: fmt.Sprint("chain ", n/10), Counts: evidence.LogCounts{ChainSeq: int64(n%10) + 1}, Payload: payload,
							Signatures: [][]byte{make([]byte, 71)}, Timestamps: []evidence.Timestamp{{Kind: evidence.RFC3161, Token: make([]byte, 550)}}}
						batch.Rows = append(batch.Rows, row)
						q.RecordIDs = append(q.RecordIDs, row.RecordID)
						batch.Hashes = append(batch.Hashes, make([]tlog.Hash, completes(row.Index))...)
					}
					_, err := log.Find(q)
					return batch, err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// text returns text that compresses about as well as prose.
func text(n int) []byte {
	words := bytes.Repeat([]byte("the agent answers that it may, "), n/31+1)[:n]
	random := make([]byte, n/2)
	rand.Read(random)
	for i, c := range random {
		words[2*i] = 'a' + c%26
	}
	return words
}
