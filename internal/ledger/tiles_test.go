package ledger_test

import (
	"bytes"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
)

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
	if top != head.Root {
		t.Errorf("the tiles give the root %v, but the signed root is %v", top, head.Root)
	}
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
	_, err := l.Seal(t.Context(), act(""), signers)
	wantError(t, err, ledger.ErrRefused)
	if _, err := l.Seal(t.Context(), act(""), signers[:14]); err != nil {
		t.Errorf("one that can be served: %v", err)
	}
	must(l.Checkpoint(t.Context()))
	if entries := must(l.EntryBundle(t.Context(), 0, 1)); len(entries[0]) > 65_535 || len(entries[0]) < 60_000 {
		t.Errorf("an entry of %d bytes", len(entries[0]))
	}
}
