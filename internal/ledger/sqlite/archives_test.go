package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// TestReclaim lets rows shed and checks that the file shrinks.
func TestReclaim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := create(t, path)
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const n = 2 * storage.TileWidth
	for i := head.Size; i < n; i++ {
		if err := add(t, s, string(rune('a'+i/64))+string(rune('a'+i%64)), 20_000); err != nil {
			t.Fatal(err)
		}
	}
	file := storage.Archived{From: 0, To: n, File: "f", Digest: evidence.DigestOf(nil)}
	if err := s.PutArchive(t.Context(), evidence.Digest{}, file); err != nil {
		t.Fatal(err)
	}
	var all []storage.Shedding
	for i := range int64(n) {
		all = append(all, storage.Shedding{Index: i, Timestamps: 2})
	}
	if err := s.Shed(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	told := 0
	if err := s.Reclaim(t.Context(), func(done, total int64) { told++ }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 1<<20 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	if mode, err := s.pragma(t.Context(), "auto_vacuum"); err != nil || mode != 2 {
		t.Errorf("auto_vacuum is %d, %v", mode, err)
	}
	if complaints, err := s.Check(t.Context()); err != nil || len(complaints) > 0 {
		t.Errorf("%v, %v", complaints, err)
	}
}

// TestArchivesAreAppendOnly tries statements that the triggers must refuse.
func TestArchivesAreAppendOnly(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	for i := range storage.TileWidth + 1 {
		if err := add(t, s, string(rune('a'+i/64))+string(rune('a'+i%64)), 10); err != nil {
			t.Fatal(err)
		}
	}
	file := storage.Archived{From: 0, To: storage.TileWidth, File: "f", Digest: evidence.DigestOf(nil)}
	if err := s.PutArchive(t.Context(), evidence.Digest{}, file); err != nil {
		t.Fatal(err)
	}
	for _, index := range []int64{1, 256} {
		if _, err := s.writer.ExecContext(t.Context(), `INSERT INTO timestamps VALUES (?, 2, 'rfc3161', x'01')`, index); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		`DELETE FROM archives`,
		`UPDATE archives SET past = past + 256`,
		`INSERT INTO archives VALUES (512, 768, 'g', zeroblob(32), 0)`,
		`UPDATE records SET packed = x'' WHERE idx = 1`,
		`UPDATE records SET stamps = 0 WHERE idx = 1`,
		`INSERT INTO shedding SELECT idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, 1 FROM records WHERE idx = 256`,
		`DELETE FROM timestamps WHERE idx = 1`,
		`DELETE FROM records WHERE idx = 1`,
		`DELETE FROM timestamps WHERE idx = 256`,
		`UPDATE timestamps SET token = x'' WHERE idx = 1`,
	} {
		if _, err := s.writer.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s: done", statement)
		}
	}
}
