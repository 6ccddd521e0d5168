package storetest

import (
	"errors"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

var since = time.Date(2026, 1, 31, 16, 15, 0, 123_000_000, time.UTC)

// late is a time stamp for a row that was appended before.
func late(index int64, authority string) storage.Stamp {
	return storage.Stamp{Index: index, Authority: authority,
		Timestamp: evidence.Timestamp{Kind: evidence.RFC3161, Token: []byte{9, byte(index), authority[0]}}}
}

// planWaiting appends a row that waits for these authorities.
func planWaiting(r storage.Row, since time.Time, authorities ...string) storage.Plan {
	return func(head storage.Head, log storage.Committed) (storage.Batch, error) {
		batch, err := planOf(r)(head, log)
		for _, a := range authorities {
			batch.Waits = append(batch.Waits, storage.Wait{Index: head.Size, Authority: a, Since: since})
		}
		return batch, err
	}
}

// planStamps appends a row, and stamps earlier ones.
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
	wantError(t, err, nil)
	var got []int64
	for _, w := range waits {
		if w.Authority != authority {
			t.Errorf("asked for %s and got %+v", authority, w)
		}
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
	wantError(t, s.Append(ctx, planWaiting(row(0), later, "one")), nil)
	wantError(t, s.Append(ctx, planOf(row(1))), nil)
	wantError(t, s.Append(ctx, planWaiting(row(2), since, "two", "one")), nil) // an earlier time, as after a clock went back
	wantError(t, s.Append(ctx, planWaiting(row(3), later, "one")), nil)
	wantOwing(t, s, storage.Owed{Authority: "one", Records: 3, Since: since}, storage.Owed{Authority: "two", Records: 1, Since: since})
	wantWaiting(t, s, "one", 0, 2, 3)
	wantWaiting(t, s, "two", 2)
	wantWaiting(t, s, "three")
	gives(t, []storage.Wait{{Index: 2, Authority: "one", Since: since}})(s.Waiting(ctx, "one", 1, 1))
	gives(t, []storage.Wait{})(s.Waiting(ctx, "one", 0, 0))

	wantError(t, s.Append(ctx, planStamps(row(4), late(2, "one"), late(0, "one"))), nil)
	wantWaiting(t, s, "one", 3)
	wantWaiting(t, s, "two", 2)
	wantHead(t, s, 5)
	stamped, err := s.ByRecordID(ctx, "record-2")
	wantError(t, err, nil)
	want(t, stamped.Timestamps, append(row(2).Timestamps, late(2, "one").Timestamp))

	// A renewal is a stamp for a row that does not wait.
	renewal := storage.Stamp{Index: 1, Timestamp: evidence.Timestamp{Kind: evidence.RFC3161, Token: []byte("renewed")}}
	wantError(t, s.Append(ctx, planStamps(row(5), renewal)), nil)
	stamped, err = s.ByRecordID(ctx, "record-1")
	wantError(t, err, nil)
	want(t, stamped.Timestamps, append(row(1).Timestamps, renewal.Timestamp))
	wantWaiting(t, s, "one", 3)

	gives(t, int64(1))(s.Forget(ctx, "one"))
	wantOwing(t, s, storage.Owed{Authority: "two", Records: 1, Since: since})
	gives(t, int64(0))(s.Forget(ctx, "one"))

	bare := row(6)
	bare.Timestamps = nil
	wantError(t, s.Append(ctx, planWaiting(bare, since, "one", "two")), nil)
	gives(t, int64(0))(s.Forget(ctx, "one")) // there is no time stamp
	wantWaiting(t, s, "one", 6)
	wantError(t, s.Append(ctx, planStamps(row(7), late(6, "two"))), nil)
	gives(t, int64(1))(s.Forget(ctx, "one")) // there is another's
	wantWaiting(t, s, "one")
}

// outboxAllOrNone stamps rows that do not wait: nothing of such a batch is stored.
func outboxAllOrNone(t *testing.T, s storage.Store) {
	ctx := t.Context()
	wantError(t, s.Append(ctx, planWaiting(row(0), since, "one")), nil)
	wantError(t, s.Append(ctx, planOf(row(1))), nil)
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
	wantError(t, err, refusal)
	duplicate := planWaiting(row(1), since, "one")
	wantError(t, s.Append(ctx, duplicate), storage.ErrDuplicate)
	wantWaiting(t, s, "one", 0)
	wantError(t, s.Append(ctx, planStamps(row(2), late(0, "one"))), nil)
	wantError(t, s.Append(ctx, planStamps(row(3), late(0, "one"))), storage.ErrConflict) // it does not wait any more
}

// outboxClaims lets many callers stamp the same record: one succeeds.
func outboxClaims(t *testing.T, s storage.Store) {
	wantError(t, s.Append(t.Context(), planWaiting(row(0), since, "one")), nil)
	wantOneWinner(t, func(i int) error { return s.Append(t.Context(), planStamps(row(i+1), late(0, "one"))) })
	wantHead(t, s, 2)
}
