package fsck

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger/brief"
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

// keyPage is how many rows have their keys compared at once.
const keyPage = 2048

// briefs reads the briefs of some rows. If they cannot be read, it reports that, and the rows are examined without
// them.
func (f *fsck) briefs(ctx context.Context, p *page, from, n int64) map[int64]*storage.StoredBrief {
	stored, err := f.store.Briefs(ctx, storage.BriefQuery{From: from, N: n, Names: true})
	if err != nil {
		if !errors.Is(err, storage.ErrDamaged) {
			p.err = err
		} else {
			p.places[0].report(DamageStore, -1, "", "the briefs of the rows %d to %d: %v", from, from+n-1, err)
		}
		return nil
	}
	found := make(map[int64]*storage.StoredBrief, len(stored))
	for i := range stored {
		found[stored[i].Index] = &stored[i]
	}
	return found
}

// checkBrief compares a brief with its row.
func (l looking) checkBrief(row *storage.Row) {
	if l.brief == nil {
		return
	}
	if l.brief.Line == nil {
		l.report(DamageBrief, row.Index, row.RecordID, "it is missing")
		return
	}
	b, err := brief.OfRow(row)
	if err != nil {
		return // already reported as a damaged row
	}
	want, err := b.Stored()
	if err != nil {
		l.report(DamageBrief, row.Index, row.RecordID, "%v", err)
		return
	}
	switch {
	case row.Entry != nil && !bytes.Equal(l.brief.Line, want.Line):
		l.report(DamageNotExpired, row.Index, row.RecordID, "its brief says more than that it has expired; 'jurat log fsck --reindex' repairs that, too")
	case !bytes.Equal(l.brief.Line, want.Line):
		l.report(DamageBrief, row.Index, row.RecordID, "it says %.500q, but the record says %.500q", l.brief.Line, want.Line)
	case !bytes.Equal(l.brief.Names, want.Names):
		l.report(DamageBrief, row.Index, row.RecordID, "its digests of other records differ from those in the record")
	}
}

// keysOfBriefs compares the keys under which records are found with their briefs.
func (f *fsck) keysOfBriefs(ctx context.Context) error {
	for from := int64(0); from < f.head.Size; from += keyPage {
		n := min(keyPage, f.head.Size-from)
		stored, err := f.store.Briefs(ctx, storage.BriefQuery{From: from, N: n, Names: true})
		if err != nil {
			return f.noOutbox(err)
		}
		keys, err := f.store.BriefKeys(ctx, from, n)
		if err != nil {
			return f.noOutbox(err)
		}
		f.compareKeys(stored, keys)
	}
	return nil
}

func (f *fsck) compareKeys(stored []storage.StoredBrief, keys []storage.BriefKey) {
	has := map[int64][]int64{}
	for _, k := range keys {
		has[k.Index] = append(has[k.Index], k.Key)
	}
	for i := range stored {
		s := &stored[i]
		if s.Line == nil && len(has[s.Index]) == 0 {
			continue
		}
		b := brief.Read(s)
		if b == nil {
			continue // already reported
		}
		if want := b.Keys(); !slices.Equal(want, has[s.Index]) {
			f.report(DamageBrief, s.Index, s.RecordID, "its %d keys differ from the %d keys that its brief requires", len(has[s.Index]), len(want))
		}
	}
}
