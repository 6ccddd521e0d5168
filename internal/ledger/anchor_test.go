package ledger_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/memory"
)

// anchor has an authority stamp the checkpoint that it has not stamped yet, as the fixture's authorities do.
func anchor(t testing.TB, l *ledger.Ledger, authority string) (*evidence.Record, bool) {
	t.Helper()
	checkpoint := must(l.Unanchored(t.Context(), authority, must(l.Checkpoint(t.Context()))))
	if checkpoint == "" {
		return nil, false
	}
	digest := sha256.Sum256([]byte(checkpoint))
	body := operator.CheckpointStampBody{Authority: authority, Checkpoint: checkpoint, Token: append([]byte(authority), digest[:]...)}
	return must(l.Anchor(t.Context(), body, actor)), true
}

// wantUnder checks the proof of a record, the size of its checkpoint, and which authorities stamped that.
func wantUnder(t *testing.T, l *ledger.Ledger, r *evidence.Record, size int64, authorities ...string) {
	t.Helper()
	one := must(l.ProveOne(t.Context(), r))
	checkProof(t, one, one.Log.Checkpoint)
	if got := must(operator.OpenCheckpoint(one.Log.Checkpoint, logVerifier)).Size; got != size {
		t.Errorf("record %d is proved against %d records, want %d", one.Log.Index, got, size)
	}
	var want []string
	digest := sha256.Sum256([]byte(one.Log.Checkpoint))
	for _, a := range authorities {
		want = append(want, a+string(digest[:]))
	}
	var got []string
	for _, stamp := range one.Log.CheckpointTimestamps {
		got = append(got, string(stamp.Token))
	}
	if !slices.Equal(got, want) {
		t.Errorf("record %d: stamped by %q, want %q", one.Log.Index, got, want)
	}
}

// TestAnchor checks that a record is proved under the earliest stamped checkpoint over it, and that acts about stamps
// cause no further stamps.
func TestAnchor(t *testing.T) {
	l, c := inMemory(t)
	if act, ok := anchor(t, l, "one"); ok {
		t.Fatalf("an empty log was stamped: %v", act)
	}
	records := sealMany(t, l, 40)
	wantUnder(t, l, records[0], 40)
	first, _ := anchor(t, l, "one") // at 40
	if first.Payload.ChainID != operator.CheckpointsChain || !first.Payload.PreviousRecord.IsZero() {
		t.Errorf("chain %q, previous record %v", first.Payload.ChainID, first.Payload.PreviousRecord)
	}
	for range 3 {
		if act, ok := anchor(t, l, "one"); ok {
			t.Fatalf("stamped again: %v", act)
		}
	}
	second, _ := anchor(t, l, "two") // at 41: the same checkpoint
	if second.Payload.PreviousRecord != first.Digest {
		t.Error("the second act does not follow the first")
	}
	for _, authority := range []string{"one", "two"} {
		if act, ok := anchor(t, l, authority); ok {
			t.Fatalf("stamped again: %v", act)
		}
	}
	wantUnder(t, l, records[0], 40, "one", "two")
	wantUnder(t, l, records[39], 40, "one", "two")

	later := seal(t, l, "") // at 42
	wantUnder(t, l, later, 43)
	anchor(t, l, "two") // at 43, over 43
	anchor(t, l, "one") // at 44, the same
	wantUnder(t, l, later, 43, "two", "one")
	wantUnder(t, l, records[7], 40, "one", "two")
	wantUnder(t, l, first, 43, "two", "one")
	bundle := must(l.Prove(t.Context(), records[7], later))
	if size := must(operator.OpenCheckpoint(bundle.Checkpoint, logVerifier)).Size; size != 43 || len(bundle.CheckpointTimestamps) != 2 {
		t.Errorf("both are proved against %d records, with %d stamps", size, len(bundle.CheckpointTimestamps))
	}
	if again, err := evidence.ParseBundle(must(bundle.Marshal())); err != nil || len(again.CheckpointTimestamps) != 2 {
		t.Errorf("the bundle: %v", err)
	}

	must(l.Checkpoint(t.Context()))
	latest := must(l.ProveLatest(t.Context(), records[7]))
	one := must(l.ProveOneLatest(t.Context(), records[7]))
	for _, checkpoint := range []string{latest.Checkpoint, one.Log.Checkpoint} {
		if size := must(operator.OpenCheckpoint(checkpoint, logVerifier)).Size; size != 45 {
			t.Errorf("the latest checkpoint is over %d records, want 45", size)
		}
	}
	if latest.CheckpointTimestamps != nil || one.Log.CheckpointTimestamps != nil {
		t.Error("the latest checkpoint has the stamps of another")
	}
	wantClean(t, damagesOf(t, c))
}

// TestManyAnchors checks that acts after the first page are found.
func TestManyAnchors(t *testing.T) {
	l, _ := inMemory(t)
	r := seal(t, l, "")
	var names []string
	for i := range 70 {
		names = append(names, fmt.Sprintf("authority-%02d", i))
		anchor(t, l, names[i])
	}
	wantUnder(t, l, r, 1, names...)
	if act, ok := anchor(t, l, names[0]); ok {
		t.Errorf("stamped again: %v", act)
	}
	next := seal(t, l, "")
	anchor(t, l, names[0])
	wantUnder(t, l, next, 72, names[0])
	wantUnder(t, l, r, 1, names...)
}

// TestAnchorRefuses checks that a checkpoint of another log is not sealed, and not used for proofs if it was sealed
// nevertheless.
func TestAnchorRefuses(t *testing.T) {
	l, _ := inMemory(t)
	r := seal(t, l, "")
	foreign := must(operator.SignCheckpoint(operator.Checkpoint{Origin: otherSigner.Name(), Size: 7}, otherSigner))
	body := operator.CheckpointStampBody{Authority: "one", Checkpoint: foreign, Token: []byte{1}}
	_, err := l.Anchor(t.Context(), body, actor)
	wantError(t, err, ledger.ErrCheckpoint)
	draft := func(response []byte) *evidence.Draft {
		return must(evidence.NewDraft(evidence.Payload{ActionType: evidence.CheckpointStamp, AgentID: "x", Timestamp: "2026-01-01T00:00:00Z",
			ChainID: operator.CheckpointsChain, Response: response}))
	}
	must(l.Seal(t.Context(), draft(must(operator.Encode(body))), actor))
	_, err = l.ProveOne(t.Context(), r)
	wantError(t, err, ledger.ErrCheckpoint)
	_, err = l.Unanchored(t.Context(), "two", must(l.Checkpoint(t.Context())))
	wantError(t, err, ledger.ErrCheckpoint)
	if _, err := l.ProveOneLatest(t.Context(), r); err != nil {
		t.Error(err)
	}

	l, _ = inMemory(t)
	r = seal(t, l, "")
	must(l.Seal(t.Context(), draft([]byte(`{"authority":"one"}`)), actor))
	_, err = l.ProveOne(t.Context(), r)
	wantError(t, err, ledger.ErrDamaged)

	// A checkpoint over another history of this log proves nothing, and is not returned.
	fork := must(operator.SignCheckpoint(operator.Checkpoint{Origin: logSigner.Name(), Size: 1}, logSigner))
	l, _ = inMemory(t)
	r = seal(t, l, "")
	body.Checkpoint = fork
	must(l.Anchor(t.Context(), body, actor))
	_, err = l.ProveOne(t.Context(), r)
	wantError(t, err, ledger.ErrDamaged)
}

// TestAnchorsNeverWait checks that acts about stamps do not cause each other without end while an authority comes and
// goes.
func TestAnchorsNeverWait(t *testing.T) {
	c := config(memory.New())
	c.Stamper, c.Settler = halfSilent{silent("one")}, halfSilent{silent("one")}
	l := must(ledger.Create(t.Context(), c))
	seal(t, l, "")
	steps := 0
	for ; steps < 10; steps++ { // as a schedule would
		_, stamped := anchor(t, l, "two")
		n, err := l.Settle(t.Context(), lateStamps(must(l.Waiting(t.Context(), "one", 0, 10))), actor)
		if err != nil {
			t.Fatal(err)
		}
		if !stamped && n == 0 {
			break
		}
	}
	if steps != 2 {
		t.Errorf("at rest after %d steps, want 2", steps)
	}
}

// TestAnchorFaults fails every write while a checkpoint is stamped.
func TestAnchorFaults(t *testing.T) {
	for _, stored := range []bool{false, true} {
		runs := 0
		for n := 4; ; n++ { // after those of Create and of the record
			f := &faulty{Store: memory.New(), n: n, stored: stored}
			c := config(f)
			c.Published = &outside{f: f}
			l := must(ledger.Create(t.Context(), c))
			r := seal(t, l, "")
			for range 3 {
				checkpoint, err := l.Checkpoint(t.Context())
				if err == nil {
					checkpoint, err = l.Unanchored(t.Context(), "one", checkpoint)
				}
				if err == nil && checkpoint != "" {
					_, err = l.Anchor(t.Context(), operator.CheckpointStampBody{Authority: "one", Checkpoint: checkpoint, Token: []byte("t")}, actor)
				}
				if err != nil && !errors.Is(err, errFault) {
					t.Fatal(err)
				}
			}
			if act, ok := anchor(t, l, "one"); ok {
				t.Errorf("write %d, stored %v: stamped again: %v", n, stored, act)
			}
			one := must(l.ProveOne(t.Context(), r))
			if len(one.Log.CheckpointTimestamps) != 1 {
				t.Errorf("write %d, stored %v: %d stamps", n, stored, len(one.Log.CheckpointTimestamps))
			}
			wantClean(t, damagesOf(t, c))
			if !f.failed {
				break
			}
			runs++
		}
		if runs < 3 {
			t.Errorf("stored %v: only %d writes failed", stored, runs)
		}
	}
}

// TestAnchoredByTwo checks two processes that anchor at the same time. Each act follows another one, and none claims
// to be earlier than the one before it, although a clock was set back.
func TestAnchoredByTwo(t *testing.T) {
	f := folder(t.TempDir())
	l := f.create(t)
	seal(t, l, "")
	c := f.config(must(f.store(t)))
	race := &racing{Store: c.Store}
	c.Store = race
	c.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	mine := must(ledger.Open(t.Context(), c))
	var first *evidence.Record
	race.first = func() { first, _ = anchor(t, l, "one") }
	second, _ := anchor(t, mine, "two")
	if second.Payload.PreviousRecord != first.Digest || second.Payload.Time().Before(first.Payload.Time()) {
		t.Errorf("it follows %v at %s, and the one before is %v at %s", second.Payload.PreviousRecord, second.Payload.Timestamp,
			first.Digest, first.Payload.Timestamp)
	}
	wantUnder(t, l, must(l.Record(t.Context(), second.Payload.RecordID)), 3)
	wantClean(t, f.fsck(t))
}
