package storetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

func archivedFile(from, to int64, name string) storage.Archived {
	return storage.Archived{From: from, To: to, File: name, Digest: evidence.DigestOf([]byte(name))}
}

func wantArchives(t *testing.T, s storage.Store, files ...storage.Archived) {
	t.Helper()
	got, err := s.Archives(t.Context())
	wantError(t, err, nil)
	if diff := cmp.Diff(files, got); diff != "" {
		t.Errorf("archives (-want +got):\n%s", diff)
	}
}

// archives registers files one after the other, and replaces one.
func archives(t *testing.T, s storage.Store) {
	const tile = storage.TileWidth
	var rows []storage.Row
	for n := range 2*tile + 10 {
		rows = append(rows, row(n))
	}
	wantError(t, s.Append(t.Context(), planOf(rows...)), nil)
	wantArchives(t, s)
	none := evidence.Digest{}
	first, second := archivedFile(0, tile, "first"), archivedFile(tile, 2*tile, "second")
	for name, bad := range map[string]storage.Archived{"a hole before it": second, "half a tile": archivedFile(0, 10, "x"), "nothing": archivedFile(0, 0, "x"),
		"beyond the head": archivedFile(0, 3*tile, "x"), "nameless": archivedFile(0, tile, ""), "backwards": archivedFile(tile, 0, "x")} {
		if err := s.PutArchive(t.Context(), none, bad); err == nil {
			t.Errorf("%s: noted", name)
		}
	}
	wantError(t, s.PutArchive(t.Context(), none, first), nil)
	wantError(t, s.PutArchive(t.Context(), none, first), storage.ErrConflict)
	wantError(t, s.PutArchive(t.Context(), none, archivedFile(0, tile, "other")), storage.ErrConflict)
	wantError(t, s.PutArchive(t.Context(), none, second), nil)
	wantArchives(t, s, first, second)

	next := archivedFile(tile, 2*tile, "third")
	next.Shed = true
	wantError(t, s.PutArchive(t.Context(), first.Digest, next), storage.ErrConflict)
	wantError(t, s.PutArchive(t.Context(), second.Digest, next), nil)
	wantError(t, s.PutArchive(t.Context(), second.Digest, next), storage.ErrConflict)
	wantArchives(t, s, first, next)
}

// sheds checks that rows lose what an archive has, that other rows lose nothing, and that later stamps stay.
func sheds(t *testing.T, s storage.Store) {
	const tile = storage.TileWidth
	var rows []storage.Row
	for n := range tile + 2 {
		rows = append(rows, row(n))
	}
	wantError(t, s.Append(t.Context(), planOf(rows...)), nil)
	wantError(t, s.Shed(t.Context(), []storage.Shedding{{Index: 1, Timestamps: 1}}), storage.ErrConflict) // it is in no archive
	wantError(t, s.PutArchive(t.Context(), evidence.Digest{}, archivedFile(0, tile, "a")), nil)
	wantError(t, s.Shed(t.Context(), []storage.Shedding{{Index: 1, Timestamps: 1}, {Index: tile, Timestamps: 1}}), storage.ErrConflict)
	whole, err := s.Rows(t.Context(), 1, 1)
	wantError(t, err, nil)
	if whole[0].HasShed() {
		t.Error("it has shed together with what must not")
	}

	// One time stamp comes between archiving and shedding, another after shedding.
	wantError(t, s.Append(t.Context(), planStamps(row(tile+2), late(1, "x"))), storage.ErrConflict) // it does not wait for a stamp
	before := storage.Stamp{Index: 1, Timestamp: evidence.Timestamp{Kind: evidence.RFC3161, Token: []byte("before")}}
	after := storage.Stamp{Index: 1, Timestamp: evidence.Timestamp{Kind: evidence.RFC4998, Token: []byte("after")}}
	wantError(t, s.Append(t.Context(), planStamps(row(tile+2), before)), nil)
	for range 2 { // the second call changes nothing
		wantError(t, s.Shed(t.Context(), []storage.Shedding{{Index: 1, Timestamps: 1}, {Index: 2, Timestamps: 1}}), nil)
	}
	wantError(t, s.Append(t.Context(), planStamps(row(tile+3), after)), nil)

	got, err := s.Rows(t.Context(), 0, tile+4)
	wantError(t, err, nil)
	for i, r := range got {
		shed := i == 1 || i == 2
		full := row(i)
		if r.HasShed() != shed || r.RecordID != full.RecordID || r.Digest != full.Digest || r.ChainID != full.ChainID || r.Case != full.Case || r.Counts != full.Counts {
			t.Errorf("row %d is %+v", i, r)
		}
		if shed && len(r.Signatures) != 0 {
			t.Errorf("row %d has kept its signatures", i)
		}
	}
	want(t, got[1].Timestamps, []evidence.Timestamp{before.Timestamp, after.Timestamp})
	if len(got[2].Timestamps) != 0 {
		t.Errorf("it has kept the time stamps %v", got[2].Timestamps)
	}
	byID, err := s.ByRecordID(t.Context(), row(1).RecordID)
	if err != nil || !byID.HasShed() || byID.Index != 1 {
		t.Errorf("by its id: %+v, %v", byID, err)
	}
	wantHead(t, s, tile+4)
	if r, ok := s.(storage.Reclaimer); ok {
		wantError(t, r.Reclaim(t.Context(), nil), nil)
		again, err := s.Rows(t.Context(), 0, tile+4)
		wantError(t, err, nil)
		want(t, again, got)
	}
}

// keepsWaiting checks that a row that waits for a time stamp does not shed.
func keepsWaiting(t *testing.T, s storage.Store) {
	var rows []storage.Row
	for n := range storage.TileWidth - 1 {
		rows = append(rows, row(n))
	}
	wantError(t, s.Append(t.Context(), planOf(rows...)), nil)
	wantError(t, s.Append(t.Context(), planWaiting(row(storage.TileWidth-1), since, "one")), nil)
	wantError(t, s.PutArchive(t.Context(), evidence.Digest{}, archivedFile(0, storage.TileWidth, "a")), nil)
	all := []storage.Shedding{{Index: 0, Timestamps: 1}, {Index: storage.TileWidth - 1, Timestamps: 1}}
	wantError(t, s.Shed(t.Context(), all), storage.ErrConflict)
	if first, err := s.Rows(t.Context(), 0, 1); err != nil || first[0].HasShed() {
		t.Errorf("half of it was done: %v", err)
	}
	wantError(t, s.Append(t.Context(), planStamps(row(storage.TileWidth), late(storage.TileWidth-1, "one"))), nil)
	wantError(t, s.Shed(t.Context(), all), nil)
	if err := s.Shed(t.Context(), []storage.Shedding{{Index: 5000}}); !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrConflict) {
		t.Errorf("a row that is not there has shed: %v", err)
	}
}
