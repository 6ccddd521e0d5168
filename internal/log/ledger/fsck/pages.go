package fsck

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/inorder"
	"jurat/internal/log/ledger/brief"
	"jurat/internal/log/ledger/storage"
)

// A page is the result of examining some rows of the log and their hashes. Checks that depend on earlier rows are
// made when the pages are merged.
type page struct {
	places []place
	stored map[int64]tlog.Hash
	err    error // the store could not be read
}

// A place is one place of the log.
type place struct {
	findings
	odd    bool       // the row is not found by what its record says
	hash   tlog.Hash  // the leaf hash that the place should have, as far as it can be determined
	counts *placed    // of the record that was logged here; nil: no such record is here
	stray  *tlog.Hash // the leaf hash of a record that was not logged here; nil: none
}

// placed is what the log counted when it appended a record.
type placed struct {
	id     string
	chain  string
	of     evidence.Digest // the digest of the case that it submits
	actor  evidence.Digest // the tag of its actor; zero: the log did not count actors yet
	counts evidence.LogCounts
}

// pages examines the log's pages on all cores, and merges them in log order.
func (f *fsck) pages(ctx context.Context) error {
	next, done := int64(0), int64(0)
	err := inorder.Do(func() (from int64, err error) {
		if from = next; from >= f.head.Size {
			return 0, io.EOF
		}
		next += pageSize
		return from, ctx.Err()
	}, func(int64) int { return 0 }, func(from int64) *page {
		return f.examine(ctx, from, min(pageSize, f.head.Size-from))
	}, func(p *page) error {
		if p.err != nil {
			return p.err
		}
		for i := range p.places {
			if err := f.take(ctx, done, &p.places[i], p.stored); err != nil {
				return err
			}
			done++
			f.takeRoots(done)
		}
		if f.options.Progress != nil {
			f.options.Progress(done, f.head.Size)
		}
		return nil
	})
	if err == nil {
		f.nameMoved()
		f.judge()
	}
	return err
}

// examine examines n rows and the hashes that were stored with them.
func (f *fsck) examine(ctx context.Context, from, n int64) *page {
	p := &page{places: make([]place, n)}
	var rows []storage.Row
	if rows, p.err = storage.ReadableRows(ctx, f.store, from, n); p.err != nil {
		return p
	}
	if p.stored, p.err = f.storedHashes(ctx, from, n); p.err != nil {
		return p
	}
	briefs := f.briefs(ctx, p, from, n)
	if p.err != nil {
		return p
	}
	for i := range p.places {
		index, row := from+int64(i), (*storage.Row)(nil)
		if len(rows) > 0 && rows[0].Index == index {
			row, rows = &rows[0], rows[1:]
		}
		at := looking{place: &p.places[i], fsck: f, brief: briefs[index]}
		if p.err = at.look(ctx, index, row, p.stored); p.err != nil {
			return p
		}
	}
	return p
}

// take merges the next place of the log: its findings, and the hashes that it completes.
func (f *fsck) take(ctx context.Context, index int64, p *place, stored map[int64]tlog.Hash) (err error) {
	f.found = append(f.found, p.found...)
	if p.counts != nil {
		f.counted(index, p.counts)
	} else {
		f.unread++
	}
	if p.stray != nil {
		f.strays[index], f.logged[p.hash] = *p.stray, index
	}
	hash, at := p.hash, node{0, index}
	for ; at.n&1 == 1; at = (node{at.level + 1, at.n >> 1}) {
		made := tlog.NodeHash(f.edge[at.level], hash)
		if hash, err = f.inner(ctx, node{at.level + 1, at.n >> 1}, made, stored); err != nil {
			return err
		}
	}
	if len(f.edge) == at.level {
		f.edge = append(f.edge, tlog.Hash{})
	}
	f.edge[at.level] = hash
	return nil
}

// counted compares the log's count with the number of records. It differs after a record that was removed.
func (f *fsck) counted(index int64, p *placed) {
	switch {
	case p.counts.ActorSeq > 0:
		f.number("actor", p.actor, p.counts.ActorSeq, index, p.id, "logged as record %d of its actor, but is number %d")
		f.counting = true
	case f.counting:
		f.report(DamageCount, index, p.id, "logged without a number of its actor, but the log counted actors before")
	}
	if p.counts.SubjectSeq > 0 {
		f.number("subject", p.counts.Subject, p.counts.SubjectSeq, index, p.id, "logged as judgment %d about its subject, but is number %d")
	}
	if p.chain != "" {
		if n := f.count("chain", []byte(p.chain)); n != p.counts.ChainSeq {
			f.report(DamageCount, index, p.id, "logged as number %d of chain %q, but is number %d", p.counts.ChainSeq, p.chain, n)
		}
	}
	if !p.of.IsZero() {
		if n := f.count("case", p.of[:]); n != p.counts.CaseSeq {
			f.report(DamageCount, index, p.id, "logged as submission %d of case %v, but is submission %d", p.counts.CaseSeq, p.of, n)
		}
	}
}

// number compares the log's number of a record of an actor, or of a judgment about one, with the number of records seen.
// It goes on from the log's number, so one wrong number is reported once. A place that cannot be read may hold any
// actor's record, and explains a gap; it is reported by itself.
func (f *fsck) number(kind string, tag evidence.Digest, logged, index int64, id, format string) {
	n := f.count(kind, tag[:])
	if gap := logged - n; gap < 0 || gap > f.unread {
		f.report(DamageCount, index, id, format, logged, n)
	}
	f.counts[keyOf(kind, tag[:])] = logged
}

// count counts one more record of a chain, a case, an actor or a subject, and returns the new count.
func (f *fsck) count(kind string, of []byte) int64 {
	key := keyOf(kind, of)
	f.counts[key]++
	return f.counts[key]
}

func keyOf(kind string, of []byte) countKey {
	sum := sha256.Sum256(append([]byte(kind+" "), of...))
	return countKey(sum[:])
}

// nameMoved finds records that were logged at another place, among those that differ from what was logged at theirs.
func (f *fsck) nameMoved() {
	for i := range f.found {
		d := &f.found[i]
		if leaf, stray := f.strays[d.Index]; d.Kind == DamageRow && stray {
			if from, ok := f.logged[leaf]; ok {
				d.Kind, d.Detail = DamageMoved, fmt.Sprintf("it was logged at %d", from)
			}
		}
	}
}

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
	if err == nil && len(waits) == 1 && waits[0].Index == stamped.Index {
		l.report(DamageSettled, stamped.Index, stamped.RecordID, "for %s, although the act %s says that it was added", authority, act.RecordID)
	}
	return l.noOutbox(err)
}

// outbox checks that each record that waits for a time stamp is in the log.
func (f *fsck) outbox(ctx context.Context) error {
	owing, err := f.store.Owing(ctx)
	for _, o := range owing {
		for from := int64(0); err == nil && from >= 0; { // the number after the last one is negative
			var waits []storage.Wait
			if waits, err = f.store.Waiting(ctx, o.Authority, from, pageSize); len(waits) == 0 {
				break
			}
			for _, w := range waits {
				if err := f.wait(ctx, w); err != nil {
					return err
				}
				from = w.Index + 1
			}
		}
	}
	return f.noOutbox(err)
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
