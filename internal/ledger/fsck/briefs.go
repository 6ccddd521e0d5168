package fsck

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"jurat/internal/ledger/brief"
	"jurat/internal/ledger/storage"
)

// keyPage is of how many rows the keys are compared at once.
const keyPage = 2048

// briefs reads what stands beside some rows. Where that cannot be read it says so, and the rows are examined without.
func (f *fsck) briefs(ctx context.Context, p *page, from, n int64) map[int64]*storage.StoredBrief {
	stored, err := f.store.Briefs(ctx, storage.BriefQuery{From: from, N: n, Names: true})
	if err != nil {
		if !errors.Is(err, storage.ErrDamaged) {
			p.err = err
		} else {
			p.places[0].report(DamageStore, -1, "", "what stands beside the rows %d to %d: %v", from, from+n-1, err)
		}
		return nil
	}
	found := make(map[int64]*storage.StoredBrief, len(stored))
	for i := range stored {
		found[stored[i].Index] = &stored[i]
	}
	return found
}

// checkBrief holds a brief against its row. One that was never made is made when the log is opened.
func (l looking) checkBrief(row *storage.Row) {
	if l.brief == nil || l.brief.Line == nil && row.Index >= l.fsck.briefed {
		return
	}
	if l.brief.Line == nil {
		l.report(DamageBrief, row.Index, row.RecordID, "it is missing")
		return
	}
	b, err := brief.OfRow(row)
	if err != nil {
		return // which is named as what it is
	}
	want, err := b.Stored()
	if err != nil {
		l.report(DamageBrief, row.Index, row.RecordID, "%v", err)
		return
	}
	switch {
	case row.Entry != nil && !bytes.Equal(l.brief.Line, want.Line):
		l.report(DamageNotExpired, row.Index, row.RecordID, "what lists show of it says more than that it has expired; 'jurat log reindex' mends that, too")
	case !bytes.Equal(l.brief.Line, want.Line):
		l.report(DamageBrief, row.Index, row.RecordID, "it says %.500q, and the record %.500q", l.brief.Line, want.Line)
	case !bytes.Equal(l.brief.Names, want.Names):
		l.report(DamageBrief, row.Index, row.RecordID, "it names other records by digest than the record does")
	}
}

// keysOfBriefs holds the keys under which records are found against their briefs.
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
			continue // which is named already
		}
		if want := b.Keys(); !slices.Equal(want, has[s.Index]) {
			f.report(DamageBrief, s.Index, s.RecordID, "it is found under %d keys, and not by those %d by which it is linked", len(has[s.Index]), len(want))
		}
	}
}
