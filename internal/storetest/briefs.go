package storetest

import (
	"fmt"
	"testing"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// withBriefs appends n rows with a brief each. Each brief has one key of its own, and one that it shares with every
// third row.
func withBriefs(t *testing.T, s storage.Store, n int) []storage.StoredBrief {
	t.Helper()
	var rows []storage.Row
	var briefs []storage.StoredBrief
	for i := range n {
		r := row(i)
		rows = append(rows, r)
		keys := []int64{int64(i) - 1<<62, int64(i % 3)}
		briefs = append(briefs, storage.StoredBrief{Index: int64(i), RecordID: r.RecordID, Digest: r.Digest, ChainID: r.ChainID, Case: r.Case,
			Line: fmt.Appendf(nil, `{"actor":"ünï %d"}`, i), Names: []byte{byte(i), 0, 255}, Keys: keys})
	}
	wantError(t, s.Append(t.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := planOf(rows...)(head, log)
		batch.Briefs = briefs
		return batch, err
	}), nil)
	return briefs
}

// asRead returns a brief as a query returns it, with or without names.
func asRead(b storage.StoredBrief, names bool) storage.StoredBrief {
	b.Keys = nil
	if !names {
		b.Names = nil
	}
	return b
}

func wantBriefs(t *testing.T, s storage.Store, q storage.BriefQuery, list ...storage.StoredBrief) {
	t.Helper()
	var read []storage.StoredBrief
	for _, b := range list {
		read = append(read, asRead(b, q.Names))
	}
	gives(t, read)(s.Briefs(t.Context(), q))
}

func wantPlaces(t *testing.T, s storage.Store, q storage.Lookup, places ...int64) {
	t.Helper()
	gives(t, places)(s.Places(t.Context(), q))
}

// briefs lists briefs by place, by chain and by index, and looks up records by what they are named by.
func briefs(t *testing.T, s storage.Store) {
	wantBriefs(t, s, storage.BriefQuery{N: 5})
	wantPlaces(t, s, storage.Lookup{Keys: []int64{1}, Most: 5})
	b := withBriefs(t, s, 7)
	wantBriefs(t, s, storage.BriefQuery{From: 2, N: 2}, b[2], b[3])
	wantBriefs(t, s, storage.BriefQuery{From: 5, N: 10, Names: true}, b[5], b[6])
	wantBriefs(t, s, storage.BriefQuery{Chain: "odd", From: 2, N: 2}, b[3], b[5])
	wantBriefs(t, s, storage.BriefQuery{Chain: "none", N: 2})
	wantBriefs(t, s, storage.BriefQuery{At: []int64{6, 0, 6, 99}, Names: true}, b[0], b[6])
	wantBriefs(t, s, storage.BriefQuery{At: []int64{}})
	rows, err := s.RowsAt(t.Context(), []int64{5, 1, 50})
	wantError(t, err, nil)
	if len(rows) != 2 || rows[0].Index != 1 || string(rows[1].Payload) != string(row(5).Payload) || len(rows[1].Timestamps) != 1 {
		t.Errorf("RowsAt = %+v", rows)
	}

	wantPlaces(t, s, storage.Lookup{Keys: []int64{1}, Most: 9}, 1, 4)
	wantPlaces(t, s, storage.Lookup{Keys: []int64{0, 4 - 1<<62, 99}, Most: 9}, 0, 3, 4, 6)
	wantPlaces(t, s, storage.Lookup{Keys: []int64{0}, Most: 2}, 0, 3)
	wantPlaces(t, s, storage.Lookup{RecordIDs: []string{"record-5", "none"}, Digests: []evidence.Digest{b[2].Digest, {}}, Keys: []int64{2}, Most: 9}, 2, 5)
	gives(t, []storage.BriefKey{{Index: 3, Key: 3 - 1<<62}, {Index: 3, Key: 0}, {Index: 4, Key: 4 - 1<<62}, {Index: 4, Key: 1}})(s.BriefKeys(t.Context(), 3, 2))
}

// briefsLater adds briefs after their rows, and replaces some with their keys, and no others.
func briefsLater(t *testing.T, s storage.Store) {
	b := withBriefs(t, s, 3)
	var rest []storage.Row
	for n := 3; n < 9; n++ {
		rest = append(rest, row(n))
	}
	wantError(t, s.Append(t.Context(), planOf(rest...)), nil)
	replaced := func(n int64) {
		t.Helper()
		gives(t, n)(s.Replaced(t.Context()))
	}
	replaced(0)
	put := func(i int64, key int64) storage.StoredBrief {
		r := row(int(i))
		return storage.StoredBrief{Index: i, RecordID: r.RecordID, Digest: r.Digest, ChainID: r.ChainID, Case: r.Case, Line: []byte(`{}`), Names: []byte{}, Keys: []int64{key}}
	}
	bare := func(i int64) storage.StoredBrief {
		b := put(i, 0)
		b.Line = nil
		return b
	}
	one, five, seven := put(1, 10), put(5, 50), put(7, 70)
	wantError(t, s.PutBriefs(t.Context(), storage.Range{From: 4, To: 8}, []storage.StoredBrief{five, seven}), nil)
	wantBriefs(t, s, storage.BriefQuery{From: 4, N: 4}, bare(4), five, bare(6), seven)
	wantPlaces(t, s, storage.Lookup{Keys: []int64{70}, Most: 9}, 7)
	wantError(t, s.PutBriefs(t.Context(), storage.Range{From: 1, To: 6}, []storage.StoredBrief{one}), nil)
	wantPlaces(t, s, storage.Lookup{Keys: []int64{0, 1, 2, 10, 50, 70}, Most: 9}, 0, 1, 7)
	wantBriefs(t, s, storage.BriefQuery{N: 6}, b[0], one, bare(2), bare(3), bare(4), bare(5))

	for name, bad := range map[string]struct {
		in   storage.Range
		list []storage.StoredBrief
	}{"beyond the head": {in: storage.Range{From: 8, To: 10}}, "backwards": {in: storage.Range{From: 5, To: 4}}, "before it": {in: storage.Range{From: -1, To: 1}},
		"outside": {storage.Range{From: 4, To: 5}, []storage.StoredBrief{five}}, "twice": {storage.Range{From: 4, To: 6}, []storage.StoredBrief{five, five}}} {
		if err := s.PutBriefs(t.Context(), bad.in, bad.list); err == nil {
			t.Errorf("%s: put", name)
		}
	}
	wantError(t, s.PutBriefs(t.Context(), storage.Range{From: 9, To: 9}, nil), nil)
	replaced(2) // neither what is refused nor what replaces nothing is counted
}
