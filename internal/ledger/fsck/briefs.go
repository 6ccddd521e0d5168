package fsck

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"jurat/internal/ledger/brief"
	"jurat/internal/ledger/storage"
)

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
