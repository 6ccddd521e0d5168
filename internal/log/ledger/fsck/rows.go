package fsck

import (
	"context"
	"errors"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/log/ledger/storage"
)

// A node is a stored hash, by its place in the tree.
type node struct {
	level int
	n     int64 // position on its level, from 0
}

func (p node) storedIndex() int64 { return tlog.StoredHashIndex(p.level, p.n) }

func (p node) records() (first, last int64) { return p.n << p.level, (p.n+1)<<p.level - 1 }

// storedHashes reads the hashes that were stored with n records. Missing ones are not in the map.
func (f *fsck) storedHashes(ctx context.Context, from, n int64) (map[int64]tlog.Hash, error) {
	var indexes []int64
	for i := tlog.StoredHashCount(from); i < tlog.StoredHashCount(from+n); i++ {
		indexes = append(indexes, i)
	}
	stored := make(map[int64]tlog.Hash, len(indexes))
	hashes, err := f.store.Hashes(ctx, indexes)
	if err == nil {
		for i, index := range indexes {
			stored[index] = hashes[i]
		}
		return stored, nil
	}
	for _, index := range indexes { // one by one, to find the missing ones
		hash, ok, err := f.storedHash(ctx, index)
		if err != nil {
			return nil, err
		}
		if ok {
			stored[index] = hash
		}
	}
	return stored, nil
}

func (f *fsck) storedHash(ctx context.Context, index int64) (hash tlog.Hash, ok bool, err error) {
	hashes, err := f.store.Hashes(ctx, []int64{index})
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
		return hash, false, nil
	}
	if err != nil {
		return hash, false, err
	}
	return hashes[0], true, nil
}

// A looking examines one place of the log, and reports its damage.
type looking struct {
	*place
	fsck  *fsck
	brief *storage.StoredBrief // nil: the briefs of the page could not be read
}

// look examines a row and its leaf hash. row is nil if the place has none.
func (l looking) look(ctx context.Context, index int64, row *storage.Row, stored map[int64]tlog.Hash) error {
	at := node{0, index}
	hash, there := stored[at.storedIndex()]
	l.hash = hash
	record := l.open(index, row)
	if !there {
		l.report(DamageMissingHash, index, "", "hash %d, of this record", at.storedIndex())
	}
	if row != nil && row.Entry != nil {
		l.expired(row, hash)
	}
	if record == nil {
		return nil
	}
	made := storage.LeafHash(record, row.Counts)
	if !there || made == hash {
		l.hash = made
		return l.intact(ctx, row, record)
	}
	vouched, err := l.fsck.vouched(ctx, at, made)
	if err != nil {
		return err
	}
	if vouched {
		l.report(DamageHash, index, row.RecordID, "hash %d is %v; computed from the record it is %v", at.storedIndex(), hash, made)
		l.hash = made
		return l.intact(ctx, row, record)
	}
	if other, err := l.fsck.store.ByRecordID(ctx, record.Payload.RecordID); err == nil && other.Index != index {
		l.report(DamageDuplicate, index, row.RecordID, "it is also at %d; the leaf hash logged here is %v", other.Index, hash)
		return nil
	}
	l.stray = &made
	l.report(DamageRow, index, row.RecordID, "its leaf hash is %v; the log has %v", made, hash)
	return nil
}

// expired examines what is left of an expired record.
func (l looking) expired(row *storage.Row, hash tlog.Hash) {
	l.counts = &placed{id: row.RecordID, chain: row.ChainID, of: row.Case, actor: row.Actor, counts: row.Counts}
	entry, err := evidence.ParseEntry(row.Entry)
	if err != nil || tlog.RecordHash(row.Entry) != hash {
		l.report(DamageRow, row.Index, row.RecordID, "it has expired, and the entry kept for it differs from what was logged: %v", err)
		return
	}
	tag := evidence.Digest{}
	if row.ChainID != "" {
		tag = evidence.ChainTag(row.ChainID)
	}
	logged := evidence.LogCounts{ActorSeq: entry.ActorSeq, CaseSeq: entry.CaseSeq, ChainSeq: entry.ChainSeq, Subject: entry.Subject, SubjectSeq: entry.SubjectSeq}
	if entry.Payload != row.Digest || entry.Chain != tag || entry.Actor != row.Actor || logged != row.Counts {
		l.report(DamageKeys, row.Index, row.RecordID, "it has expired, and the row differs from what was logged here")
	}
	if l.fsck.options.Expired != nil {
		if err := l.fsck.options.Expired(row.Index, row.RecordID, row.ExpiredBy); err != nil {
			l.report(DamageExpired, row.Index, row.RecordID, "%v", err)
			return // it has not expired, so its brief may stay
		}
	}
	l.checkBrief(row)
}

// open checks a row alone. It returns nil if the row contains no intact record.
func (l looking) open(index int64, row *storage.Row) *evidence.Record {
	if row == nil {
		l.report(DamageMissingRow, index, "", "the row is missing")
		return nil
	}
	if row.Entry != nil {
		return nil
	}
	if row.Broken != nil {
		l.report(DamageUnreadable, index, row.RecordID, "%v", row.Broken)
		return nil
	}
	record, err := evidence.OpenParts(row.Payload, row.Signatures, row.Timestamps)
	if digest := evidence.DigestOf(row.Payload); digest != row.Digest {
		l.report(DamageDigest, index, row.RecordID, "the payload's digest is %v, the row's %v", digest, row.Digest)
		return nil
	}
	if err != nil {
		l.report(DamageUnreadable, index, row.RecordID, "%v", err)
		return nil
	}
	if err := row.Agrees(record); err != nil {
		l.odd = true
		l.report(DamageKeys, index, row.RecordID, "%v", err)
	}
	return record
}

// intact checks a record that is what was logged. Its counts are checked when the pages are merged.
func (l looking) intact(ctx context.Context, row *storage.Row, record *evidence.Record) error {
	l.counts = &placed{id: row.RecordID, chain: record.Payload.ChainID, of: storage.Submitted(&record.Payload),
		actor: storage.ActorOf(&record.Payload), counts: row.Counts}
	if err := l.check(ctx, row, record); err != nil {
		return err
	}
	l.checkBrief(row)
	if err := l.lateStamps(ctx, row, &record.Payload); err != nil {
		return err
	}
	if l.fsck.indexed && !l.odd {
		return nil
	}
	byID, errID := l.fsck.store.ByRecordID(ctx, record.Payload.RecordID)
	byDigest, errDigest := l.fsck.store.ByDigest(ctx, record.Digest)
	switch err := errors.Join(errID, errDigest); {
	case errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged):
		l.report(DamageLookup, row.Index, row.RecordID, "by id: %v; by digest: %v", errID, errDigest)
	case err != nil:
		return err
	case byID.Index != row.Index || byDigest.Index != row.Index:
		l.report(DamageDuplicate, row.Index, row.RecordID, "it is found at %d by its id, at %d by its digest", byID.Index, byDigest.Index)
	}
	return nil
}

// check calls the caller's Check.
func (l looking) check(ctx context.Context, row *storage.Row, record *evidence.Record) (err error) {
	if l.fsck.options.Check == nil {
		return nil
	}
	waits := false
	if len(record.Timestamps) == 0 {
		if waits, err = l.waits(ctx, record, row.Index); err != nil {
			return err
		}
	}
	err = l.fsck.options.Check(record, waits)
	var clock *ClockError
	switch {
	case errors.As(err, &clock):
		l.report(DamageClock, row.Index, row.RecordID, "%v", clock)
	case err != nil:
		l.report(DamageCheck, row.Index, row.RecordID, "%v", err)
	}
	return nil
}

// inner compares a stored hash with the two below it, and returns the value that it should have.
func (f *fsck) inner(ctx context.Context, at node, made tlog.Hash, stored map[int64]tlog.Hash) (tlog.Hash, error) {
	hash, there := stored[at.storedIndex()]
	first, last := at.records()
	if !there {
		f.report(DamageMissingHash, -1, "", "hash %d, of the records %d to %d", at.storedIndex(), first, last)
		return made, nil
	}
	if hash == made {
		return made, nil
	}
	vouched, err := f.vouched(ctx, at, hash)
	if err != nil {
		return made, err
	}
	if vouched {
		f.report(DamageBelow, -1, "", "hash %d, of the records %d to %d, is %v; computed from those below it is %v", at.storedIndex(), first, last, hash, made)
		return hash, nil
	}
	f.report(DamageHash, -1, "", "hash %d, of the records %d to %d, is %v; computed from those below it is %v", at.storedIndex(), first, last, hash, made)
	return made, nil
}

// vouched reports whether the tree above requires this hash at this place: whether the hash and its neighbour give
// the stored hash above them, or the root if there is none above.
func (f *fsck) vouched(ctx context.Context, at node, hash tlog.Hash) (bool, error) {
	above := node{at.level + 1, at.n >> 1}
	if _, last := above.records(); last >= f.head.Size {
		return f.underRoot(ctx, at, hash)
	}
	parent, ok, err := f.storedHash(ctx, above.storedIndex())
	if err != nil || !ok {
		return false, err
	}
	beside, ok, err := f.storedHash(ctx, node{at.level, at.n ^ 1}.storedIndex())
	if err != nil || !ok {
		return false, err
	}
	if at.n&1 == 1 {
		return tlog.NodeHash(beside, hash) == parent, nil
	}
	return tlog.NodeHash(hash, beside) == parent, nil
}

// underRoot reports whether the tree has its root with this hash in its place.
func (f *fsck) underRoot(ctx context.Context, at node, hash tlog.Hash) (bool, error) {
	root, err := tlog.TreeHash(f.head.Size, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			if index == at.storedIndex() {
				hashes[i] = hash
				continue
			}
			var err error
			if hashes[i], _, err = f.storedHash(ctx, index); err != nil {
				return nil, err
			}
		}
		return hashes, nil
	}))
	return root == f.head.Root, err
}
