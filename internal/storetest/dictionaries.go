package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"jurat/internal/ledger/storage"
	"jurat/internal/must"
)

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
