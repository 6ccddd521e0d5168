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

// TestNothingIsLeftOfWhatWasShed checks that no byte of shed texts remains in the database's files. It also checks
// that texts in free pages of an earlier program's file are removed.
func TestNothingIsLeftOfWhatWasShed(t *testing.T) {
	const n, mark, kept = 2 * storage.TileWidth, "Take the A9 ", "kept text"
	for _, earlier := range []bool{false, true} {
		t.Run(fmt.Sprintf("earlier=%v", earlier), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log.db")
			s := create(t, path)
			if earlier { // this version did not overwrite what it deleted
				if err := s.exec(`PRAGMA secure_delete = OFF`); err != nil {
					t.Fatal(err)
				}
			}
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
			if earlier {
				if _, err := s.writer.ExecContext(t.Context(), `PRAGMA incremental_vacuum(1); DROP TABLE briefs; DROP TABLE links; DROP TRIGGER head_counted; DROP TABLE tags; UPDATE meta SET value = '5' WHERE name = 'schema'`); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if len(left(t, path, mark)) == 0 {
					t.Fatal("no text remained, so this test tests nothing")
				}
				s = create(t, path)
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
		})
	}
}
