// Package storetest checks every store of a log, every file store and all locks against their contracts.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
)

// Log checks a store against the contract of storage.Store. Every call of open returns a new, empty store.
func Log(t *testing.T, open func(t *testing.T) storage.Store) {
	for name, test := range map[string]func(kit){
		"append and read":     appendAndRead,
		"tags":                tags,
		"trials":              trials,
		"large batch":         largeBatch,
		"counts":              counts,
		"plans":               plans,
		"misfit":              misfit,
		"duplicate":           duplicate,
		"time stamps":         timestamps,
		"checkpoint":          checkpoint,
		"caller's memory":     callersMemory,
		"concurrent writers":  concurrentWriters,
		"cancelled":           cancelled,
		"waiting":             waiting,
		"closed":              closed,
		"outbox":              outbox,
		"outbox: all or none": outboxAllOrNone,
		"expires":             expires,
		"briefs":              briefs,
		"briefs later":        briefsLater,
		"dictionaries":        dictionaries,
		"packs":               packs,
	} {
		t.Run(name, func(t *testing.T) {
			k := kit{t, open(t)}
			t.Cleanup(func() { must.Want(t, k.Close(), nil) })
			test(k)
		})
	}
}

// A kit is a store under test. Its methods report what is wrong with the store.
type kit struct {
	*testing.T
	storage.Store
}

// add appends rows in one batch, and returns them with their places.
func (k kit) add(rows ...storage.Row) []storage.Row {
	k.Helper()
	k.plan(nil, func(b *storage.Batch) error { rows = b.Rows; return nil }, rows...)
	return rows
}

// plan appends rows after a change to their batch, and expects an error, which may be nil.
func (k kit) plan(want error, change func(*storage.Batch) error, rows ...storage.Row) {
	k.Helper()
	must.Want(k, k.Append(k.Context(), planOf(change, rows...)), want)
}

// sized checks the size and the root, which it computes from the hashes.
func (k kit) sized(size int64) {
	k.Helper()
	head := must.Get(k.Head(k.Context()))(k)
	must.Equal(k, head.Size, size)
	k.gives(head.Root)(tlog.TreeHash(size, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return k.Hashes(k.Context(), indexes) })))
}

// is compares what a store returned, but for how it packs rows.
func (k kit) is(got, want any) {
	k.Helper()
	must.Equal(k, cmp.Diff(want, got, cmp.Comparer(func(a, b storage.Packed) bool { return true })), "")
}

// gives expects what a call returns, and no error of it: k.gives(3)(strconv.Atoi("3")). A list that is empty may be nil.
func (k kit) gives(wanted any) func(any, error) {
	return func(got any, err error) {
		k.Helper()
		must.Want(k, err, nil)
		if list := reflect.ValueOf(got); list.Kind() != reflect.Slice || list.Len()+reflect.ValueOf(wanted).Len() > 0 {
			k.is(got, wanted)
		}
	}
}

// lacks expects storage.ErrNotFound of a call.
func (k kit) lacks(_ any, err error) {
	k.Helper()
	must.Want(k, err, storage.ErrNotFound)
}

var actors = []evidence.Digest{evidence.ActorTag(evidence.RoleAgent, "even"), evidence.ActorTag(evidence.RoleAgent, "odd")}

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

// rows makes the rows for the numbers from one to before another.
func rows(from, to int) (list []storage.Row) {
	for n := from; n < to; n++ {
		list = append(list, row(n))
	}
	return list
}

func leaf(r storage.Row) tlog.Hash { return tlog.RecordHash(r.Payload) }

// planOf appends rows at the end, as a ledger would, after a change to their batch; nil: there is none.
func planOf(change func(*storage.Batch) error, rows ...storage.Row) storage.Plan {
	return func(head storage.Head, log storage.Committed) (batch storage.Batch, err error) {
		known := tlog.HashReaderFunc(func(indexes []int64) (found []tlog.Hash, err error) {
			for _, index := range indexes {
				hash := make([]tlog.Hash, 1)
				if fresh := index - tlog.StoredHashCount(head.Size); fresh >= 0 {
					hash[0] = batch.Hashes[fresh]
				} else if hash, err = log.ReadHashes([]int64{index}); err != nil {
					return nil, err
				}
				found = append(found, hash...)
			}
			return found, nil
		})
		batch.Next = head
		for _, r := range rows {
			r.Index = batch.Next.Size
			stored, err := tlog.StoredHashesForRecordHash(r.Index, leaf(r), known)
			if err != nil {
				return batch, err
			}
			batch.Rows, batch.Hashes = append(batch.Rows, r), append(batch.Hashes, stored...)
			batch.Next.Size++
		}
		if batch.Next.Root, err = tlog.TreeHash(batch.Next.Size, known); err == nil && change != nil {
			err = change(&batch)
		}
		return batch, err
	}
}

// fill appends n rows, each alone.
func (k kit) fill(n int) (list []storage.Row) {
	k.Helper()
	for i := range n {
		list = append(list, k.add(row(i))...)
	}
	return list
}

func picked(rows []storage.Row, fits func(*storage.Row) bool) []storage.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r storage.Row) bool { return !fits(&r) })
}

func inChain(chain string) func(*storage.Row) bool {
	return func(r *storage.Row) bool { return chain != "" && r.ChainID == chain }
}

// briefsOf returns the briefs of rows as a store returns them. Only their own members are those of a row that is in no list.
func briefsOf(rows []storage.Row, list map[int64]storage.StoredBrief, names bool) (read []storage.StoredBrief) {
	for _, r := range rows {
		b := storage.StoredBrief{Index: r.Index, RecordID: r.RecordID, Digest: r.Digest, ChainID: r.ChainID, Case: r.Case, Line: list[r.Index].Line}
		if names {
			b.Names = list[r.Index].Names
		}
		read = append(read, b)
	}
	return read
}

// lists expects the briefs of rows from a query. A store may return no names as none or as an empty list.
func (k kit) lists(rows []storage.Row, list map[int64]storage.StoredBrief, q storage.BriefQuery) {
	k.Helper()
	got, err := k.Briefs(k.Context(), q)
	for i := range got {
		if len(got[i].Names) == 0 {
			got[i].Names = nil
		}
	}
	k.gives(briefsOf(rows, list, q.Names))(got, err)
}

// agrees compares all that is read of a log, by every range, with its rows and their briefs.
func (k kit) agrees(rows []storage.Row, list map[int64]storage.StoredBrief) {
	k.Helper()
	k.sized(int64(len(rows)))
	chains := map[string]bool{"none": true, "ODD": true, "": true}
	for _, r := range rows {
		k.gives(r)(k.ByRecordID(k.Context(), r.RecordID))
		k.gives(r)(k.ByDigest(k.Context(), r.Digest))
		chains[r.ChainID] = true
	}
	k.lacks(k.ByRecordID(k.Context(), "none"))
	k.lacks(k.ByDigest(k.Context(), evidence.Digest{}))
	for chain := range chains {
		if in := picked(rows, inChain(chain)); len(in) > 0 {
			k.gives(in)(k.ByChain(k.Context(), chain))
			k.gives(in[len(in)-1])(k.LastOfChain(k.Context(), chain))
			continue
		}
		k.lacks(k.ByChain(k.Context(), chain))
		k.lacks(k.LastOfChain(k.Context(), chain))
	}
	for from := int64(-1); from <= int64(len(rows))+1; from++ {
		k.agreesFrom(rows, list, chains, from, 100)
		k.agreesFrom(rows, list, chains, from, (from+1)%4)
	}
}

func (k kit) agreesFrom(rows []storage.Row, list map[int64]storage.StoredBrief, chains map[string]bool, from, n int64) {
	k.Helper()
	first := func(fits func(*storage.Row) bool) []storage.Row {
		all := picked(rows, func(r *storage.Row) bool { return r.Index >= from && fits(r) })
		return all[:min(len(all), int(n))]
	}
	between := picked(rows, func(r *storage.Row) bool { return r.Index >= from && r.Index < from+n })
	k.gives(between)(k.Rows(k.Context(), from, n))
	k.lists(between, list, storage.BriefQuery{From: from, N: n, Names: true})
	k.lists(between, list, storage.BriefQuery{From: from, N: n})
	inTrials := first(func(r *storage.Row) bool { return strings.HasPrefix(r.ChainID, evidence.TrialPrefix) })
	k.lists(inTrials, list, storage.BriefQuery{Trials: true, From: from, N: n})
	var keys []storage.BriefKey
	at, there := []int64{100_000}, []storage.Row(nil)
	for _, r := range slices.Backward(between) {
		if at = append(at, r.Index, r.Index-2, r.Index); r.Index > 1 {
			there = append(there, rows[r.Index-2])
		}
	}
	for _, r := range between {
		for _, key := range list[r.Index].Keys {
			keys = append(keys, storage.BriefKey{Index: r.Index, Key: key})
		}
	}
	k.gives(keys)(k.BriefKeys(k.Context(), from, n))
	there = slices.SortedFunc(slices.Values(append(there, between...)), func(a, b storage.Row) int { return int(a.Index - b.Index) })
	there = slices.CompactFunc(there, func(a, b storage.Row) bool { return a.Index == b.Index })
	k.gives(there)(k.RowsAt(k.Context(), at))
	k.lists(there, list, storage.BriefQuery{At: at, Names: true})
	for chain := range chains {
		k.gives(first(inChain(chain)))(k.InChain(k.Context(), chain, from, n))
		if chain != "" { // of all chains
			k.lists(first(inChain(chain)), list, storage.BriefQuery{Chain: chain, From: from, N: n})
		}
	}
	for _, tag := range append(actors, evidence.Digest{}) {
		k.gives(first(func(r *storage.Row) bool { return r.Counts.ActorSeq > 0 && r.Actor == tag }))(k.OfActor(k.Context(), tag, from, n))
		k.gives(first(func(r *storage.Row) bool { return r.Counts.SubjectSeq > 0 && r.Counts.Subject == tag }))(k.About(k.Context(), tag, from, n))
	}
}

func appendAndRead(k kit) {
	k.agrees(nil, nil)
	k.gives(storage.EmptyHead)(k.Head(k.Context()))
	k.gives("")(k.Checkpoint(k.Context()))
	k.owing()
	k.waits("one")
	k.gives([]storage.StoredBrief{})(k.Briefs(k.Context(), storage.BriefQuery{At: []int64{}}))
	k.gives([]tlog.Hash{})(k.Hashes(k.Context(), nil))
	k.lacks(k.Hashes(k.Context(), []int64{0}))
	list, at := k.fill(9), func(n int64) int64 { return tlog.StoredHashIndex(0, n) }
	k.agrees(list, nil)
	k.gives([]tlog.Hash{leaf(list[6]), leaf(list[2]), leaf(list[6])})(k.Hashes(k.Context(), []int64{at(6), at(2), at(6)}))
	k.lacks(k.Hashes(k.Context(), []int64{0, tlog.StoredHashCount(9)}))
}

// tags checks a log that did not count actors in the beginning. Once it has counted one, it takes no record without a count, nor a number twice.
func tags(k kit) {
	list := rows(0, 12)
	for i := range 2 {
		list[i].Actor, list[i].Counts.ActorSeq = evidence.Digest{}, 0
	}
	for i := range list {
		k.plan(nil, func(b *storage.Batch) error {
			b.Copied, list[i] = true, b.Rows[0] // so it begins with the second count of an actor, as a damaged log may
			return nil
		}, list[i])
	}
	k.agrees(list, nil)
	uncounted, twice := row(12), row(13)
	uncounted.Actor, uncounted.Counts = evidence.Digest{}, evidence.LogCounts{}
	twice.Counts.ActorSeq = 5
	must.Say(k, k.Append(k.Context(), planOf(nil, uncounted)), "the log counts actors, and record 12 is not counted")
	must.Want(k, k.Append(k.Context(), planOf(nil, twice)), storage.ErrDamaged)
	k.agrees(list, nil)
}

// trials checks that the records in trials are found among others.
func trials(k kit) {
	list, numbers := rows(0, 12), map[string]int64{}
	for i, chain := range []string{"", "trial-1", "odd", "trial-2", "trial-1", "trial", "trials-3", "Trial-4", "trial-", "trial.", "operator-trials", "trial-2"} {
		if list[i].ChainID, list[i].Counts.ChainSeq = chain, 0; chain != "" {
			numbers[chain]++
			list[i].Counts.ChainSeq = numbers[chain]
		}
	}
	k.agrees(append(k.add(list[:7]...), k.add(list[7:]...)...), nil)
}

func largeBatch(k kit) {
	k.add(rows(0, 37)...)
	k.add(rows(37, 300)...)
	k.sized(300)
}

// finds expects the answer to a query in a plan, which then returns an error.
func (k kit) finds(q storage.Query, wanted storage.Found) {
	k.Helper()
	stop := errors.New("stop")
	must.Want(k, k.Append(k.Context(), func(_ storage.Head, log storage.Committed) (storage.Batch, error) {
		k.gives(wanted)(log.Find(q))
		return storage.Batch{}, stop
	}), stop)
}

func counts(k kit) {
	k.finds(storage.Query{}, storage.NewFound())
	list, has := rows(0, 9), storage.NewFound()
	q := storage.Query{RecordIDs: []string{"record-3", "record-2", "", "record-0", "RECORD-1", "record-1", "record-2"}, Chains: []string{"even", "odd"},
		Cases: []evidence.Digest{list[2].Case, evidence.DigestOf(nil)}, Actors: append(actors, list[2].Case), Subjects: actors}
	for i, r := range list {
		k.finds(q, has)
		if k.add(r); i < 4 {
			has.Places[r.RecordID] = int64(i)
		}
		has.Chains[r.ChainID], has.Cases[r.Case], has.Subjects[r.Counts.Subject] = r.Counts.ChainSeq, r.Counts.CaseSeq, r.Counts.SubjectSeq
		delete(has.Chains, "")
		delete(has.Cases, evidence.Digest{})
		delete(has.Subjects, evidence.Digest{})
		has.Actors[r.Actor] = r.Counts.ActorSeq
	}
	k.finds(q, has)
}

// plans: a plan reads the log. After its error nothing is stored.
func plans(k kit) {
	list, refusal := k.fill(2), errors.New("no")
	k.plan(refusal, func(*storage.Batch) error { return refusal }, row(2))
	k.sized(2)
	k.add(row(2))
	ctx, cancel := context.WithCancel(k.Context())
	must.Want(k, k.Append(ctx, func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		cancel() // too late, because other callers depend on the transaction
		must.Equal(k, head.Size, 3)
		k.gives([]tlog.Hash{leaf(list[1])})(log.ReadHashes([]int64{tlog.StoredHashIndex(0, 1)}))
		k.lacks(log.ReadHashes([]int64{1000}))
		return planOf(nil, row(3))(head, log)
	}), nil)
	k.sized(4)
	k.add(row(4))
}

// misfit appends batches that do not fit. The store must refuse them.
func misfit(k kit) {
	k.fill(4)
	for name, spoil := range map[string]func(b *storage.Batch, r *storage.Row){
		"gap":                    func(_ *storage.Batch, r *storage.Row) { r.Index++ },
		"place taken":            func(_ *storage.Batch, r *storage.Row) { r.Index-- },
		"hash missing":           func(b *storage.Batch, _ *storage.Row) { b.Hashes = b.Hashes[1:] },
		"hash too many":          func(b *storage.Batch, _ *storage.Row) { b.Hashes = append(b.Hashes, tlog.Hash{}) },
		"wrong size":             func(b *storage.Batch, _ *storage.Row) { b.Next.Size++ },
		"nothing at all":         func(b *storage.Batch, _ *storage.Row) { b.Rows, b.Hashes = nil, nil },
		"wait of an earlier row": func(b *storage.Batch, _ *storage.Row) { b.Waits = []storage.Wait{{Index: 3, Authority: "one"}} },
		"wait of a later row":    func(b *storage.Batch, _ *storage.Row) { b.Waits = []storage.Wait{{Index: 5, Authority: "one"}} },
		"wait for nobody":        func(b *storage.Batch, _ *storage.Row) { b.Waits = []storage.Wait{{Index: 4}} },
		"brief of another row": func(b *storage.Batch, _ *storage.Row) {
			b.Briefs = []storage.StoredBrief{{Index: 5, Line: []byte("{}")}}
		},
		"stamp of a new row":        func(b *storage.Batch, _ *storage.Row) { b.Stamps = []storage.Stamp{late(4, "one")} },
		"stamp before the log":      func(b *storage.Batch, _ *storage.Row) { b.Stamps = []storage.Stamp{late(-1, "one")} },
		"an actor without a count":  func(_ *storage.Batch, r *storage.Row) { r.Counts.ActorSeq = 0 },
		"a count without an actor":  func(_ *storage.Batch, r *storage.Row) { r.Actor = evidence.Digest{} },
		"a subject without a count": func(_ *storage.Batch, r *storage.Row) { r.Counts.Subject = actors[0] },
		"a count without a subject": func(_ *storage.Batch, r *storage.Row) { r.Counts.SubjectSeq = 2 },
		"a subject without an actor": func(_ *storage.Batch, r *storage.Row) {
			r.Actor, r.Counts = evidence.Digest{}, evidence.LogCounts{Subject: actors[0], SubjectSeq: 2}
		},
	} {
		if k.Append(k.Context(), planOf(func(b *storage.Batch) error { spoil(b, &b.Rows[0]); return nil }, row(4))) == nil {
			k.Errorf("%s: appended", name)
		}
		k.sized(4)
	}
}

func duplicate(k kit) {
	other := row(7)
	other.RecordID = "record-1"
	for _, c := range []struct {
		first []storage.Row
		of    int64
		then  []storage.Row
	}{{nil, 0, []storage.Row{row(0), row(1), row(0)}}, {rows(0, 3), 1, []storage.Row{row(8), other}}, {nil, 0, rows(0, 1)}} {
		k.add(c.first...)
		head := must.Get(k.Head(k.Context()))(k)
		err := k.Append(k.Context(), planOf(nil, c.then...))
		must.Want(k, err, storage.ErrDuplicate)
		got, is := errors.AsType[*storage.DuplicateError](err)
		if !is {
			k.Fatal(err)
		}
		must.Equal(k, *got, storage.DuplicateError{RecordID: row(int(c.of)).RecordID, Index: c.of, Field: "record_id"})
		k.gives(head)(k.Head(k.Context()))
	}
	k.lacks(k.ByRecordID(k.Context(), "record-8")) // it came before the duplicate in its batch
	k.add(row(8))
	k.sized(4)
}

func timestamps(k kit) {
	list, renewal := k.fill(2), late(1, "") // a stamp for a row that does not wait
	for i := range 2 {                      // the second time changes nothing
		list = append(list, row(2+2*i))
		k.plan(nil, stamping(renewal), list[2+i])
		list[2+i].Index = int64(2 + i)
	}
	list[1].Timestamps = append(list[1].Timestamps, renewal.Timestamp)
	bare := row(5)
	bare.Timestamps, bare.Counts.ChainSeq, bare.Counts.CaseSeq = nil, 2, 2
	k.gives(list)(k.Rows(k.Context(), 0, 4))
	k.gives(list[1:2])(k.InChain(k.Context(), "odd", 1, 2)) // n counts rows, not their time stamps
	k.gives(k.add(bare)[0])(k.ByRecordID(k.Context(), bare.RecordID))
}

func checkpoint(k kit) {
	ctx := k.Context()
	must.Want(k, k.SetCheckpoint(ctx, "one", "two"), storage.ErrConflict)
	k.wantOneWinner(func(int) error { return k.SetCheckpoint(ctx, "", "one") })
	must.Want(k, k.SetCheckpoint(ctx, "", "two"), storage.ErrConflict)
	must.Want(k, k.SetCheckpoint(ctx, "one", "two\n— ünïcode"), nil)
	k.fill(1)
	k.gives("two\n— ünïcode")(k.Checkpoint(ctx))
}

func callersMemory(k kit) {
	r := row(0)
	k.add(r)
	r.Payload[0], r.Signatures[0][0], r.Timestamps[0].Token[0] = 'x', 'x', 'x'
	for range 2 {
		got := must.Get(k.ByRecordID(k.Context(), "record-0"))(k)
		k.is(got, row(0))
		got.Payload[0], got.Signatures[0][0], got.Timestamps[0].Token[0] = 'y', 'y', 'y'
	}
}

func concurrentWriters(k kit) {
	const writers, each = 8, 10
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for _, r := range rows(w*each, (w+1)*each) {
				r.Actor, r.Counts = evidence.Digest{}, evidence.LogCounts{ChainSeq: r.Counts.ChainSeq, CaseSeq: r.Counts.CaseSeq} // others may count first
				must.Want(k, k.Append(k.Context(), planOf(nil, r)), nil)
				must.Fail(k, nil)(k.Rows(k.Context(), 0, 100))
			}
		})
	}
	all.Wait()
	k.sized(writers * each)
	for _, r := range rows(0, writers*each) {
		must.Fail(k, nil)(k.ByRecordID(k.Context(), r.RecordID))
	}
}

// wantOneWinner checks that one of many concurrent calls succeeds, and the others fail with storage.ErrConflict.
func (k kit) wantOneWinner(call func(i int) error) {
	k.Helper()
	var all sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		all.Go(func() { results[i] = call(i) })
	}
	all.Wait()
	lost := slices.DeleteFunc(results, func(err error) bool { return err == nil })
	must.Len(k, lost, 7)
	for _, err := range lost {
		must.Want(k, err, storage.ErrConflict)
	}
}

// refuses expects an error of all that a store does.
func (k kit) refuses(ctx context.Context, wanted error) {
	k.Helper()
	of := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"Append":        k.Append(ctx, planOf(nil, row(50))),
		"SetCheckpoint": k.SetCheckpoint(ctx, "", "late"),
		"PutBriefs":     k.PutBriefs(ctx, storage.Range{}, nil),
		"InChain":       of(k.InChain(ctx, "odd", 0, 1)),
		"LastOfChain":   of(k.LastOfChain(ctx, "odd")),
		"Waiting":       of(k.Waiting(ctx, "one", 0, 1)),
		"Owing":         of(k.Owing(ctx)),
		"Forget":        of(k.Forget(ctx, "one")),
		"Head":          of(k.Head(ctx)),
		"Rows":          of(k.Rows(ctx, 0, 1)),
		"ByRecordID":    of(k.ByRecordID(ctx, "record-0")),
		"ByDigest":      of(k.ByDigest(ctx, row(0).Digest)),
		"ByChain":       of(k.ByChain(ctx, "odd")),
		"Briefs":        of(k.Briefs(ctx, storage.BriefQuery{N: 1})),
		"RowsAt":        of(k.RowsAt(ctx, []int64{0})),
		"Places":        of(k.Places(ctx, storage.Lookup{Keys: []int64{1}, Most: 1})),
		"no Places":     of(k.Places(ctx, storage.Lookup{})),
		"BriefKeys":     of(k.BriefKeys(ctx, 0, 1)),
		"Replaced":      of(k.Replaced(ctx)),
		"Hashes":        of(k.Hashes(ctx, []int64{0})),
		"Checkpoint":    of(k.Checkpoint(ctx)),
	} {
		if !errors.Is(err, wanted) {
			k.Errorf("%s: error %v", name, err)
		}
	}
}

func cancelled(k kit) {
	list := k.fill(2)
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	k.refuses(ctx, context.Canceled)
	k.agrees(list, nil)
	must.Want(k, k.SetCheckpoint(k.Context(), "", "first"), nil)
}

// waiting lets a writer wait for another until its context ends.
func waiting(k kit) {
	begun, finish, first, second := make(chan struct{}), make(chan struct{}), make(chan error), make(chan error)
	go func() {
		first <- k.Append(k.Context(), planOf(func(*storage.Batch) error {
			close(begun)
			<-finish
			return nil
		}, row(0)))
	}()
	<-begun
	ctx, cancel := context.WithCancel(k.Context())
	go func() { second <- k.Append(ctx, planOf(nil, row(1))) }()
	k.sized(0)
	cancel()
	must.Want(k, <-second, context.Canceled)
	close(finish)
	must.Want(k, <-first, nil)
	k.sized(1)
}

func closed(k kit) {
	k.fill(1)
	must.Do(k, k.Close())
	k.refuses(k.Context(), storage.ErrClosed)
}
