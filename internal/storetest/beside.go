package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/internal/must"
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
	must.Want(t, s.Append(t.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := planOf(rows...)(head, log)
		batch.Briefs = briefs
		return batch, err
	}), nil)
	return briefs
}

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
	must.Want(t, err, nil)
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
	must.Want(t, s.Append(t.Context(), planOf(rest...)), nil)
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
	must.Want(t, s.PutBriefs(t.Context(), storage.Range{From: 4, To: 8}, []storage.StoredBrief{five, seven}), nil)
	wantBriefs(t, s, storage.BriefQuery{From: 4, N: 4}, bare(4), five, bare(6), seven)
	wantPlaces(t, s, storage.Lookup{Keys: []int64{70}, Most: 9}, 7)
	must.Want(t, s.PutBriefs(t.Context(), storage.Range{From: 1, To: 6}, []storage.StoredBrief{one}), nil)
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
	must.Want(t, s.PutBriefs(t.Context(), storage.Range{From: 9, To: 9}, nil), nil)
	replaced(2) // neither what is refused nor what replaces nothing is counted
}

var since = time.Date(2026, 1, 31, 16, 15, 0, 123_000_000, time.UTC)

// late is a time stamp for a row that was appended before.
func late(index int64, authority string) storage.Stamp {
	return storage.Stamp{Index: index, Authority: authority,
		Timestamp: evidence.Timestamp{Kind: evidence.RFC3161, Token: []byte{9, byte(index), authority[0]}}}
}

func planWaiting(r storage.Row, since time.Time, authorities ...string) storage.Plan {
	return func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := planOf(r)(head, log)
		for _, a := range authorities {
			batch.Waits = append(batch.Waits, storage.Wait{Index: head.Size, Authority: a, Since: since})
		}
		return batch, err
	}
}

func planStamps(r storage.Row, stamps ...storage.Stamp) storage.Plan {
	return func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := planOf(r)(head, log)
		batch.Stamps = stamps
		return batch, err
	}
}

func wantWaiting(t *testing.T, s storage.Store, authority string, indexes ...int64) {
	t.Helper()
	waits, err := s.Waiting(t.Context(), authority, 0, 1000)
	must.Want(t, err, nil)
	var got []int64
	for _, w := range waits {
		must.Equal(t, w.Authority, authority)
		got = append(got, w.Index)
	}
	want(t, got, indexes)
}

func wantOwing(t *testing.T, s storage.Store, owing ...storage.Owed) {
	t.Helper()
	gives(t, owing)(s.Owing(t.Context()))
}

func outbox(t *testing.T, s storage.Store) {
	ctx := t.Context()
	later := since.Add(time.Minute)
	must.Want(t, s.Append(ctx, planWaiting(row(0), later, "one")), nil)
	must.Want(t, s.Append(ctx, planOf(row(1))), nil)
	must.Want(t, s.Append(ctx, planWaiting(row(2), since, "two", "one")), nil) // an earlier time, as after a clock went back
	must.Want(t, s.Append(ctx, planWaiting(row(3), later, "one")), nil)
	wantOwing(t, s, storage.Owed{Authority: "one", Records: 3, Since: since}, storage.Owed{Authority: "two", Records: 1, Since: since})
	wantWaiting(t, s, "one", 0, 2, 3)
	wantWaiting(t, s, "two", 2)
	wantWaiting(t, s, "three")
	gives(t, []storage.Wait{{Index: 2, Authority: "one", Since: since}})(s.Waiting(ctx, "one", 1, 1))
	gives(t, []storage.Wait{})(s.Waiting(ctx, "one", 0, 0))

	must.Want(t, s.Append(ctx, planStamps(row(4), late(2, "one"), late(0, "one"))), nil)
	wantWaiting(t, s, "one", 3)
	wantWaiting(t, s, "two", 2)
	wantHead(t, s, 5)
	stamped, err := s.ByRecordID(ctx, "record-2")
	must.Want(t, err, nil)
	want(t, stamped.Timestamps, append(row(2).Timestamps, late(2, "one").Timestamp))

	// A renewal is a stamp for a row that does not wait.
	renewal := storage.Stamp{Index: 1, Timestamp: evidence.Timestamp{Kind: evidence.RFC3161, Token: []byte("renewed")}}
	must.Want(t, s.Append(ctx, planStamps(row(5), renewal)), nil)
	stamped, err = s.ByRecordID(ctx, "record-1")
	must.Want(t, err, nil)
	want(t, stamped.Timestamps, append(row(1).Timestamps, renewal.Timestamp))
	wantWaiting(t, s, "one", 3)

	gives(t, int64(1))(s.Forget(ctx, "one"))
	wantOwing(t, s, storage.Owed{Authority: "two", Records: 1, Since: since})
	gives(t, int64(0))(s.Forget(ctx, "one"))

	bare := row(6)
	bare.Timestamps = nil
	must.Want(t, s.Append(ctx, planWaiting(bare, since, "one", "two")), nil)
	gives(t, int64(0))(s.Forget(ctx, "one")) // there is no time stamp
	wantWaiting(t, s, "one", 6)
	must.Want(t, s.Append(ctx, planStamps(row(7), late(6, "two"))), nil)
	gives(t, int64(1))(s.Forget(ctx, "one")) // there is another's
	wantWaiting(t, s, "one")
}

// outboxAllOrNone stamps rows that do not wait: nothing of such a batch is stored.
func outboxAllOrNone(t *testing.T, s storage.Store) {
	ctx := t.Context()
	must.Want(t, s.Append(ctx, planWaiting(row(0), since, "one")), nil)
	must.Want(t, s.Append(ctx, planOf(row(1))), nil)
	for name, stamps := range map[string][]storage.Stamp{
		"waits for another": {late(0, "two")},
		"does not wait":     {late(0, "one"), late(1, "one")},
		"twice":             {late(0, "one"), late(0, "one")},
	} {
		if err := s.Append(ctx, planStamps(row(2), stamps...)); !errors.Is(err, storage.ErrConflict) {
			t.Errorf("%s: error %v", name, err)
		}
		wantHead(t, s, 2)
		wantWaiting(t, s, "one", 0)
		gives(t, row(0))(s.ByRecordID(ctx, "record-0"))
	}
	refusal := errors.New("no")
	err := s.Append(ctx, func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := planWaiting(row(2), since, "one")(head, log)
		return batch, errors.Join(err, refusal)
	})
	must.Want(t, err, refusal)
	duplicate := planWaiting(row(1), since, "one")
	must.Want(t, s.Append(ctx, duplicate), storage.ErrDuplicate)
	wantWaiting(t, s, "one", 0)
	must.Want(t, s.Append(ctx, planStamps(row(2), late(0, "one"))), nil)
	must.Want(t, s.Append(ctx, planStamps(row(3), late(0, "one"))), storage.ErrConflict) // it does not wait any more
}

func outboxClaims(t *testing.T, s storage.Store) {
	must.Want(t, s.Append(t.Context(), planWaiting(row(0), since, "one")), nil)
	wantOneWinner(t, func(i int) error { return s.Append(t.Context(), planStamps(row(i+1), late(0, "one"))) })
	wantHead(t, s, 2)
}

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
	must.Want(t, s.Append(t.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := planOf(row(8))(head, log)
		batch.Stamps = []storage.Stamp{late}
		return batch, err
	}), nil)
	all := storage.Range{From: 0, To: 8}
	var briefs []storage.StoredBrief
	for i := range int64(8) {
		briefs = append(briefs, storage.StoredBrief{Index: i, Line: []byte(`{"at":"1"}`), Names: []byte{byte(i)}, Keys: []int64{i}})
	}
	must.Want(t, s.PutBriefs(t.Context(), all, briefs), nil)
	replaced, err := s.Replaced(t.Context())
	must.Do(t, err)

	left, leftBriefs := expiredOf("act", rows[1], rows[3])
	must.Want(t, s.Expire(t.Context(), "act", left, leftBriefs), storage.ErrConflict) // they are not noted
	must.Want(t, s.PutExpiring(t.Context(), "act", []int64{1, 3}), nil)
	must.Want(t, s.PutExpiring(t.Context(), "act", []int64{3, 5}), nil)
	must.Want(t, s.PutExpiring(t.Context(), "other", []int64{6, 5}), storage.ErrConflict)
	must.Want(t, s.PutExpiring(t.Context(), "act", []int64{99}), storage.ErrConflict)
	must.Want(t, s.PutExpiring(t.Context(), "other", []int64{0, 7}), nil)
	must.Want(t, s.Expire(t.Context(), "other", left, leftBriefs), storage.ErrConflict)
	noted := func(want ...storage.Expiring) {
		t.Helper()
		gives(t, want)(s.Expiring(t.Context(), 0, 100))
	}
	noted(storage.Expiring{Index: 0, Act: "other"}, storage.Expiring{Index: 1, Act: "act"}, storage.Expiring{Index: 3, Act: "act"}, storage.Expiring{Index: 5, Act: "act"},
		storage.Expiring{Index: 7, Act: "other"})
	gives(t, []storage.Expiring{{Index: 1, Act: "act"}, {Index: 3, Act: "act"}})(s.Expiring(t.Context(), 1, 2))
	must.Want(t, s.DropExpiring(t.Context(), "other"), nil)

	before, err := s.Head(t.Context())
	must.Do(t, err)
	must.Want(t, s.Expire(t.Context(), "act", left, leftBriefs), nil)
	noted(storage.Expiring{Index: 5, Act: "act"})
	must.Want(t, s.Expire(t.Context(), "act", left, leftBriefs), storage.ErrConflict) // a second time
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
		must.Equal(t, cmp.Diff(want, r, ignorePacked), "")
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
	must.Want(t, s.Reclaim(t.Context(), nil), nil)
	gives(t, []string{})(s.Check(t.Context()))
	must.Want(t, s.Append(t.Context(), planOf(row(9))), nil)
}

// keepsWaiting: a row that waits for a time stamp is not noted, and nothing beside it is.
func keepsWaiting(t *testing.T, s storage.Store) {
	fill(t, s, 2)
	must.Want(t, s.Append(t.Context(), func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := planOf(row(2))(head, log)
		batch.Waits = []storage.Wait{{Index: 2, Authority: "one", Since: since}}
		return batch, err
	}), nil)
	must.Want(t, s.PutExpiring(t.Context(), "act", []int64{0, 2}), storage.ErrConflict)
	gives(t, []storage.Expiring{})(s.Expiring(t.Context(), 0, 10))
}

// dictionaries are numbered without a gap, and never change.
func dictionaries(t *testing.T, s storage.Store) {
	gives(t, int64(0))(s.NewestDictionary(t.Context()))
	texts := [][]byte{{}, []byte("one"), []byte("two")}
	must.Want(t, s.PutDictionary(t.Context(), 2, texts[2]), storage.ErrConflict)
	for _, n := range []int64{1, 2} {
		must.Want(t, s.PutDictionary(t.Context(), n, texts[n]), nil)
		must.Want(t, s.PutDictionary(t.Context(), n, texts[0]), storage.ErrConflict)
	}
	gives(t, int64(2))(s.NewestDictionary(t.Context()))
	for _, n := range []int64{1, 2} {
		gives(t, texts[n])(s.Dictionary(t.Context(), n))
	}
	for _, n := range []int64{-1, 0, 3} {
		must.Fail(t, storage.ErrNotFound)(s.Dictionary(t.Context(), n))
	}
}

// packs returns rows as they were appended, whatever they are compressed with.
func packs(t *testing.T, s storage.Store) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	var rows []storage.Row
	for n, payload := range []string{"short", strings.Repeat("as long as a record is ", 100), strings.Repeat("0", 1<<20), string(noise),
		string(noise[:1]) + strings.Repeat("x", 70_000)} {
		for k, before := range []func(*storage.Row){func(*storage.Row) {},
			func(r *storage.Row) { r.Signatures, r.Timestamps = nil, nil },
			func(r *storage.Row) {
				must.Do(t, s.Pack(t.Context(), []storage.Row{*r})) // a copy is packed, and thrown away
			},
			func(r *storage.Row) {
				list := []storage.Row{*r}
				must.Do(t, s.Pack(t.Context(), list))
				*r = list[0]
			}} {
			r := row(len(rows))
			r.Payload = fmt.Appendf(nil, "%d %d %s", n, k, payload)
			before(&r)
			must.Do(t, s.Append(t.Context(), planOf(r)))
			r.Index = int64(len(rows))
			rows = append(rows, r)
		}
		must.Do(t, s.PutDictionary(t.Context(), int64(n)+1, storage.Content(&rows[len(rows)-1])[:min(storage.MaxDictionary, 10*(n+1))]))
	}
	got, err := s.Rows(t.Context(), 0, 100)
	if err != nil || len(got) != len(rows) {
		t.Fatal(len(got), err)
	}
	for i := range got {
		if !bytes.Equal(got[i].Payload, rows[i].Payload) {
			t.Errorf("row %d has another payload, %v", i, got[i].Broken)
		}
		rows[i].Payload, got[i].Payload = nil, nil // which cmp would compare byte by byte
	}
	want(t, got, rows)
}

// Shared checks that two stores of one log read what the other has compressed, with dictionaries that were added while
// both were open.
func Shared(t *testing.T, one, other storage.Store) {
	list := []storage.Store{one, other}
	long := func(n int64) storage.Row {
		r := row(int(n))
		r.Payload = fmt.Appendf(nil, "%d is long enough to be compressed by what is in a dictionary", n)
		return r
	}
	for n := range int64(3) {
		for _, s := range list {
			must.Do(t, s.Append(t.Context(), planOf(long(size(t, s)))))
		}
		last, err := one.Rows(t.Context(), size(t, one)-1, 1)
		must.Do(t, err)
		must.Do(t, list[n%2].PutDictionary(t.Context(), n+1, storage.NewDictionary("", last)))
	}
	with := map[int64]bool{}
	for _, s := range list {
		rows, err := s.Rows(t.Context(), 0, 100)
		if err != nil || len(rows) != 6 {
			t.Fatal(len(rows), err)
		}
		for i, r := range rows {
			if r.Broken != nil || !bytes.Equal(r.Payload, long(int64(i)).Payload) {
				t.Errorf("row %d: %q, %v", i, r.Payload, r.Broken)
			}
			with[r.Packed.Dictionary] = true
		}
	}
	if len(with) < 3 {
		t.Errorf("they were compressed with %v alone", with)
	}
}

func size(t *testing.T, s storage.Store) int64 {
	t.Helper()
	head, err := s.Head(t.Context())
	must.Do(t, err)
	return head.Size
}

// Content is the SQL that gives a record in SQLite this content, not compressed, as an attacker does who has the file:
// UPDATE records SET Content(row) WHERE idx = 4.
func Content(row *storage.Row) string {
	return fmt.Sprintf("dictionary = %d, stamps = %d, packed = x'%x'", storage.Plain, len(row.Timestamps), storage.Content(row))
}
