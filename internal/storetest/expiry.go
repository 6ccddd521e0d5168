package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// expiredOf returns what is left of rows, and their briefs.
func expiredOf(act string, rows ...storage.Row) (left []storage.Row, briefs []storage.StoredBrief) {
	for _, r := range rows {
		r.Entry, r.ExpiredBy = fmt.Appendf(nil, "entry of %d", r.Index), act
		r.Payload, r.Signatures, r.Timestamps, r.Packed = nil, nil, nil, storage.Packed{}
		left = append(left, r)
		briefs = append(briefs, storage.StoredBrief{Index: r.Index, Line: []byte("{}")})
	}
	return left, briefs
}

// expires: what is noted goes, once, and nothing else.
func expires(t *testing.T, s storage.Store) {
	rows := fill(t, s, 8)
	late := storage.Stamp{Index: 3, Timestamp: evidence.Timestamp{Kind: evidence.RFC3161, Token: []byte("late")}}
	wantError(t, s.Append(t.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := planOf(row(8))(head, log)
		batch.Stamps = []storage.Stamp{late}
		return batch, err
	}), nil)
	all := storage.Range{From: 0, To: 8}
	var briefs []storage.StoredBrief
	for i := range int64(8) {
		briefs = append(briefs, storage.StoredBrief{Index: i, Line: []byte(`{"at":"1"}`), Names: []byte{byte(i)}, Keys: []int64{i}})
	}
	wantError(t, s.PutBriefs(t.Context(), all, briefs), nil)
	replaced, err := s.Replaced(t.Context())
	must(t, err)

	left, leftBriefs := expiredOf("act", rows[1], rows[3])
	wantError(t, s.Expire(t.Context(), "act", left, leftBriefs), storage.ErrConflict) // they are not noted
	wantError(t, s.PutExpiring(t.Context(), "act", []int64{1, 3}), nil)
	wantError(t, s.PutExpiring(t.Context(), "act", []int64{3, 5}), nil)
	wantError(t, s.PutExpiring(t.Context(), "other", []int64{6, 5}), storage.ErrConflict)
	wantError(t, s.PutExpiring(t.Context(), "act", []int64{99}), storage.ErrConflict)
	wantError(t, s.PutExpiring(t.Context(), "other", []int64{0, 7}), nil)
	wantError(t, s.Expire(t.Context(), "other", left, leftBriefs), storage.ErrConflict)
	noted := func(want ...storage.Expiring) {
		t.Helper()
		gives(t, want)(s.Expiring(t.Context(), 0, 100))
	}
	noted(storage.Expiring{Index: 0, Act: "other"}, storage.Expiring{Index: 1, Act: "act"}, storage.Expiring{Index: 3, Act: "act"}, storage.Expiring{Index: 5, Act: "act"},
		storage.Expiring{Index: 7, Act: "other"})
	gives(t, []storage.Expiring{{Index: 1, Act: "act"}, {Index: 3, Act: "act"}})(s.Expiring(t.Context(), 1, 2))
	wantError(t, s.DropExpiring(t.Context(), "other"), nil)

	before, err := s.Head(t.Context())
	must(t, err)
	wantError(t, s.Expire(t.Context(), "act", left, leftBriefs), nil)
	noted(storage.Expiring{Index: 5, Act: "act"})
	wantError(t, s.Expire(t.Context(), "act", left, leftBriefs), storage.ErrConflict) // a second time
	gives(t, before)(s.Head(t.Context()))
	got, err := s.Rows(t.Context(), 0, 8)
	if err != nil || len(got) != 8 {
		t.Fatal(len(got), err)
	}
	for i, r := range got {
		want := rows[i]
		if i == 1 || i == 3 {
			want = left[i/2]
			want.Timestamps = nil
		}
		if diff := cmp.Diff(want, r, ignorePacked); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i, diff)
		}
	}
	if r, err := s.ByRecordID(t.Context(), rows[3].RecordID); err != nil || r.Index != 3 || r.Entry == nil {
		t.Errorf("by its id: %+v, %v", r, err)
	}
	if r, err := s.ByDigest(t.Context(), rows[1].Digest); err != nil || r.Index != 1 || r.ExpiredBy != "act" {
		t.Errorf("by its digest: %+v, %v", r, err)
	}
	stored, err := s.Briefs(t.Context(), storage.BriefQuery{From: 0, N: 8, Names: true})
	if err != nil || len(stored) != 8 || string(stored[3].Line) != "{}" || len(stored[3].Names) > 0 || string(stored[2].Line) != `{"at":"1"}` {
		t.Errorf("briefs: %+v, %v", stored, err)
	}
	keys, err := s.BriefKeys(t.Context(), 0, 8)
	if err != nil || len(keys) != 6 {
		t.Errorf("keys: %v, %v", keys, err)
	}
	if now, err := s.Replaced(t.Context()); err != nil || now <= replaced {
		t.Errorf("briefs were replaced %d times, before %d; %v", now, replaced, err)
	}
	wantError(t, s.Reclaim(t.Context(), nil), nil)
	if checker, ok := s.(storage.Checker); ok {
		gives(t, []string{})(checker.Check(t.Context()))
	}
	wantError(t, s.Append(t.Context(), planOf(row(9))), nil)
}

// keepsWaiting: a row that waits for a time stamp is not noted, and nothing beside it is.
func keepsWaiting(t *testing.T, s storage.Store) {
	fill(t, s, 2)
	wantError(t, s.Append(t.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := planOf(row(2))(head, log)
		batch.Waits = []storage.Wait{{Index: 2, Authority: "one", Since: since}}
		return batch, err
	}), nil)
	wantError(t, s.PutExpiring(t.Context(), "act", []int64{0, 2}), storage.ErrConflict)
	gives(t, []storage.Expiring{})(s.Expiring(t.Context(), 0, 10))
}
