package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// says appends one record whose payload is this text.
func says(t *testing.T, s *Store, id, text string) {
	t.Helper()
	err := s.Append(t.Context(), func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
		stored, err := tlog.StoredHashesForRecordHash(head.Size, tlog.RecordHash([]byte(text)), hashes)
		return storage.Batch{Rows: []storage.Row{{Index: head.Size, RecordID: id, Digest: evidence.DigestOf([]byte(text)), Payload: []byte(text),
			Signatures: [][]byte{{1}}, Timestamps: []evidence.Timestamp{{Kind: evidence.RFC3161, Token: []byte{1}}}}}, Hashes: stored, Next: storage.Head{Size: head.Size + 1}}, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// left counts the remains of deleted texts in the database, its write-ahead log, and other files beside it.
func left(t *testing.T, path, mark string) map[string]int {
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
		if n := bytes.Count(content, []byte(mark)); n > 0 {
			found[filepath.Base(file)] = n
		}
	}
	return found
}

// TestNothingIsLeftOfWhatWasShed checks that no byte of shed texts remains in the database's files.
func TestNothingIsLeftOfWhatWasShed(t *testing.T) {
	const n, mark, kept = 2 * storage.TileWidth, "Take the A9 ", "kept text"
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		says(t, s, fmt.Sprint(i), fmt.Sprint(i)+strings.Repeat(mark, 1+random.IntN([]int{3, 60, 800, 3000}[random.IntN(4)])))
	}
	says(t, s, kept, kept)
	if len(left(t, path, mark)) == 0 {
		t.Fatal("the search does not find texts that are there")
	}
	if err := s.PutArchive(t.Context(), evidence.Digest{}, storage.Archived{From: 0, To: n, File: "f", Digest: evidence.DigestOf(nil)}); err != nil {
		t.Fatal(err)
	}
	for _, tile := range []int64{0, storage.TileWidth} {
		var all []storage.Shedding
		for i := range int64(storage.TileWidth) {
			all = append(all, storage.Shedding{Index: tile + i, Timestamps: 1})
		}
		if err := s.Shed(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a second run finds nothing to do
		if err := s.Reclaim(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if found := left(t, path, mark); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
	if len(left(t, path, kept)) == 0 {
		t.Error("a row that was not shed is missing")
	}
	if complaints, err := s.Check(t.Context()); err != nil || len(complaints) > 0 {
		t.Errorf("%v, %v", complaints, err)
	}
}
