package ledger

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"jurat/evidence"
)

// A settlement is of a record and an authority whose time stamp it got late.
type settlement struct {
	record    evidence.Digest
	authority string
}

// lateStamps remembers what an act says of late stamps, and looks for each.
func (f *fsck) lateStamps(ctx context.Context, row *Row, p *evidence.Payload) error {
	if p.ActionType != evidence.LateStamp {
		return nil
	}
	body, err := evidence.ReadOperatorBody[evidence.LateStampBody](p)
	if err != nil {
		f.report(DamageCheck, row.Index, row.RecordID, "%v", err)
		return nil
	}
	for _, s := range body.Stamps {
		f.settled[settlement{s.Record, s.Authority}] = row.RecordID
		stamped, err := f.cfg.Store.ByDigest(ctx, s.Record)
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDamaged) {
			return err
		}
		has := func(t evidence.Timestamp) bool { return t.Kind == s.Kind && evidence.DigestOf(t.Token) == s.Token }
		if err != nil || !slices.ContainsFunc(stamped.Timestamps, has) {
			f.report(DamageLateStamp, row.Index, row.RecordID, "of %s, for the record with payload digest %v", s.Authority, s.Record)
		}
	}
	return nil
}

// outbox holds what waits for time stamps against what is in the log.
func (f *fsck) outbox(ctx context.Context) error {
	owing, err := f.cfg.Store.Owing(ctx)
	if err != nil {
		return f.noOutbox(err)
	}
	for _, o := range owing {
		for from := int64(0); ; {
			waits, err := f.cfg.Store.Waiting(ctx, o.Authority, from, pageSize)
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
func (f *fsck) noOutbox(err error) error {
	if errors.Is(err, ErrDamaged) {
		f.report(DamageStore, -1, "", "%v", err)
		return nil
	}
	return err
}

func (f *fsck) wait(ctx context.Context, w Wait) error {
	rows, err := f.rows(ctx, w.Index, 1)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		f.report(DamageWaiting, w.Index, "", "for %s, since %s", w.Authority, evidence.FormatTime(w.Since))
		return nil
	}
	if act, ok := f.settled[settlement{rows[0].Digest, w.Authority}]; ok {
		f.report(DamageSettled, w.Index, rows[0].RecordID, "for %s, which stamped it by the act %s", w.Authority, act)
	}
	return nil
}

// waits reports whether a record without any time stamp waits for one. It may have got it since it was read: then it is
// what was got that counts.
func (f *fsck) waits(ctx context.Context, record *evidence.Record, index int64) (bool, error) {
	owing, err := f.cfg.Store.Owing(ctx)
	if err != nil {
		return false, f.noOutbox(err)
	}
	for _, o := range owing {
		waits, err := f.cfg.Store.Waiting(ctx, o.Authority, index, 1)
		if err != nil {
			return false, f.noOutbox(err)
		}
		if len(waits) == 1 && waits[0].Index == index {
			return true, nil
		}
	}
	row, err := f.cfg.Store.ByDigest(ctx, record.Digest)
	if err == nil && bytes.Equal(row.Payload, record.Canonical()) {
		record.Timestamps = row.Timestamps
	}
	return false, nil
}
