package fsck

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger/storage"
)

// lateStamps checks that each late stamp that an act names is there, and that its record no longer waits for it.
func (l looking) lateStamps(ctx context.Context, row *storage.Row, p *evidence.Payload) error {
	if p.ActionType != evidence.LateStamp {
		return nil
	}
	body, err := operator.Read[operator.LateStampBody](p)
	if err != nil {
		l.report(DamageCheck, row.Index, row.RecordID, "%v", err)
		return nil
	}
	for _, s := range body.Stamps {
		stamped, err := l.fsck.store.ByDigest(ctx, s.Record)
		if err == nil && stamped.Entry != nil {
			continue // it has expired
		}
		if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
			return err
		}
		has := func(t evidence.Timestamp) bool { return t.Kind == s.Kind && evidence.DigestOf(t.Token) == s.Token }
		if err != nil || !slices.ContainsFunc(stamped.Timestamps, has) {
			l.report(DamageLateStamp, row.Index, row.RecordID, "by %s, for the record with payload digest %v", s.Authority, s.Record)
		}
		if err == nil {
			if err := l.settled(ctx, row, &stamped, s.Authority); err != nil {
				return err
			}
		}
	}
	return nil
}

// settled reports a record that still waits although an act says that it was stamped.
func (l looking) settled(ctx context.Context, act, stamped *storage.Row, authority string) error {
	waits, err := l.fsck.store.Waiting(ctx, authority, stamped.Index, 1)
	if err != nil {
		return l.noOutbox(err)
	}
	if len(waits) == 1 && waits[0].Index == stamped.Index {
		l.report(DamageSettled, stamped.Index, stamped.RecordID, "for %s, although the act %s says that it was added", authority, act.RecordID)
	}
	return nil
}

// outbox checks that each record that waits for a time stamp is in the log.
func (f *fsck) outbox(ctx context.Context) error {
	owing, err := f.store.Owing(ctx)
	if err != nil {
		return f.noOutbox(err)
	}
	for _, o := range owing {
		for from := int64(0); ; {
			waits, err := f.store.Waiting(ctx, o.Authority, from, pageSize)
			if err != nil {
				return f.noOutbox(err)
			}
			for _, w := range waits {
				if err := f.wait(ctx, w); err != nil {
					return err
				}
				from = w.Index + 1
			}
			if len(waits) < pageSize {
				break
			}
		}
	}
	return nil
}

// noOutbox reports damage that prevents reading the outbox or the briefs. It returns other errors.
func (f *findings) noOutbox(err error) error {
	if errors.Is(err, storage.ErrDamaged) {
		f.report(DamageStore, -1, "", "%v", err)
		return nil
	}
	return err
}

func (f *fsck) wait(ctx context.Context, w storage.Wait) error {
	rows, err := storage.ReadableRows(ctx, f.store, w.Index, 1)
	if err == nil && len(rows) == 0 {
		f.report(DamageWaiting, w.Index, "", "for %s, since %s", w.Authority, evidence.FormatTime(w.Since))
	}
	return err
}

// waits reports whether a record without any time stamp waits for one. If the record got one since it was read, waits
// adds it to the record.
func (l looking) waits(ctx context.Context, record *evidence.Record, index int64) (bool, error) {
	store := l.fsck.store
	owing, err := store.Owing(ctx)
	if err != nil {
		return false, l.noOutbox(err)
	}
	for _, o := range owing {
		waits, err := store.Waiting(ctx, o.Authority, index, 1)
		if err != nil {
			return false, l.noOutbox(err)
		}
		if len(waits) == 1 && waits[0].Index == index {
			return true, nil
		}
	}
	row, err := store.ByDigest(ctx, record.Digest)
	if err == nil && bytes.Equal(row.Payload, record.Canonical()) {
		record.Timestamps = row.Timestamps
	}
	return false, nil
}
