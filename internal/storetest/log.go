// Package storetest checks every store of a log, every file store and all locks against their contracts.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/internal/must"
)

// Log checks a store against the contract of storage.Store. Every call of open returns a new, empty store.
func Log(t *testing.T, open func(t *testing.T) storage.Store) {
	for name, test := range map[string]func(*testing.T, storage.Store){
		"empty":               empty,
		"append and read":     appendAndRead,
		"trials":              trials,
		"large batch":         largeBatch,
		"places":              places,
		"counts":              counts,
		"tags":                tags,
		"tags that misfit":    tagsMisfit,
		"plan refuses":        planRefuses,
		"plan reads":          planReads,
		"before the commit":   beforeCommit,
		"misfit":              misfit,
		"duplicate":           duplicate,
		"duplicate in batch":  duplicateInBatch,
		"time stamps":         timestamps,
		"checkpoint":          checkpoint,
		"caller's memory":     callersMemory,
		"concurrent writers":  concurrentWriters,
		"concurrent claims":   concurrentClaims,
		"cancelled":           cancelled,
		"cancelled in a plan": cancelledInPlan,
		"waiting":             waiting,
		"closed":              closed,
		"outbox":              outbox,
		"outbox: all or none": outboxAllOrNone,
		"outbox: claims":      outboxClaims,
		"expires":             expires,
		"keeps what waits":    keepsWaiting,
		"briefs":              briefs,
		"briefs later":        briefsLater,
		"dictionaries":        dictionaries,
		"packs":               packs,
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			t.Cleanup(func() {
				must.Want(t, store.Close(), nil)
			})
			test(t, store)
		})
	}
}

// ignorePacked compares rows by their content, not by how a store packs it.
var ignorePacked = cmp.Comparer(func(a, b storage.Packed) bool { return true })

var actors = [2]evidence.Digest{evidence.ActorTag(evidence.RoleAgent, "even"), evidence.ActorTag(evidence.RoleAgent, "odd")}

// row makes the row for a number; rows of different numbers differ. Stores do not read payloads.
func row(n int) storage.Row {
	payload := fmt.Sprintf(`{"n":%d}`, n)
	r := storage.Row{RecordID: fmt.Sprintf("record-%d", n), Digest: evidence.DigestOf([]byte(payload)), Payload: []byte(payload),
		Signatures: [][]byte{{1, byte(n)}, {2, 0, 255}},
		Timestamps: []evidence.Timestamp{{Kind: evidence.RFC3161, Token: []byte{3, byte(n)}}}}
	if n%2 == 1 {
		r.ChainID, r.Counts.ChainSeq = "odd", int64(n+1)/2
	}
	if n%3 == 2 {
		r.Case, r.Counts.CaseSeq = evidence.DigestOf([]byte("case")), int64(n+1)/3
	}
	r.Actor, r.Counts.ActorSeq = actors[n%2], int64(n/2+1)
	if n%4 == 3 {
		r.Counts.Subject, r.Counts.SubjectSeq = actors[0], int64(n+1)/4
	}
	return r
}

func leaf(r storage.Row) tlog.Hash { return tlog.RecordHash(r.Payload) }

// planOf appends rows at the end, as a ledger would.
func planOf(rows ...storage.Row) storage.Plan {
	return func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
		fresh := map[int64]tlog.Hash{}
		reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
			found := make([]tlog.Hash, len(indexes))
			for i, index := range indexes {
				if hash, ok := fresh[index]; ok {
					found[i] = hash
					continue
				}
				old, err := hashes.ReadHashes([]int64{index})
				if err != nil {
					return nil, err
				}
				found[i] = old[0]
			}
			return found, nil
		})
		batch := storage.Batch{Next: head}
		for _, r := range rows {
			r.Index = batch.Next.Size
			stored, err := tlog.StoredHashesForRecordHash(r.Index, leaf(r), reader)
			if err != nil {
				return batch, err
			}
			for i, hash := range stored {
				fresh[tlog.StoredHashIndex(0, r.Index)+int64(i)] = hash
			}
			batch.Rows = append(batch.Rows, r)
			batch.Hashes = append(batch.Hashes, stored...)
			batch.Next.Size++
		}
		var err error
		batch.Next.Root, err = tlog.TreeHash(batch.Next.Size, reader)
		return batch, err
	}
}

func fill(t *testing.T, s storage.Store, n int) (rows []storage.Row) {
	t.Helper()
	for i := range n {
		r := row(i)
		must.Do(t, s.Append(t.Context(), planOf(r)))
		r.Index = int64(i)
		rows = append(rows, r)
	}
	return rows
}

// wantHead checks the size and the root, which it computes from the leaves.
func wantHead(t *testing.T, s storage.Store, size int64) {
	t.Helper()
	head, err := s.Head(t.Context())
	if err != nil || head.Size != size {
		t.Fatalf("Head = %v, %v; want size %d", head, err, size)
	}
	root, err := tlog.TreeHash(size, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		return s.Hashes(t.Context(), indexes)
	}))
	if err != nil || root != head.Root {
		t.Errorf("the root of the hashes is %v, %v; the head has %v", root, err, head.Root)
	}
}

func want(t *testing.T, got, want any) {
	t.Helper()
	must.Equal(t, cmp.Diff(want, got, ignorePacked), "")
}

// gives expects what a call returns, and no error of it: gives(t, 3)(strconv.Atoi("3")). A list that is empty may be nil.
func gives(t *testing.T, wanted any) func(any, error) {
	return func(got any, err error) {
		t.Helper()
		must.Want(t, err, nil)
		if list := reflect.ValueOf(got); list.Kind() != reflect.Slice || list.Len()+reflect.ValueOf(wanted).Len() > 0 {
			want(t, got, wanted)
		}
	}
}

func empty(t *testing.T, s storage.Store) {
	ctx := t.Context()
	gives(t, storage.EmptyHead)(s.Head(ctx))
	gives(t, []storage.Row{})(s.Rows(ctx, 0, 10))
	gives(t, []tlog.Hash{})(s.Hashes(ctx, nil))
	gives(t, "")(s.Checkpoint(ctx))
	wantOwing(t, s)
	wantWaiting(t, s, "one")
	must.Fail(t, storage.ErrNotFound)(s.ByRecordID(ctx, "record-0"))
	must.Fail(t, storage.ErrNotFound)(s.ByDigest(ctx, evidence.Digest{}))
	must.Fail(t, storage.ErrNotFound)(s.ByChain(ctx, "odd"))
	must.Fail(t, storage.ErrNotFound)(s.LastOfChain(ctx, "odd"))
	must.Fail(t, storage.ErrNotFound)(s.Hashes(ctx, []int64{0}))
}

func appendAndRead(t *testing.T, s storage.Store) {
	ctx := t.Context()
	rows := fill(t, s, 9)
	wantHead(t, s, 9)
	gives(t, rows)(s.Rows(ctx, 0, 100))
	gives(t, rows[3:5])(s.Rows(ctx, 3, 2))
	gives(t, []storage.Row{})(s.Rows(ctx, 9, 5))
	gives(t, rows[4])(s.ByRecordID(ctx, "record-4"))
	gives(t, rows[5])(s.ByDigest(ctx, rows[5].Digest))
	gives(t, []storage.Row{rows[1], rows[3], rows[5], rows[7]})(s.ByChain(ctx, "odd"))
	must.Fail(t, storage.ErrNotFound)(s.ByChain(ctx, ""))
	must.Fail(t, storage.ErrNotFound)(s.ByChain(ctx, "ODD"))
	gives(t, []storage.Row{rows[3], rows[5]})(s.InChain(ctx, "odd", 2, 2))
	gives(t, rows[7:8])(s.InChain(ctx, "odd", 7, 100))
	gives(t, []storage.Row{})(s.InChain(ctx, "odd", 8, 100))
	gives(t, []storage.Row{})(s.InChain(ctx, "odd", 0, 0))
	gives(t, []storage.Row{})(s.InChain(ctx, "even", 0, 100))
	gives(t, rows[7])(s.LastOfChain(ctx, "odd"))
	gives(t, []tlog.Hash{leaf(rows[6]), leaf(rows[2]), leaf(rows[6])})(s.Hashes(ctx, []int64{tlog.StoredHashIndex(0, 6), tlog.StoredHashIndex(0, 2), tlog.StoredHashIndex(0, 6)}))
	must.Fail(t, storage.ErrNotFound)(s.Hashes(ctx, []int64{0, tlog.StoredHashCount(9)}))
}

// trials checks that the records in trials are found among others.
func trials(t *testing.T, s storage.Store) {
	chains := []string{"", "trial-1", "odd", "trial-2", "trial-1", "trial", "trials-3", "Trial-4", "trial-", "trial.", "operator-trials", "trial-2"}
	var rows []storage.Row
	var in []storage.StoredBrief
	for i, chain := range chains {
		r := row(i)
		r.Index, r.ChainID, r.Counts.ChainSeq = int64(i), chain, 0
		if chain != "" {
			r.Counts.ChainSeq = 1
		}
		rows = append(rows, r)
		if strings.HasPrefix(chain, evidence.TrialPrefix) {
			in = append(in, storage.StoredBrief{Index: r.Index, RecordID: r.RecordID, Digest: r.Digest, ChainID: r.ChainID, Case: r.Case})
		}
	}
	must.Want(t, s.Append(t.Context(), planOf(rows[:7]...)), nil)
	must.Want(t, s.Append(t.Context(), planOf(rows[7:]...)), nil)
	for _, c := range []struct {
		from, n int64
		want    []storage.StoredBrief
	}{{0, 100, in}, {-1, 100, in}, {1, 2, in[:2]}, {2, 2, in[1:3]}, {4, 1, in[2:3]}, {9, 9, in[4:]}, {12, 9, nil}, {0, 0, nil}} {
		wantBriefs(t, s, storage.BriefQuery{Trials: true, From: c.from, N: c.n}, c.want...)
	}
}

func largeBatch(t *testing.T, s storage.Store) {
	var rows []storage.Row
	for i := range 300 {
		rows = append(rows, row(i))
	}
	must.Want(t, s.Append(t.Context(), planOf(rows[:37]...)), nil)
	must.Want(t, s.Append(t.Context(), planOf(rows[37:]...)), nil)
	wantHead(t, s, 300)
}

// found queries everything inside a plan, which then returns an error.
func found(t *testing.T, s storage.Store, q storage.Query) (found storage.Found) {
	t.Helper()
	stop := errors.New("stop")
	must.Want(t, s.Append(t.Context(), func(_ storage.Head, log storage.Committed) (_ storage.Batch, err error) {
		found, err = log.Find(q)
		return storage.Batch{}, errors.Join(err, stop)
	}), stop)
	return found
}

func places(t *testing.T, s storage.Store) {
	want(t, found(t, s, storage.Query{}), storage.NewFound())
	fill(t, s, 3)
	got := found(t, s, storage.Query{RecordIDs: []string{"record-3", "record-2", "", "record-0", "RECORD-1", "record-1", "record-2"}})
	want(t, got.Places, map[string]int64{"record-0": 0, "record-1": 1, "record-2": 2})
}

func counts(t *testing.T, s storage.Store) {
	var rows []storage.Row
	for i := range 9 {
		rows = append(rows, row(i))
	}
	of := rows[2].Case
	q := storage.Query{RecordIDs: []string{"record-5"}, Chains: []string{"even", "odd"}, Cases: []evidence.Digest{of, evidence.DigestOf(nil)},
		Actors: []evidence.Digest{actors[0], actors[1], of}, Subjects: []evidence.Digest{actors[0], actors[1]}}
	must.Want(t, s.Append(t.Context(), planOf(rows[:2]...)), nil)
	want(t, found(t, s, q), storage.Found{Places: map[string]int64{}, Chains: map[string]int64{"odd": 1}, Cases: map[evidence.Digest]int64{},
		Actors: map[evidence.Digest]int64{actors[0]: 1, actors[1]: 1}, Subjects: map[evidence.Digest]int64{}})
	must.Want(t, s.Append(t.Context(), planOf(rows[2:4]...)), nil)
	want(t, found(t, s, q), storage.Found{Places: map[string]int64{}, Chains: map[string]int64{"odd": 2}, Cases: map[evidence.Digest]int64{of: 1},
		Actors: map[evidence.Digest]int64{actors[0]: 2, actors[1]: 2}, Subjects: map[evidence.Digest]int64{actors[0]: 1}})
	must.Want(t, s.Append(t.Context(), planOf(rows[4:]...)), nil)
	want(t, found(t, s, q), storage.Found{Places: map[string]int64{"record-5": 5}, Chains: map[string]int64{"odd": 4}, Cases: map[evidence.Digest]int64{of: 3},
		Actors: map[evidence.Digest]int64{actors[0]: 5, actors[1]: 4}, Subjects: map[evidence.Digest]int64{actors[0]: 2}})
}

// tags checks that the rows of an actor, and those about a subject, are found in log order, a few at a time.
func tags(t *testing.T, s storage.Store) {
	ctx := t.Context()
	var rows []storage.Row
	for i := range 12 {
		r := row(i)
		if r.Index = int64(i); i < 2 { // as in a log that did not count actors in the beginning
			r.Actor, r.Counts.ActorSeq = evidence.Digest{}, 0
		}
		must.Want(t, s.Append(ctx, planOf(r)), nil)
		rows = append(rows, r)
	}
	gives(t, rows)(s.Rows(ctx, 0, 100))
	type list = func(ctx context.Context, tag evidence.Digest, from, n int64) ([]storage.Row, error)
	for _, c := range []struct {
		list    list
		tag     evidence.Digest
		from, n int64
		want    []int
	}{
		{s.OfActor, actors[0], 0, 100, []int{2, 4, 6, 8, 10}},
		{s.OfActor, actors[1], -1, 100, []int{3, 5, 7, 9, 11}},
		{s.OfActor, actors[0], 3, 2, []int{4, 6}},
		{s.OfActor, actors[0], 10, 9, []int{10}},
		{s.OfActor, actors[0], 11, 9, nil},
		{s.OfActor, actors[0], 0, 0, nil},
		{s.OfActor, evidence.Digest{}, 0, 100, nil},
		{s.About, actors[0], 0, 100, []int{3, 7, 11}},
		{s.About, actors[0], 4, 1, []int{7}},
		{s.About, actors[1], 0, 100, nil},
		{s.About, evidence.Digest{}, 0, 100, nil},
		{s.OfActor, actors[0], 2, 1, []int{2}}, {s.OfActor, actors[0], 5, 1, []int{6}}, {s.OfActor, actors[0], 6, 1, []int{6}}, {s.OfActor, actors[0], 7, 2, []int{8, 10}}, {s.OfActor, actors[0], 9, 3, []int{10}},
		{s.OfActor, actors[1], 0, 1, []int{3}}, {s.OfActor, actors[1], 4, 1, []int{5}}, {s.OfActor, actors[1], 8, 1, []int{9}}, {s.OfActor, actors[1], 11, 1, []int{11}}, {s.OfActor, actors[1], 12, 1, nil},
		{s.About, actors[0], 7, 1, []int{7}}, {s.About, actors[0], 8, 5, []int{11}}, {s.About, actors[0], 12, 5, nil},
	} {
		var expected []storage.Row
		for _, n := range c.want {
			expected = append(expected, rows[n])
		}
		gives(t, expected)(c.list(ctx, c.tag, c.from, c.n))
	}
}

// tagsMisfit checks that a store takes no row with a tag without its count, or a count without its tag.
func tagsMisfit(t *testing.T, s storage.Store) {
	fill(t, s, 4)
	for name, change := range map[string]func(*storage.Row){
		"an actor without a count":  func(r *storage.Row) { r.Counts.ActorSeq = 0 },
		"a count without an actor":  func(r *storage.Row) { r.Actor = evidence.Digest{} },
		"a subject without a count": func(r *storage.Row) { r.Counts.Subject = actors[0] },
		"a count without a subject": func(r *storage.Row) { r.Counts.SubjectSeq = 2 },
		"a subject without an actor": func(r *storage.Row) {
			r.Actor, r.Counts = evidence.Digest{}, evidence.LogCounts{Subject: actors[0], SubjectSeq: 2}
		},
	} {
		r := row(4)
		change(&r)
		if err := s.Append(t.Context(), planOf(r)); err == nil {
			t.Errorf("a row with %s was appended", name)
		}
		wantHead(t, s, 4)
	}
}

func planRefuses(t *testing.T, s storage.Store) {
	fill(t, s, 2)
	refusal := errors.New("no")
	err := s.Append(t.Context(), func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
		batch, err := planOf(row(2))(head, hashes)
		return batch, errors.Join(err, refusal)
	})
	must.Want(t, err, refusal)
	wantHead(t, s, 2)
	must.Want(t, s.Append(t.Context(), planOf(row(2))), nil)
	wantHead(t, s, 3)
}

// beforeCommit: what a batch waits for comes before anybody can read it. After an error of it nothing is stored.
func beforeCommit(t *testing.T, s storage.Store) {
	fill(t, s, 2)
	refusal, calls := errors.New("no"), 0
	waits := func(answer error) storage.Plan {
		return func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
			batch, err := planOf(row(2))(head, hashes)
			batch.Before = func() error {
				calls++
				wantHead(t, s, 2)
				must.Fail(t, storage.ErrNotFound)(s.ByRecordID(t.Context(), row(2).RecordID))
				return answer
			}
			return batch, err
		}
	}
	must.Want(t, s.Append(t.Context(), waits(refusal)), refusal)
	wantHead(t, s, 2)
	must.Want(t, s.Append(t.Context(), waits(nil)), nil)
	wantHead(t, s, 3)
	want(t, calls, 2)
}

func planReads(t *testing.T, s storage.Store) {
	rows := fill(t, s, 3)
	err := s.Append(t.Context(), func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
		must.Equal(t, head.Size, 3)
		got, err := hashes.ReadHashes([]int64{tlog.StoredHashIndex(0, 2)})
		if err != nil || len(got) != 1 || got[0] != leaf(rows[2]) {
			t.Errorf("plan read %v, %v", got, err)
		}
		must.Fail(t, storage.ErrNotFound)(hashes.ReadHashes([]int64{1000}))
		return planOf(row(3))(head, hashes)
	})
	must.Want(t, err, nil)
	wantHead(t, s, 4)
}

// misfit appends batches that do not fit. The store must refuse them.
func misfit(t *testing.T, s storage.Store) {
	fill(t, s, 3)
	for name, spoil := range map[string]func(*storage.Batch){
		"gap":            func(b *storage.Batch) { b.Rows[0].Index++ },
		"place taken":    func(b *storage.Batch) { b.Rows[0].Index-- },
		"hash missing":   func(b *storage.Batch) { b.Hashes = b.Hashes[1:] },
		"hash too many":  func(b *storage.Batch) { b.Hashes = append(b.Hashes, tlog.Hash{}) },
		"wrong size":     func(b *storage.Batch) { b.Next.Size++ },
		"nothing at all": func(b *storage.Batch) { b.Rows, b.Hashes = nil, nil },
		"wait of an earlier row": func(b *storage.Batch) {
			b.Waits = []storage.Wait{{Index: b.Rows[0].Index - 1, Authority: "one"}}
		},
		"brief of another row": func(b *storage.Batch) { b.Briefs = []storage.StoredBrief{{Index: b.Next.Size, Line: []byte("{}")}} },
		"wait of a later row":  func(b *storage.Batch) { b.Waits = []storage.Wait{{Index: b.Next.Size, Authority: "one"}} },
		"wait for nobody":      func(b *storage.Batch) { b.Waits = []storage.Wait{{Index: b.Rows[0].Index}} },
		"stamp of a new row":   func(b *storage.Batch) { b.Stamps = []storage.Stamp{late(b.Rows[0].Index, "one")} },
		"stamp before the log": func(b *storage.Batch) { b.Stamps = []storage.Stamp{late(-1, "one")} },
	} {
		err := s.Append(t.Context(), func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
			batch, err := planOf(row(3))(head, hashes)
			spoil(&batch)
			return batch, err
		})
		if err == nil {
			t.Errorf("%s: appended", name)
		}
	}
	wantHead(t, s, 3)
}

func wantDuplicate(t *testing.T, err error, d storage.DuplicateError) {
	t.Helper()
	var got *storage.DuplicateError
	if !errors.As(err, &got) || !errors.Is(err, storage.ErrDuplicate) {
		t.Fatalf("error %v, want a DuplicateError", err)
	}
	want(t, *got, d)
}

func duplicate(t *testing.T, s storage.Store) {
	fill(t, s, 3)
	sameID := row(7)
	sameID.RecordID = "record-1"
	wantDuplicate(t, s.Append(t.Context(), planOf(row(8), sameID)), storage.DuplicateError{RecordID: "record-1", Index: 1, Field: "record_id"})
	wantDuplicate(t, s.Append(t.Context(), planOf(row(0))), storage.DuplicateError{RecordID: "record-0", Index: 0, Field: "record_id"})
	wantHead(t, s, 3)
	must.Fail(t, storage.ErrNotFound)(s.ByRecordID(t.Context(), "record-8")) // it came before the duplicate in its batch
	must.Want(t, s.Append(t.Context(), planOf(row(8))), nil)
	wantHead(t, s, 4)
}

func duplicateInBatch(t *testing.T, s storage.Store) {
	wantDuplicate(t, s.Append(t.Context(), planOf(row(0), row(1), row(0))), storage.DuplicateError{RecordID: "record-0", Index: 0, Field: "record_id"})
	wantHead(t, s, 0)
}

func timestamps(t *testing.T, s storage.Store) {
	ctx := t.Context()
	rows := fill(t, s, 2)
	renewal := late(1, "one")
	renewal.Authority = "" // a stamp for a row that does not wait
	for i := range 2 {     // the second time changes nothing
		must.Want(t, s.Append(ctx, planStamps(row(2+2*i), renewal)), nil)
	}
	rows[1].Timestamps = append(rows[1].Timestamps, renewal.Timestamp)
	gives(t, rows)(s.Rows(ctx, 0, 2))
	gives(t, rows[1:2])(s.InChain(ctx, "odd", 1, 2)) // n counts rows, not their time stamps
	bare := row(5)
	bare.Timestamps = nil
	must.Want(t, s.Append(ctx, planOf(bare)), nil)
	bare.Index = 4
	gives(t, bare)(s.ByRecordID(ctx, bare.RecordID))
}

func checkpoint(t *testing.T, s storage.Store) {
	ctx := t.Context()
	must.Want(t, s.SetCheckpoint(ctx, "one", "two"), storage.ErrConflict)
	must.Want(t, s.SetCheckpoint(ctx, "", "one"), nil)
	must.Want(t, s.SetCheckpoint(ctx, "", "two"), storage.ErrConflict)
	must.Want(t, s.SetCheckpoint(ctx, "one", "two\n— ünïcode"), nil)
	fill(t, s, 1)
	gives(t, "two\n— ünïcode")(s.Checkpoint(ctx))
}

func callersMemory(t *testing.T, s storage.Store) {
	r := row(0)
	must.Want(t, s.Append(t.Context(), planOf(r)), nil)
	r.Payload[0], r.Signatures[0][0], r.Timestamps[0].Token[0] = 'x', 'x', 'x'
	for range 2 {
		got, err := s.ByRecordID(t.Context(), "record-0")
		must.Want(t, err, nil)
		want(t, got, row(0))
		got.Payload[0], got.Signatures[0][0], got.Timestamps[0].Token[0] = 'y', 'y', 'y'
	}
}

func concurrentWriters(t *testing.T, s storage.Store) {
	const writers, each = 8, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				must.Want(t, s.Append(t.Context(), planOf(row(w*each+i))), nil)
				must.Fail(t, nil)(s.Rows(t.Context(), 0, 100))
			}
		})
	}
	wg.Wait()
	wantHead(t, s, writers*each)
	for n := range writers * each {
		must.Fail(t, nil)(s.ByRecordID(t.Context(), row(n).RecordID))
	}
}

// concurrentClaims lets many callers replace the same checkpoint: one succeeds.
func concurrentClaims(t *testing.T, s storage.Store) {
	wantOneWinner(t, func(i int) error { return s.SetCheckpoint(t.Context(), "", fmt.Sprint("by ", i)) })
}

// wantOneWinner checks that one of many concurrent calls succeeds, and the others fail with storage.ErrConflict.
func wantOneWinner(t *testing.T, call func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	results := make(chan error, 8)
	for i := range cap(results) {
		wg.Go(func() { results <- call(i) })
	}
	wg.Wait()
	close(results)
	first := 0
	for err := range results {
		if err == nil {
			first++
			continue
		}
		must.Want(t, err, storage.ErrConflict)
	}
	want(t, first, 1)
}

func calls(ctx context.Context, s storage.Store) map[string]error {
	errs := map[string]error{
		"Append":        s.Append(ctx, planOf(row(50))),
		"SetCheckpoint": s.SetCheckpoint(ctx, "", "late"),
	}
	_, errs["InChain"] = s.InChain(ctx, "odd", 0, 1)
	_, errs["LastOfChain"] = s.LastOfChain(ctx, "odd")
	_, errs["Waiting"] = s.Waiting(ctx, "one", 0, 1)
	_, errs["Owing"] = s.Owing(ctx)
	_, errs["Forget"] = s.Forget(ctx, "one")
	_, errs["Head"] = s.Head(ctx)
	_, errs["Rows"] = s.Rows(ctx, 0, 1)
	_, errs["ByRecordID"] = s.ByRecordID(ctx, "record-0")
	_, errs["ByDigest"] = s.ByDigest(ctx, row(0).Digest)
	_, errs["ByChain"] = s.ByChain(ctx, "odd")
	_, errs["Briefs"] = s.Briefs(ctx, storage.BriefQuery{N: 1})
	_, errs["RowsAt"] = s.RowsAt(ctx, []int64{0})
	_, errs["Places"] = s.Places(ctx, storage.Lookup{Keys: []int64{1}, Most: 1})
	_, errs["no Places"] = s.Places(ctx, storage.Lookup{})
	_, errs["BriefKeys"] = s.BriefKeys(ctx, 0, 1)
	_, errs["Replaced"] = s.Replaced(ctx)
	errs["PutBriefs"] = s.PutBriefs(ctx, storage.Range{}, nil)
	_, errs["Hashes"] = s.Hashes(ctx, []int64{0})
	_, errs["Checkpoint"] = s.Checkpoint(ctx)
	return errs
}

func cancelled(t *testing.T, s storage.Store) {
	rows := fill(t, s, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range calls(ctx, s) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	wantHead(t, s, 2)
	gives(t, rows)(s.Rows(t.Context(), 0, 10))
	must.Want(t, s.SetCheckpoint(t.Context(), "", "first"), nil)
}

// cancelledInPlan cancels the context after the transaction has begun. That is too late, because other callers depend
// on it.
func cancelledInPlan(t *testing.T, s storage.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	must.Want(t, s.Append(ctx, func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
		cancel()
		return planOf(row(0))(head, hashes)
	}), nil)
	wantHead(t, s, 1)
	must.Want(t, s.Append(t.Context(), planOf(row(1))), nil)
}

// waiting lets a writer wait for another until its context ends.
func waiting(t *testing.T, s storage.Store) {
	begun, finish := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		first <- s.Append(t.Context(), func(head storage.Head, hashes storage.Committed) (storage.Batch, error) {
			close(begun)
			<-finish
			return planOf(row(0))(head, hashes)
		})
	}()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error)
	go func() { second <- s.Append(ctx, planOf(row(1))) }()
	if head, err := s.Head(t.Context()); err != nil || head.Size != 0 {
		t.Errorf("reading beside a writer: %v, %v", head, err)
	}
	cancel()
	must.Want(t, <-second, context.Canceled)
	close(finish)
	must.Want(t, <-first, nil)
	wantHead(t, s, 1)
}

func closed(t *testing.T, s storage.Store) {
	fill(t, s, 1)
	must.Do(t, s.Close())
	for name, err := range calls(t.Context(), s) {
		if !errors.Is(err, storage.ErrClosed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
