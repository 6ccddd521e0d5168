package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/internal/must"
)

// says appends one record whose payload is this text.
func says(t *testing.T, s *Store, id, text string) {
	t.Helper()
	err := s.Append(t.Context(), func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
		stored, err := tlog.StoredHashesForRecordHash(head.Size, tlog.RecordHash([]byte(text)), hashes)
		token := evidence.DigestOf([]byte("stamp of " + text))
		return storage.Batch{Rows: []storage.Row{{Index: head.Size, RecordID: id, Digest: evidence.DigestOf([]byte(text)), Payload: []byte(text),
			Signatures: [][]byte{{1}}, Timestamps: []evidence.Timestamp{{Kind: evidence.RFC3161, Token: token[:]}}}}, Hashes: stored, Next: storage.Head{Size: head.Size + 1}}, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// marks are bytes of what the rows are stored as, which is compressed.
func marks(t *testing.T, s *Store, from, n int64) (list [][]byte) {
	t.Helper()
	rows, err := s.Rows(t.Context(), from, n)
	if err != nil || int64(len(rows)) != n {
		t.Fatal(len(rows), err)
	}
	for i, r := range rows {
		if i%23 != 0 {
			continue // the search takes long
		}
		b := r.Packed.Blob
		list = append(list, b[len(b)/2-8:len(b)/2+8], b[len(b)-16:])
	}
	return list
}

// left counts the remains of deleted rows in the database, its write-ahead log, and other files beside it.
func left(t *testing.T, path string, marks [][]byte) map[string]int {
	t.Helper()
	found := map[string]int{}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, mark := range marks {
			found[filepath.Base(file)] += bytes.Count(content, mark)
		}
	}
	maps.DeleteFunc(found, func(_ string, n int) bool { return n == 0 })
	return found
}

// noise is a text that cannot be compressed much.
func noise(random *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return string(b)
}

// TestNothingIsLeftOfWhatExpired checks that no byte of expired rows remains in the database's files.
func TestNothingIsLeftOfWhatExpired(t *testing.T) {
	const n, kept = 512, "kept text, which is long enough to be found"
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		says(t, s, fmt.Sprint(i), noise(random, 20+random.IntN([]int{50, 700, 10_000, 40_000}[random.IntN(4)])))
	}
	says(t, s, kept, kept)
	gone, stay := marks(t, s, 0, n), marks(t, s, n, 1)
	if len(left(t, path, gone)) == 0 {
		t.Fatal("the search does not find texts that are there")
	}
	for from := int64(0); from < n; from += 128 {
		rows := must.Get(s.Rows(t.Context(), from, 128))(t)
		indexes := make([]int64, len(rows))
		briefs := make([]storage.StoredBrief, len(rows))
		for i := range rows {
			indexes[i], briefs[i] = rows[i].Index, storage.StoredBrief{Index: rows[i].Index, Line: []byte("{}")}
			rows[i].Entry, rows[i].ExpiredBy, rows[i].Packed = []byte("entry"), "act", storage.Packed{}
		}
		must.Do(t, s.PutExpiring(t.Context(), "act", indexes))
		must.Do(t, s.Expire(t.Context(), "act", rows, briefs))
	}
	for range 2 { // a second run finds nothing to do
		must.Do(t, s.Reclaim(t.Context(), nil))
	}
	if found := left(t, path, gone); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
	if len(left(t, path, stay)) == 0 {
		t.Error("a row that did not expire is missing")
	}
	if complaints, err := s.Check(t.Context()); err != nil || len(complaints) > 0 {
		t.Errorf("%v, %v", complaints, err)
	}
}

// TestWriteAheadLogIsMoved checks that committed pages get into the database file without a commit having to move
// them, so that a copy of that file alone has them.
func TestWriteAheadLogIsMoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	before := fileSize(t, path)
	for n := range 12 { // of a megabyte each
		must.Do(t, add(t, s, fmt.Sprintf("record-%d", n), 1<<20))
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
	info := must.Get(os.Stat(path))(t)
	return info.Size()
}

// TestByDigestInEveryStretch finds records in the first, a middle and the last stretch of the digest index.
func TestByDigestInEveryStretch(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	const n = 3*2048 + 5
	must.Do(t, addMany(t, s, n))
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
