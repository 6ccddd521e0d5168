package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/sqlite"
	expect "jurat/internal/test/must"
)

func TestSealAndRead(t *testing.T) {
	l := folder(t.TempDir()).create(t)
	one := seal(t, l, `,"chain_id":"c-1","chain_position":1`)
	two := seal(t, l, "")
	three := seal(t, l, fmt.Sprintf(`,"chain_id":"c-1","chain_position":2,"previous_record":%q`, one.Digest))

	same := func(what string, got *evidence.Record, err error, want *evidence.Record) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		expect.Equal(t, cmp.Diff(string(must(want.Marshal())), string(must(got.Marshal()))), "")
		expect.Want(t, genuine(got, false), nil)
	}
	got, err := l.Record(t.Context(), two.Payload.RecordID)
	same("Record", got, err, two)
	got, err = l.RecordByDigest(t.Context(), three.Digest)
	same("RecordByDigest", got, err, three)
	chain, err := l.Chain(t.Context(), "c-1")
	expect.Need(t, err == nil && len(chain) == 2, "Chain = %v, %v", chain, err)
	same("Chain", chain[0], nil, one)
	same("Chain", chain[1], nil, three)
	all := []*evidence.Record{one, two, three}
	for from := range int64(4) {
		index := from
		for r, err := range l.Records(t.Context(), from) {
			same("Records", r.Record, err, all[index])
			index++
		}
		expect.Equal(t, index, 3)
	}
	_, err = l.Record(t.Context(), "no such id")
	wantError(t, err, ledger.ErrNotFound)
	_, err = l.Chain(t.Context(), "no such chain")
	wantError(t, err, ledger.ErrNotFound)
}

func TestSealApart(t *testing.T) {
	l, _ := alone(t)
	r := must(l.Seal(t.Context(), act("").SealingApart(nil, "/prompt"), actor))
	expect.Hold(t, len(r.Disclosures) == 1 && r.CheckDisclosures() == nil, "disclosures %v", r.Disclosures)
	stored, err := l.Record(t.Context(), r.Payload.RecordID)
	if err != nil || len(stored.Disclosures) != 0 || strings.Contains(string(stored.Canonical()), "May I?") {
		t.Errorf("the log has the text: %s, %v", stored.Canonical(), err)
	}
}

// outage is an authority that fails in several ways.
type outage struct {
	tokens  [][]byte
	missing []ledger.Missing
	err     error
}

func (o outage) Stamp(context.Context, [32]byte) (ledger.Stamped, error) {
	return ledger.Stamped{Tokens: o.tokens, Missing: o.missing}, o.err
}

func TestNoTokenNoRecord(t *testing.T) {
	down := errors.New("503")
	for name, stamper := range map[string]ledger.Stamper{
		"none":    nil,
		"down":    outage{err: down},
		"silent":  outage{},
		"empty":   outage{tokens: [][]byte{{}}},
		"too big": outage{tokens: [][]byte{{1}, make([]byte, evidence.MaxToken+1)}},
	} {
		c := config(fresh(t))
		c.Stamper = stamper
		l := must(ledger.Create(t.Context(), c))
		if _, err := l.Seal(t.Context(), act(""), actor); err == nil {
			t.Errorf("%s: sealed", name)
		} else if name == "down" {
			wantError(t, err, down)
		} else if name == "none" {
			wantError(t, err, ledger.ErrReadOnly)
			wantError(t, l.CanAppend(t.Context()), ledger.ErrReadOnly)
		}
		expect.Give(l.Size(t.Context()))(t, 0, name, "records")
	}
}

func TestDuplicate(t *testing.T) {
	l, _ := alone(t)
	const id = "01890000-0000-7000-8000-000000000001"
	mine := fmt.Sprintf(`,"record_id":%q`, id)
	seal(t, l, mine)
	_, err := l.Seal(t.Context(), act(mine), actor)
	var duplicate *ledger.DuplicateError
	expect.Hold(t, errors.As(err, &duplicate) && duplicate.RecordID == id, "error %v", err)
	seal(t, l, "")
}

func TestCreateAndOpen(t *testing.T) {
	ctx := t.Context()
	empty := fresh(t)
	fails(t, ledger.ErrNoLog)(ledger.Open(ctx, config(empty)))
	l := must(ledger.Create(ctx, config(empty)))
	fails(t, ledger.ErrExists)(ledger.Create(ctx, config(empty)))
	sealMany(t, l, 40)
	fails(t, nil)(ledger.Open(ctx, config(empty)))
	foreign := config(empty)
	foreign.Signer, foreign.Verifier = otherSigner, otherVerifier
	fails(t, ledger.ErrCheckpoint)(ledger.Open(ctx, foreign))
	foreign.Verifier = logVerifier
	fails(t, ledger.ErrCheckpoint)(ledger.Open(ctx, foreign))
	keyless := config(fresh(t))
	keyless.Signer = nil
	fails(t, ledger.ErrReadOnly)(ledger.Create(ctx, keyless))
}

func TestDatabaseMissing(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	sealMany(t, l, 3)
	must(l.Checkpoint(t.Context()))
	l.Close()
	succeeds(t, os.Remove(f.database()))
	_, err := f.open(t)
	wantError(t, err, fs.ErrNotExist)
	store := must(sqlite.Create(t.Context(), f.database()))
	defer store.Close()
	_, err = ledger.Create(t.Context(), f.config(store)) // a second history under one key
	wantError(t, err, ledger.ErrExists)
	_, err = ledger.Open(t.Context(), f.config(store))
	wantError(t, err, ledger.ErrNoLog)
}

func TestCheckpoint(t *testing.T) {
	l, c := alone(t)
	empty := must(l.Checkpoint(t.Context()))
	expect.Equal(t, must(l.Checkpoint(t.Context())), empty)
	records := sealMany(t, l, 5)
	signed := must(l.Checkpoint(t.Context()))
	checkpoint, err := operator.OpenCheckpoint(signed, logVerifier)
	expect.Need(t, err == nil && checkpoint.Size == 5, "%+v, %v", checkpoint, err)
	var leaves []tlog.Hash
	for i, r := range records {
		leaves = append(leaves, tlog.RecordHash(r.LogEntry(evidence.LogCounts{ActorSeq: int64(i + 1)})))
	}
	expect.Equal(t, rootOf(leaves), checkpoint.Root)
	keyless := c
	keyless.Signer = nil
	reader := must(ledger.Open(t.Context(), keyless))
	expect.Give(reader.Checkpoint(t.Context()))(t, signed)
	seal(t, l, "")
	_, err = reader.Checkpoint(t.Context())
	wantError(t, err, ledger.ErrReadOnly)
}

// rootOf computes the root literally as in RFC 6962, section 2.1.
func rootOf(leaves []tlog.Hash) tlog.Hash {
	if len(leaves) == 1 {
		return leaves[0]
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	return tlog.NodeHash(rootOf(leaves[:k]), rootOf(leaves[k:]))
}

// TestProofs checks every inclusion and many consistency proofs for sizes around powers of two.
func TestProofs(t *testing.T) {
	const most = 130
	l, _ := alone(t)
	var leaves, roots []tlog.Hash
	var records []*evidence.Record
	for size := int64(1); size <= most; size++ {
		records = append(records, seal(t, l, ""))
		leaves = append(leaves, tlog.RecordHash(records[size-1].LogEntry(evidence.LogCounts{ActorSeq: size})))
		roots = append(roots, rootOf(leaves))
		must(l.Checkpoint(t.Context()))
		for index, r := range must(l.Prove(t.Context(), records...)).Records {
			var proof tlog.RecordProof
			for _, node := range r.Log.Proof {
				proof = append(proof, tlog.Hash(node))
			}
			expect.Do(t, tlog.CheckRecord(proof, size, roots[size-1], int64(index), leaves[index]))
		}
		for old := int64(1); old <= size; old++ {
			proof, err := l.ProveConsistency(t.Context(), old, size)
			if err == nil {
				err = tlog.CheckTree(proof, size, roots[size-1], old, roots[old-1])
			}
			expect.Need(t, err == nil, "%d in %d: %v", old, size, err)
		}
	}
	for _, bad := range [][2]int64{{-1, 5}, {6, 5}, {5, 131}} {
		if _, err := l.ProveConsistency(t.Context(), bad[0], bad[1]); err == nil {
			t.Errorf("proved consistency of %d with %d", bad[0], bad[1])
		}
	}
}

func checkProof(t *testing.T, r *evidence.Record, signed string) {
	t.Helper()
	c := must(operator.OpenCheckpoint(signed, logVerifier))
	var proof tlog.RecordProof
	for _, node := range r.Log.Proof {
		proof = append(proof, tlog.Hash(node))
	}
	expect.Want(t, tlog.CheckRecord(proof, c.Size, c.Root, r.Log.Index, tlog.RecordHash(r.LogEntry(r.Log.Counts()))), nil)
}

func TestProve(t *testing.T) {
	l, _ := alone(t)
	records := sealMany(t, l, 9)
	bundle := must(l.Prove(t.Context(), records[7], records[2], records[7], records[0]))
	again, err := evidence.ParseBundle(must(bundle.Marshal()))
	expect.Need(t, err == nil && len(again.Records) == 3, "%v, %v", again, err)
	for i, index := range []int64{0, 2, 7} {
		r := again.Records[i]
		expect.Hold(t, r.Log.Index == index && r.Digest == records[index].Digest, "record %d of the bundle is %d", i, r.Log.Index)
		checkProof(t, again.Records[i], again.Checkpoint)
	}
	expect.Hold(t, records[7].Log == nil, "the caller's record was changed")
	sealMany(t, l, 3)
	one := must(l.ProveOne(t.Context(), records[4]))
	expect.Equal(t, one.Log.Checkpoint, bundle.Checkpoint)
	opened := must(evidence.Open(must(one.Marshal())))
	checkProof(t, opened, opened.Log.Checkpoint)
	other, _ := alone(t)
	_, err = l.Prove(t.Context(), seal(t, other, ""))
	wantError(t, err, ledger.ErrNotFound)
	resigned := must(evidence.OpenParts(records[0].Canonical(), [][]byte{{1}}, nil))
	_, err = l.Prove(t.Context(), resigned)
	wantError(t, err, ledger.ErrNotFound)
}

func TestConcurrentSealers(t *testing.T) { onBoth(t, testConcurrentSealers) }

func testConcurrentSealers(t *testing.T, f folder) {
	l := f.create(t)
	second := must(f.open(t)) // as in another process
	const sealers, each = 16, 8
	var wg sync.WaitGroup
	ids := make(chan string, sealers*each)
	for i := range sealers {
		l := []*ledger.Ledger{l, second}[i%2]
		wg.Go(func() {
			for n := range each {
				r, err := l.Seal(t.Context(), act(fmt.Sprintf(`,"chain_id":"c-%d"`, i)), actor)
				if err != nil {
					t.Error(err)
					return
				}
				ids <- r.Payload.RecordID
				if n%3 == 0 {
					fails(t, nil)(l.ProveOne(t.Context(), r))
				}
				chain, err := l.Chain(t.Context(), fmt.Sprint("c-", i))
				expect.Hold(t, err == nil && len(chain) == n+1, "chain of %d, %v, after %d", len(chain), err, n+1)
			}
		})
	}
	wg.Wait()
	close(ids)
	var acknowledged []string
	for id := range ids {
		acknowledged = append(acknowledged, id)
	}
	expect.Equal(t, len(acknowledged), sealers*each)
	wantOnce(t, l, acknowledged)
	wantClean(t, f.fsck(t))
	latest := must(l.Checkpoint(t.Context()))
	expect.Equal(t, must(f.published().Load(t.Context())), latest)
}

func TestCancelled(t *testing.T) {
	l, c := alone(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fails(t, context.Canceled)(l.Seal(ctx, act(""), actor))
	fails(t, context.Canceled)(l.Checkpoint(ctx))
	for _, err := range l.Records(ctx, 0) {
		wantError(t, err, context.Canceled)
	}
	expect.Give(l.Size(t.Context()))(t, 0)
	wantClean(t, damagesOf(t, c))
}

// TestCounts checks that the log counts the records of each chain and actor, and the submissions of each case, for every
// caller, and proves the counts with the place.
func TestCounts(t *testing.T) {
	l, _ := alone(t)
	digest := evidence.DigestOf([]byte("case"))
	submit := func(chain string) *evidence.Record {
		t.Helper()
		draft := must(evidence.NewDraft(evidence.Payload{ActionType: evidence.Submission, AgentID: "s", Timestamp: "2026-01-01T00:00:00Z",
			ChainID: chain, ChainPosition: 1, Case: digest, Response: []byte("{}")}))
		return must(l.Seal(t.Context(), draft, actor))
	}
	records := []*evidence.Record{submit("trial-1"), seal(t, l, `,"chain_id":"c"`), seal(t, l, ""), submit("trial-2"), seal(t, l, `,"chain_id":"c"`)}
	bundle := must(l.Prove(t.Context(), records...))
	want := []evidence.LogCounts{{ActorSeq: 1, ChainSeq: 1, CaseSeq: 1}, {ActorSeq: 1, ChainSeq: 1}, {ActorSeq: 2}, {ActorSeq: 2, ChainSeq: 1, CaseSeq: 2},
		{ActorSeq: 3, ChainSeq: 2}}
	for i, r := range bundle.Records {
		expect.Equal(t, r.Log.Counts(), want[i])
	}
}

// TestDamagedKeyChain checks that a log with damaged key events refuses records with an error, and does not retry for
// ever.
func TestDamagedKeyChain(t *testing.T) {
	for name, statement := range map[string]string{
		"counted higher": `UPDATE records SET chain_seq = 7 WHERE idx = 1`,
		"one taken out":  `DELETE FROM records WHERE idx = 0`,
		"the order":      `UPDATE records SET chain_seq = 3 - chain_seq WHERE idx < 2`,
	} {
		t.Run(name, func(t *testing.T) {
			f := folder(t.TempDir())
			l := f.create(t)
			newOwner(t, "a", false).register(t, l)
			newOwner(t, "b", false).register(t, l)
			sealMany(t, l, 20) // not read by Open
			l.Close()
			f.rewrite(t, statement)
			c := f.config(must(f.store(t)))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			l, err := ledger.Open(ctx, c)
			if err == nil {
				_, err = l.Seal(ctx, act(""), actor)
				wantError(t, err, ledger.ErrDamaged)
				_, err = l.SealNext(ctx, operator.KeysChain, actor, func([]*evidence.Record) ([]evidence.Payload, error) {
					return []evidence.Payload{{ActionType: evidence.KeyEvent, AgentID: ledger.OperatorName}}, nil
				})
			}
			wantError(t, err, ledger.ErrDamaged)
		})
	}
}

// TestKeysOfAnotherProcess checks that a key event of one process takes effect in every other at once, even if it has
// cached the keys. Of two events that processes seal at the same time, each is judged after the one before it.
func TestKeysOfAnotherProcess(t *testing.T) {
	onBoth(t, func(t *testing.T, f folder) {
		here := f.create(t)
		elsewhere := must(f.open(t))
		a, b := newOwner(t, "a", false), newOwner(t, "b", false)
		says := func(l *ledger.Ledger, o *owner) error {
			_, err := l.Accept(t.Context(), o.says(t, ""))
			return err
		}
		expect.Hold(t, says(elsewhere, a) != nil, "a key was accepted that is not registered") // it has read that there are no keys
		a.register(t, here)
		wantError(t, says(elsewhere, a), nil)
		succeeds(t, tell(here, t, a.event(operator.KeyRevoked, 0, evidence.RoleAgent)))
		wantError(t, says(elsewhere, a), keys.ErrEnded)
		fails(t, keys.ErrEnded)(elsewhere.Seal(t.Context(), must(evidence.ParseDraft(signedDraft("a"))), a.signers))

		done := make(chan error)
		for _, l := range []*ledger.Ledger{here, elsewhere} {
			go func() { done <- tell(l, t, b.event(operator.KeyRegistered, 0, evidence.RoleAgent)) }()
		}
		one, two := <-done, <-done
		expect.Hold(t, (one == nil) != (two == nil), "of two registrations of one key, one must be refused: %v, %v", one, two)
		for _, l := range []*ledger.Ledger{here, elsewhere} {
			expect.Equal(t, len(must(l.Keys(t.Context())).Active(evidence.RoleAgent, "b", time.Now())), 1)
			wantError(t, says(l, b), nil)
		}
		f.wantSound(t)
	})
}

// TestEntries checks that Entries returns what was hashed, each entry in its place.
func TestEntries(t *testing.T) {
	const n = 70 // more than two pages
	l, _ := alone(t)
	for i := range n {
		seal(t, l, []string{"", `,"chain_id":"one"`, `,"chain_id":"another"`}[i%3])
	}
	signed := must(l.Checkpoint(t.Context()))
	head := must(operator.OpenCheckpoint(signed, logVerifier))
	var leaves []tlog.Hash
	for _, part := range [][2]int64{{0, n}, {0, 0}, {0, 1}, {31, 33}, {69, n}, {n, n}} {
		index := part[0]
		for entry, err := range l.Entries(t.Context(), part[0], part[1]) {
			succeeds(t, err)
			if leaf := tlog.RecordHash(entry); int64(len(leaves)) == index {
				leaves = append(leaves, leaf)
			} else {
				expect.Equal(t, leaf, leaves[index])
			}
			_, err := evidence.ParseEntry(entry)
			expect.Need(t, err == nil, "entry %d: %v", index, err)
			index++
		}
		expect.Equal(t, index, part[1])
	}
	expect.Equal(t, rootOf(leaves), head.Root)
	for _, bad := range [][2]int64{{-1, 5}, {6, 5}, {0, n + 1}} {
		for entry, err := range l.Entries(t.Context(), bad[0], bad[1]) {
			expect.Hold(t, err != nil, "%v: %s", bad, entry)
		}
	}
	for range l.Entries(t.Context(), 0, n) { // a caller that has seen enough stops
		break
	}
}

// TestEntriesOfADamagedLog checks that a row that differs from what was logged is not returned.
func TestEntriesOfADamagedLog(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	for range 3 {
		seal(t, l, `,"chain_id":"one"`)
	}
	f.rewrite(t, `UPDATE records SET chain_seq = 7 WHERE idx = 1`)
	var failed error
	given := 0
	for _, err := range l.Entries(t.Context(), 0, 3) {
		if failed = err; err == nil {
			given++
		}
	}
	expect.Hold(t, errors.Is(failed, ledger.ErrDamaged), "%d entries, error %v", given, failed)
}

func TestSizeAt(t *testing.T) {
	l, _ := alone(t)
	seal(t, l, "")
	old := must(l.Checkpoint(t.Context()))
	seal(t, l, "")
	expect.Give(l.SizeAt(t.Context(), old))(t, 1)
	root := must(operator.OpenCheckpoint(old, logVerifier)).Root
	for _, tt := range []struct {
		name   string
		signed string
		want   error
	}{
		{"another log's", must(operator.SignCheckpoint(operator.Checkpoint{Origin: otherSigner.Name(), Size: 1, Root: root}, otherSigner)), ledger.ErrCheckpoint},
		{"of a longer log", must(operator.SignCheckpoint(operator.Checkpoint{Origin: logSigner.Name(), Size: 3, Root: root}, logSigner)), ledger.ErrBehind},
		{"of another history", must(operator.SignCheckpoint(operator.Checkpoint{Origin: logSigner.Name(), Size: 2, Root: root}, logSigner)), ledger.ErrForked},
	} {
		expect.Fail(t, tt.want, tt.name)(l.SizeAt(t.Context(), tt.signed))
	}
}

func TestConsistencyOfALedger(t *testing.T) {
	l, _ := alone(t)
	var roots []operator.Checkpoint
	for range 6 {
		seal(t, l, "")
		roots = append(roots, must(operator.OpenCheckpoint(must(l.Checkpoint(t.Context())), logVerifier)))
	}
	proof := must(l.Consistency(t.Context(), 3, 6))
	wantError(t, proof.Check(roots[2], roots[5]), nil)
	fails(t, ledger.ErrNotFound)(l.Consistency(t.Context(), 3, 7))
}

// TestTiles checks that a tile has the hashes of its level, only as far as a checkpoint covers them.
func TestTiles(t *testing.T) {
	l, _ := alone(t)
	sealMany(t, l, 260)
	wantError(t, second(l.Tile(t.Context(), 0, 0, 1)), ledger.ErrNotFound) // nothing is signed yet
	wantError(t, second(l.EntryBundle(t.Context(), 0, 1)), ledger.ErrNotFound)
	head := must(operator.OpenCheckpoint(must(l.Checkpoint(t.Context())), logVerifier))
	seal(t, l, "")

	first, rest := must(l.Tile(t.Context(), 0, 0, 256)), must(l.Tile(t.Context(), 0, 1, 4))
	entries := must(l.EntryBundle(t.Context(), 0, 256))
	for i, entry := range entries {
		leaf := tlog.RecordHash(entry)
		expect.Need(t, bytes.Equal(leaf[:], first[i*tlog.HashSize:(i+1)*tlog.HashSize]), "entry %d is not under its leaf", i)
	}
	above := must(l.Tile(t.Context(), 1, 0, 1))
	top := tlog.NodeHash(tlog.Hash(above), treeOf(rest))
	expect.Equal(t, top, head.Root)
	for _, bad := range []struct {
		level int
		index int64
		width int
	}{{0, 1, 5}, {0, 1, 256}, {0, 2, 1}, {1, 0, 2}, {1, 1, 1}, {2, 0, 1}, {8, 0, 1}, {63, 0, 1}, {-1, 0, 1}, {0, -1, 1}, {0, 0, 0}, {0, 0, 257}, {0, 1 << 55, 1}, {0, 1<<63 - 1, 256}} {
		wantError(t, second(l.Tile(t.Context(), bad.level, bad.index, bad.width)), ledger.ErrNotFound)
		if bad.level == 0 {
			wantError(t, second(l.EntryBundle(t.Context(), bad.index, bad.width)), ledger.ErrNotFound)
		}
	}
	must(l.Checkpoint(t.Context()))
	must(l.Tile(t.Context(), 0, 1, 5))
}

func second[T any](_ T, err error) error { return err }

// treeOf hashes four leaves.
func treeOf(leaves []byte) tlog.Hash {
	at := func(i int) tlog.Hash { return tlog.Hash(leaves[i*tlog.HashSize : (i+1)*tlog.HashSize]) }
	return tlog.NodeHash(tlog.NodeHash(at(0), at(1)), tlog.NodeHash(at(2), at(3)))
}

// TestTileOfADamagedLog checks that a missing hash under a signed checkpoint counts as damage, not as a part that will
// come later.
func TestTileOfADamagedLog(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	sealMany(t, l, 20)
	must(l.Checkpoint(t.Context()))
	f.rewrite(t, `DELETE FROM tags WHERE idx = 4`)
	wantError(t, second(l.Tile(t.Context(), 0, 0, 20)), ledger.ErrDamaged)
	l.Close()
}

// TestEntryThatNoBundleHolds checks that a record whose entry is too long to be served is refused.
func TestEntryThatNoBundleHolds(t *testing.T) {
	l, _ := alone(t)
	var signers []evidence.Signer
	for i := range 15 {
		seed := [32]byte{byte(i)}
		signers = append(signers, must(evidence.NewSigner(evidence.NewMLDSA65(&seed), nil)))
	}
	fails(t, ledger.ErrRefused)(l.Seal(t.Context(), act(""), signers))
	fails(t, nil)(l.Seal(t.Context(), act(""), signers[:14]))
	must(l.Checkpoint(t.Context()))
	entries := must(l.EntryBundle(t.Context(), 0, 1))
	expect.Hold(t, len(entries[0]) <= 65_535 && len(entries[0]) >= 60_000, "an entry of %d bytes", len(entries[0]))
}
