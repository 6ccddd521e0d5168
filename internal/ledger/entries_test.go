package ledger_test

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	expect "jurat/internal/must"
)

// TestEntries checks that Entries returns what was hashed, each entry in its place.
func TestEntries(t *testing.T) {
	const n = 70 // more than two pages
	l, _ := alone(t)
	for i := range n {
		seal(t, l, []string{"", `,"chain_id":"one"`, `,"chain_id":"another"`}[i%3])
	}
	signed := must(l.Checkpoint(t.Context()))
	head := must(operator.OpenCheckpoint(signed, logVerifier))
	for _, part := range [][2]int64{{0, n}, {0, 0}, {0, 1}, {31, 33}, {69, n}, {n, n}} {
		index := part[0]
		for entry, err := range l.Entries(t.Context(), part[0], part[1]) {
			if err != nil {
				t.Fatal(err)
			}
			proof := must(l.ProveInclusion(t.Context(), index, n))
			if err := tlog.CheckRecord(proof, n, head.Root, index, tlog.RecordHash(entry)); err != nil {
				t.Fatalf("entry %d: %v", index, err)
			}
			if _, err := evidence.ParseEntry(entry); err != nil {
				t.Fatalf("entry %d: %v", index, err)
			}
			index++
		}
		if index != part[1] {
			t.Errorf("%v: ended at %d", part, index)
		}
	}
	for _, bad := range [][2]int64{{-1, 5}, {6, 5}, {0, n + 1}} {
		for entry, err := range l.Entries(t.Context(), bad[0], bad[1]) {
			if err == nil {
				t.Errorf("%v: %s", bad, entry)
			}
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
	if !errors.Is(failed, ledger.ErrDamaged) {
		t.Errorf("%d entries, error %v", given, failed)
	}
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
		if _, err := l.SizeAt(t.Context(), tt.signed); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
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
		if leaf := tlog.RecordHash(entry); !bytes.Equal(leaf[:], first[i*tlog.HashSize:(i+1)*tlog.HashSize]) {
			t.Fatalf("entry %d is not under its leaf", i)
		}
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
	f.rewrite(t, `DELETE FROM hashes WHERE idx = `+itoa(tlog.StoredHashIndex(0, 4)))
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
	if entries := must(l.EntryBundle(t.Context(), 0, 1)); len(entries[0]) > 65_535 || len(entries[0]) < 60_000 {
		t.Errorf("an entry of %d bytes", len(entries[0]))
	}
}
