package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// TestWriteAheadLogIsMoved checks that committed pages get into the database file without a commit having to move
// them, so that a copy of that file alone has them.
func TestWriteAheadLogIsMoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	before := fileSize(t, path)
	for n := range 12 { // of a megabyte each
		if err := add(t, s, fmt.Sprintf("record-%d", n), 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); fileSize(t, path) < before+movedAt/2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the file has %d bytes", fileSize(t, path))
		}
	}
	if size := fileSize(t, path+"-wal"); size > (movedByCommit+1000)*pageSize {
		t.Errorf("the write-ahead log has %d bytes", size)
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestByDigestInEveryStretch finds records in the first, a middle and the last stretch of the digest index.
func TestByDigestInEveryStretch(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	const n = 3*2048 + 5
	if err := addMany(t, s, n); err != nil {
		t.Fatal(err)
	}
	for _, index := range []int64{0, 1, 2047, 2048, 4095, 4096, 6143, 6144, n - 1} {
		rows, err := s.Rows(t.Context(), index, 1)
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		row, err := s.ByDigest(t.Context(), rows[0].Digest)
		if err != nil || row.Index != index || row.RecordID != rows[0].RecordID {
			t.Errorf("%d is found at %d, %v", index, row.Index, err)
		}
		other := rows[0].Digest
		other[31] ^= 1 // what the index has of it is the same
		if row, err := s.ByDigest(t.Context(), other); err == nil {
			t.Errorf("another digest is found at %d", row.Index)
		}
	}
}

// addMany appends n records at once, with empty hashes.
func addMany(t *testing.T, s *Store, n int64) error {
	return s.Append(t.Context(), func(storage.Head, storage.Committed) (storage.Batch, error) {
		batch := storage.Batch{Hashes: make([]tlog.Hash, tlog.StoredHashCount(n)), Next: storage.Head{Size: n}}
		for i := range n {
			payload := fmt.Appendf(nil, "payload %d", i)
			batch.Rows = append(batch.Rows, storage.Row{Index: i, RecordID: fmt.Sprintf("record-%d", i), Digest: evidence.DigestOf(payload), Payload: payload})
		}
		return batch, nil
	})
}
