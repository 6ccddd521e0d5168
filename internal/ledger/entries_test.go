package ledger_test

import (
	"errors"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
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
	if size, err := l.SizeAt(t.Context(), old); size != 1 || err != nil {
		t.Errorf("%d, %v", size, err)
	}
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
	if err := proof.Check(roots[2], roots[5]); err != nil {
		t.Error(err)
	}
	if _, err := l.Consistency(t.Context(), 3, 7); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("beyond the end: %v", err)
	}
}
