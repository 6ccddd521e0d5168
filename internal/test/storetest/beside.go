package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
)

// briefed makes the brief of a row. It has one key of its own, and one that it shares with every third row.
func briefed(r storage.Row) storage.StoredBrief {
	i := r.Index
	return storage.StoredBrief{Index: i, RecordID: r.RecordID, Digest: r.Digest, ChainID: r.ChainID, Case: r.Case,
		Line: fmt.Appendf(nil, `{"actor":"ünï %d"}`, i), Names: []byte{byte(i), 0, 255}, Keys: []int64{i - 1<<62, i % 3}}
}

// withBriefs appends n rows with a brief each.
func (k kit) withBriefs(n int) (list []storage.Row, briefs map[int64]storage.StoredBrief) {
	k.Helper()
	briefs = map[int64]storage.StoredBrief{}
	k.plan(nil, func(b *storage.Batch) error {
		list = b.Rows
		for _, r := range list {
			briefs[r.Index] = briefed(r)
			b.Briefs = append(b.Briefs, briefs[r.Index])
		}
		return nil
	}, rows(0, n)...)
	return list, briefs
}

// briefs lists briefs, and looks up records by what they are named by.
func briefs(k kit) {
	k.gives([]int64{})(k.Places(k.Context(), storage.Lookup{Keys: []int64{1}, Most: 5}))
	list, briefs := k.withBriefs(7)
	k.agrees(list, briefs)
	for _, c := range []struct {
		q    storage.Lookup
		want []int64
	}{
		{storage.Lookup{Keys: []int64{1}, Most: 9}, []int64{1, 4}},
		{storage.Lookup{Keys: []int64{0, 4 - 1<<62, 99}, Most: 9}, []int64{0, 3, 4, 6}},
		{storage.Lookup{Keys: []int64{0}, Most: 2}, []int64{0, 3}},
		{storage.Lookup{RecordIDs: []string{"record-5", "none"}, Digests: []evidence.Digest{list[2].Digest, {}}, Keys: []int64{2}, Most: 9}, []int64{2, 5}},
	} {
		k.gives(c.want)(k.Places(k.Context(), c.q))
	}
}

// briefsLater adds briefs after their rows, and replaces some with their keys, and no others.
func briefsLater(k kit) {
	list, briefs := k.withBriefs(3)
	list = append(list, k.add(rows(3, 9)...)...)
	k.gives(int64(0))(k.Replaced(k.Context()))
	for _, put := range []struct{ from, to, row, key int64 }{{4, 8, 7, 70}, {1, 6, 1, 10}} {
		for i := put.from; i < put.to; i++ {
			delete(briefs, i)
		}
		b := briefed(list[put.row])
		b.Line, b.Keys = []byte(`{}`), []int64{put.key}
		briefs[put.row] = b
		must.Want(k, k.PutBriefs(k.Context(), storage.Range{From: put.from, To: put.to}, []storage.StoredBrief{b}), nil)
	}
	k.agrees(list, briefs)
	k.gives([]int64{0, 1, 7})(k.Places(k.Context(), storage.Lookup{Keys: []int64{0, 1, 2, 10, 50, 70}, Most: 9}))

	five := briefed(list[5])
	for name, bad := range map[string]struct {
		in   storage.Range
		list []storage.StoredBrief
	}{"beyond the head": {in: storage.Range{From: 8, To: 10}}, "backwards": {in: storage.Range{From: 5, To: 4}}, "before it": {in: storage.Range{From: -1, To: 1}},
		"outside": {storage.Range{From: 4, To: 5}, []storage.StoredBrief{five}}, "twice": {storage.Range{From: 4, To: 6}, []storage.StoredBrief{five, five}}} {
		if err := k.PutBriefs(k.Context(), bad.in, bad.list); err == nil {
			k.Errorf("%s: put", name)
		}
	}
	must.Want(k, k.PutBriefs(k.Context(), storage.Range{From: 9, To: 9}, nil), nil)
	k.gives(int64(2))(k.Replaced(k.Context())) // neither what is refused nor what replaces nothing is counted
}

var since = time.Date(2026, 1, 31, 16, 15, 0, 123_000_000, time.UTC)

// late is a time stamp for a row that was appended before.
func late(index int64, authority string) storage.Stamp {
	return storage.Stamp{Index: index, Authority: authority,
		Timestamp: evidence.Timestamp{Kind: evidence.RFC3161, Token: append([]byte{9, byte(index)}, authority...)}}
}

// waitingFor returns a change to a batch of one row, after which the row waits for authorities.
func waitingFor(since time.Time, authorities ...string) func(*storage.Batch) error {
	return func(b *storage.Batch) error {
		for _, a := range authorities {
			b.Waits = append(b.Waits, storage.Wait{Index: b.Rows[0].Index, Authority: a, Since: since})
		}
		return nil
	}
}

// stamping returns a change to a batch, after which it stamps rows.
func stamping(stamps ...storage.Stamp) func(*storage.Batch) error {
	return func(b *storage.Batch) error { b.Stamps = stamps; return nil }
}

// waits expects that these rows wait for an authority.
func (k kit) waits(authority string, indexes ...int64) {
	k.Helper()
	var got []int64
	for _, w := range must.Get(k.Waiting(k.Context(), authority, 0, 1000))(k) {
		must.Equal(k, w.Authority, authority)
		got = append(got, w.Index)
	}
	k.is(got, indexes)
}

func (k kit) owing(owing ...storage.Owed) {
	k.Helper()
	k.gives(owing)(k.Owing(k.Context()))
}

// stamped expects that a row has a time stamp beside the first one.
func (k kit) stamped(index int, with storage.Stamp) {
	k.Helper()
	r := must.Get(k.ByRecordID(k.Context(), row(index).RecordID))(k)
	k.is(r.Timestamps, append(row(index).Timestamps, with.Timestamp))
}

func outbox(k kit) {
	later := since.Add(time.Minute)
	k.plan(nil, waitingFor(later, "one"), row(0))
	k.add(row(1))
	k.plan(nil, waitingFor(since, "two", "one"), row(2)) // an earlier time, as after a clock went back
	k.plan(nil, waitingFor(later, "one"), row(3))
	k.owing(storage.Owed{Authority: "one", Records: 3, Since: since}, storage.Owed{Authority: "two", Records: 1, Since: since})
	k.waits("one", 0, 2, 3)
	k.waits("two", 2)
	k.waits("three")
	k.gives([]storage.Wait{{Index: 2, Authority: "one", Since: since}})(k.Waiting(k.Context(), "one", 1, 1))
	k.gives([]storage.Wait{})(k.Waiting(k.Context(), "one", 0, 0))

	k.plan(nil, stamping(late(2, "one"), late(0, "one")), row(4))
	k.waits("one", 3)
	k.waits("two", 2)
	k.sized(5)
	k.stamped(2, late(2, "one"))
	k.plan(nil, stamping(late(1, "")), row(5)) // a renewal is a stamp for a row that does not wait
	k.stamped(1, late(1, ""))
	k.waits("one", 3)

	k.gives(int64(1))(k.Forget(k.Context(), "one"))
	k.owing(storage.Owed{Authority: "two", Records: 1, Since: since})
	k.gives(int64(0))(k.Forget(k.Context(), "one"))

	bare := row(6)
	bare.Timestamps = nil
	k.plan(nil, waitingFor(since, "one", "two"), bare)
	k.gives(int64(0))(k.Forget(k.Context(), "one")) // there is no time stamp
	k.waits("one", 6)
	k.plan(nil, stamping(late(6, "two")), row(7))
	k.gives(int64(1))(k.Forget(k.Context(), "one")) // there is another's
	k.waits("one")
	must.Want(k, k.PutExpiring(k.Context(), "act", []int64{0, 2}), storage.ErrConflict) // one of them waits
	k.gives([]storage.Expiring{})(k.Expiring(k.Context(), 0, 10))
}

// outboxAllOrNone stamps rows that do not wait: nothing of such a batch is stored. Of many that stamp one row, one does.
func outboxAllOrNone(k kit) {
	k.plan(nil, waitingFor(since, "one"), row(0))
	k.add(row(1))
	refusal := errors.New("no")
	for name, c := range map[string]struct {
		want   error
		row    int
		change func(*storage.Batch) error
	}{
		"waits for another": {storage.ErrConflict, 2, stamping(late(0, "two"))},
		"does not wait":     {storage.ErrConflict, 2, stamping(late(0, "one"), late(1, "one"))},
		"twice":             {storage.ErrConflict, 2, stamping(late(0, "one"), late(0, "one"))},
		"refused":           {refusal, 2, func(b *storage.Batch) error { return errors.Join(waitingFor(since, "one")(b), refusal) }},
		"duplicate":         {storage.ErrDuplicate, 1, waitingFor(since, "one")},
	} {
		k.Log(name)
		k.plan(c.want, c.change, row(c.row))
		k.sized(2)
		k.waits("one", 0)
		k.gives(row(0))(k.ByRecordID(k.Context(), "record-0"))
	}
	k.wantOneWinner(func(i int) error { return k.Append(k.Context(), planOf(stamping(late(0, "one")), row(i+2))) })
	k.sized(3)
	k.plan(storage.ErrConflict, stamping(late(0, "one")), row(10)) // it does not wait any more
}

// noted expects the rows whose content is to be removed, with their acts.
func (k kit) noted(want ...storage.Expiring) {
	k.Helper()
	k.gives(want)(k.Expiring(k.Context(), 0, 100))
}

// expires: what is noted goes, once, and nothing else.
func expires(k kit) {
	list, briefs := k.withBriefs(8)
	k.plan(nil, stamping(late(3, "")), row(8))
	left, leftBriefs := []storage.Row(nil), []storage.StoredBrief(nil)
	for _, i := range []int64{1, 3} {
		r, b := list[i], briefed(list[i])
		r.Entry, r.ExpiredBy = fmt.Appendf(nil, "entry of %d", i), "act"
		r.Payload, r.Signatures, r.Timestamps, r.Packed = nil, nil, nil, storage.Packed{}
		b.Line, b.Names, b.Keys = []byte("{}"), nil, nil
		left, leftBriefs = append(left, r), append(leftBriefs, b)
	}
	put := func(act string, want error, indexes ...int64) {
		k.Helper()
		must.Want(k, k.PutExpiring(k.Context(), act, indexes), want)
	}
	expire := func(act string, want error) {
		k.Helper()
		must.Want(k, k.Expire(k.Context(), act, slices.Clone(left), leftBriefs), want)
	}
	replaced := must.Get(k.Replaced(k.Context()))(k)
	expire("act", storage.ErrConflict) // they are not noted
	put("act", nil, 1, 3)
	put("act", nil, 3, 5)
	put("other", storage.ErrConflict, 6, 5)
	put("act", storage.ErrConflict, 99)
	put("other", nil, 0, 7)
	expire("other", storage.ErrConflict)
	k.noted(storage.Expiring{Index: 0, Act: "other"}, storage.Expiring{Index: 1, Act: "act"}, storage.Expiring{Index: 3, Act: "act"}, storage.Expiring{Index: 5, Act: "act"},
		storage.Expiring{Index: 7, Act: "other"})
	k.gives([]storage.Expiring{{Index: 1, Act: "act"}, {Index: 3, Act: "act"}})(k.Expiring(k.Context(), 1, 2))
	must.Want(k, k.DropExpiring(k.Context(), "other"), nil)

	before := must.Get(k.Head(k.Context()))(k)
	expire("act", nil)
	k.noted(storage.Expiring{Index: 5, Act: "act"})
	expire("act", storage.ErrConflict) // a second time
	k.gives(before)(k.Head(k.Context()))
	nine := row(8)
	nine.Index = 8
	list = append(list, nine)
	for n := range left {
		list[left[n].Index], briefs[left[n].Index] = left[n], leftBriefs[n]
	}
	k.agrees(list, briefs)
	if now := must.Get(k.Replaced(k.Context()))(k); now <= replaced {
		k.Errorf("briefs were replaced %d times, before %d", now, replaced)
	}
	must.Want(k, k.Reclaim(k.Context(), nil), nil)
	k.gives([]string{})(k.Check(k.Context()))
	k.add(row(9))
}

// dictionaries are numbered without a gap, and never change.
func dictionaries(k kit) {
	k.gives(int64(0))(k.NewestDictionary(k.Context()))
	must.Want(k, k.PutDictionary(k.Context(), 2, []byte("two")), storage.ErrConflict)
	for n := range int64(2) {
		must.Want(k, k.PutDictionary(k.Context(), n+1, []byte{byte(n)}), nil)
		must.Want(k, k.PutDictionary(k.Context(), n+1, nil), storage.ErrConflict)
		k.gives(n + 1)(k.NewestDictionary(k.Context()))
		for old := range n + 1 {
			k.gives([]byte{byte(old)})(k.Dictionary(k.Context(), old+1))
		}
	}
	for _, n := range []int64{-1, 0, 3} {
		k.lacks(k.Dictionary(k.Context(), n))
	}
}

// packs returns rows as they were appended, whatever they are compressed with.
func packs(k kit) {
	noise := make([]byte, 100_000)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	pack := func(r *storage.Row) {
		list := []storage.Row{*r}
		must.Do(k, k.Pack(k.Context(), list))
		*r = list[0]
	}
	var list []storage.Row
	for n, payload := range []string{"short", strings.Repeat("as long as a record is ", 100), strings.Repeat("0", 1<<20), string(noise),
		string(noise[:1]) + strings.Repeat("x", 70_000)} {
		for i, before := range []func(*storage.Row){func(*storage.Row) {}, func(r *storage.Row) { r.Signatures, r.Timestamps = nil, nil },
			func(r *storage.Row) { pack(new(*r)) }, pack} { // the third packs a copy, which is thrown away
			r := row(len(list))
			r.Payload = fmt.Appendf(nil, "%d %d %s", n, i, payload)
			before(&r)
			list = append(list, k.add(r)...)
		}
		must.Do(k, k.PutDictionary(k.Context(), int64(n)+1, storage.Content(&list[len(list)-1])[:min(storage.MaxDictionary, 10*(n+1))]))
	}
	got := must.Get(k.Rows(k.Context(), 0, 100))(k)
	must.Len(k, got, len(list))
	for i := range got {
		if !bytes.Equal(got[i].Payload, list[i].Payload) {
			k.Errorf("row %d has another payload, %v", i, got[i].Broken)
		}
		list[i].Payload, got[i].Payload = nil, nil // which cmp would compare byte by byte
	}
	k.is(got, list)
}

// Shared checks that two stores of one log read what the other has compressed, with dictionaries that were added while both were open.
func Shared(t *testing.T, one, other storage.Store) {
	var list []storage.Row
	for n := range int64(3) {
		for _, s := range []storage.Store{one, other} {
			r := row(len(list))
			r.Payload = fmt.Appendf(nil, "%d is long enough to be compressed by what is in a dictionary", len(list))
			list = append(list, kit{t, s}.add(r)...)
		}
		must.Do(t, []storage.Store{one, other}[n%2].PutDictionary(t.Context(), n+1, storage.NewDictionary("", list[len(list)-1:])))
	}
	with := map[int64]bool{}
	for _, s := range []storage.Store{one, other} {
		kit{t, s}.agrees(list, nil)
		for _, r := range must.Get(s.Rows(t.Context(), 0, 100))(t) {
			with[r.Packed.Dictionary] = true
		}
	}
	if len(with) < 3 {
		t.Errorf("they were compressed with %v alone", with)
	}
}

// Content is the SQL that gives a record in SQLite this content, not compressed, as an attacker does who has the file:
// UPDATE records SET Content(row) WHERE idx = 4.
func Content(row *storage.Row) string {
	return fmt.Sprintf("dictionary = %d, stamps = %d, packed = x'%x'", storage.Plain, len(row.Timestamps), storage.Content(row))
}

// SetHash is the SQL that changes a hash of the tree in SQLite.
func SetHash(level int, n int64, hash []byte) string {
	return fmt.Sprintf("UPDATE tags SET hashes = CAST(substr(hashes, 1, %d) || x'%x' || substr(hashes, %d) AS BLOB) WHERE idx = %d",
		32*level, hash, 32*level+33, (n+1)<<level-1)
}
