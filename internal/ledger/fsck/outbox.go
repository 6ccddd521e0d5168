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

// lateStamps looks for each late stamp that an act speaks of. It does not wait for it any more.
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
		if errors.Is(err, storage.ErrArchive) || err == nil && stamped.Entry != nil {
			continue // it is in a file that cannot be read, which is named once, or it has expired
		}
		if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
			return err
		}
		has := func(t evidence.Timestamp) bool { return t.Kind == s.Kind && evidence.DigestOf(t.Token) == s.Token }
		if err != nil || !slices.ContainsFunc(stamped.Timestamps, has) {
			l.report(DamageLateStamp, row.Index, row.RecordID, "of %s, for the record with payload digest %v", s.Authority, s.Record)
		}
		if err == nil {
			if err := l.settled(ctx, row, &stamped, s.Authority); err != nil {
				return err
			}
		}
	}
	return nil
}

// settled reports a record that an act says was stamped, and that waits all the same.
func (l looking) settled(ctx context.Context, act, stamped *storage.Row, authority string) error {
	waits, err := l.fsck.store.Waiting(ctx, authority, stamped.Index, 1)
	if err != nil {
		return l.noOutbox(err)
	}
	if len(waits) == 1 && waits[0].Index == stamped.Index {
		l.report(DamageSettled, stamped.Index, stamped.RecordID, "for %s, which stamped it by the act %s", authority, act.RecordID)
	}
	return nil
}

// outbox holds what waits for time stamps against what is in the log.
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

// noOutbox reports what keeps the outbox from being read.
func (f *findings) noOutbox(err error) error {
	if errors.Is(err, storage.ErrDamaged) {
		f.report(DamageStore, -1, "", "%v", err)
		return nil
	}
	return err
}

func (f *fsck) wait(ctx context.Context, w storage.Wait) error {
	rows, err := f.rows(ctx, w.Index, 1)
	if err == nil && len(rows) == 0 {
		f.report(DamageWaiting, w.Index, "", "for %s, since %s", w.Authority, evidence.FormatTime(w.Since))
	}
	return err
}

// waits reports whether a record without any time stamp waits for one. It may have got it since it was read: then it is
// what was got that counts.
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
