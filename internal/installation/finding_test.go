package installation_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"jurat/internal/find"
	"jurat/internal/installation"
)

// hits returns how many records have a text.
func hits(t *testing.T, x *find.Index, text string) int {
	t.Helper()
	succeeds(t, x.Follow(t.Context(), nil))
	found := must(x.Records(t.Context(), &find.Records{Text: find.Fold(text)}, find.Scope{All: true}, nil))
	return len(found.Hits)
}

// TestExpiredLeavesTheIndex: what expired is found no more, and no byte of its id or pieces is left in the file; what was sealed
// apart was never there.
func TestExpiredLeavesTheIndex(t *testing.T) {
	c, i, _, _, apart := aYearAgo(t)
	sealMany(t, i, 4096) // with which the first stretch is full
	path := filepath.Join(c.Dir, "find.db")
	x := must(find.Open(t.Context(), i.Ledger, path))
	defer x.Close()
	var early []string // ids
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if early = append(early, r.Payload.RecordID); len(early) == old+3 {
			break
		}
	}
	inFile(t, x, path, early, 2, 1)
	if found, err := x.Records(t.Context(), &find.Records{Record: apart.Payload.RecordID}, find.Scope{All: true}, nil); err != nil || len(found.Hits) != 1 {
		t.Errorf("the record with what is sealed apart: %v, %v", found, err)
	}
	expire(t, i, "c-1")
	inFile(t, x, path, early, 1, 1)
	expire(t, i)
	inFile(t, x, path, early, 0, 0)
}

func expire(t *testing.T, i *installation.Installation, except ...string) {
	t.Helper()
	o := expireOrder()
	o.Except = except
	if done, err := i.Expirer.Expire(t.Context(), o); err != nil || done.Records == 0 {
		t.Fatal(done, err)
	}
}

// inFile compares how many records are found with a text that only the first records have, and how many stretches of the
// file have a piece of it. An id that the index has no more is nowhere in the file.
func inFile(t *testing.T, x *find.Index, path string, early []string, found, pieces int) {
	t.Helper()
	if n := hits(t, x, "of Anna"); n != found {
		t.Errorf("%d records are found, want %d", n, found)
	}
	db := must(sql.Open("sqlite", path))
	defer db.Close()
	n := 0
	if err := db.QueryRow("SELECT count(*) FROM pieces WHERE piece = ?", int64('a')<<42|int64('n')<<21|int64('n')).Scan(&n); err != nil || n != pieces {
		t.Errorf("%d stretches have the piece, %v; want %d", n, err, pieces)
	}
	if err := db.QueryRow("SELECT count(*) FROM blocks WHERE piece = ?", int64('a')<<42|int64('n')<<21|int64('n')).Scan(&n); err != nil || n != min(pieces, 1) {
		t.Errorf("%d blocks have the piece, %v; want %d", n, err, min(pieces, 1))
	}
	var doc []byte
	for _, end := range []string{"", "-wal"} {
		part := must(os.ReadFile(path + end))
		doc = append(doc, part...)
	}
	left := 0
	for _, id := range early {
		there := 0
		succeeds(t, db.QueryRow("SELECT count(*) FROM records WHERE id = ?", id).Scan(&there))
		if there == 0 && bytes.Contains(doc, []byte(id)) {
			left++
		}
	}
	if left > 0 {
		t.Errorf("the file still has %d ids of records that the index has no more", left)
	}
}
