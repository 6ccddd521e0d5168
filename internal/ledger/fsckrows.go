package ledger

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// A node is a stored hash, by its place in the tree.
type node struct {
	level int
	n     int64 // which one on its level
}

func (p node) storedIndex() int64 { return tlog.StoredHashIndex(p.level, p.n) }

func (p node) records() (first, last int64) { return p.n << p.level, (p.n+1)<<p.level - 1 }

// page checks n rows, and the hashes that came with them.
func (f *fsck) page(ctx context.Context, from, n int64) error {
	rows, err := f.rows(ctx, from, n)
	if err != nil {
		return err
	}
	hashes, err := f.storedHashes(ctx, from, n)
	if err != nil {
		return err
	}
	for index := from; index < from+n; index++ {
		var row *Row
		if len(rows) > 0 && rows[0].Index == index {
			row, rows = &rows[0], rows[1:]
		}
		if err := f.place(ctx, index, row, hashes); err != nil {
			return err
		}
		f.takeRoots(index + 1)
	}
	return nil
}

// rows reads n rows; those that the store cannot read are left out, and show as missing.
func (f *fsck) rows(ctx context.Context, from, n int64) ([]Row, error) {
	rows, err := f.cfg.Store.Rows(ctx, from, n)
	if !errors.Is(err, ErrDamaged) || n == 1 {
		if errors.Is(err, ErrDamaged) {
			err = nil
		}
		return rows, err
	}
	rows = nil
	for index := from; index < from+n; index++ {
		one, err := f.rows(ctx, index, 1)
		if err != nil {
			return nil, err
		}
		rows = append(rows, one...)
	}
	return rows, nil
}

// storedHashes reads the hashes that were stored with n records; missing ones are not in the map.
func (f *fsck) storedHashes(ctx context.Context, from, n int64) (map[int64]tlog.Hash, error) {
	var indexes []int64
	for i := tlog.StoredHashCount(from); i < tlog.StoredHashCount(from+n); i++ {
		indexes = append(indexes, i)
	}
	stored := make(map[int64]tlog.Hash, len(indexes))
	hashes, err := f.cfg.Store.Hashes(ctx, indexes)
	if err == nil {
		for i, index := range indexes {
			stored[index] = hashes[i]
		}
		return stored, nil
	}
	for _, index := range indexes { // one by one, to find out which
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
	hashes, err := f.cfg.Store.Hashes(ctx, []int64{index})
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDamaged) {
		return hash, false, nil
	}
	if err != nil {
		return hash, false, err
	}
	return hashes[0], true, nil
}

// place checks one place of the log: its row, its leaf, and the hashes that it completes.
func (f *fsck) place(ctx context.Context, index int64, row *Row, stored map[int64]tlog.Hash) error {
	record := f.open(index, row)
	hash, err := f.leaf(ctx, index, row, record, stored)
	if err != nil {
		return err
	}
	at := node{0, index}
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

// open checks a row in itself. It returns nil when there is no record in it.
func (f *fsck) open(index int64, row *Row) *evidence.Record {
	if row == nil {
		f.report(DamageMissingRow, index, "", "there is no row")
		return nil
	}
	record, err := evidence.OpenParts(row.Payload, row.Signatures, row.Timestamps)
	if digest := evidence.DigestOf(row.Payload); digest != row.Digest {
		f.report(DamageDigest, index, row.RecordID, "the payload's digest is %v, the row's %v", digest, row.Digest)
		return nil
	}
	if err != nil {
		f.report(DamageUnreadable, index, row.RecordID, "%v", err)
		return nil
	}
	if _, err := openRow(row); err != nil {
		f.report(DamageKeys, index, row.RecordID, "%v", err)
	}
	return record
}

// leaf holds a record against its leaf hash, and returns what the leaf hash should be.
func (f *fsck) leaf(ctx context.Context, index int64, row *Row, record *evidence.Record, stored map[int64]tlog.Hash) (tlog.Hash, error) {
	at := node{0, index}
	hash, there := stored[at.storedIndex()]
	if !there {
		f.report(DamageMissingHash, index, "", "hash %d, of the record", at.storedIndex())
	}
	if record == nil {
		return hash, nil
	}
	made := leafOf(record, row.Counts)
	if !there || made == hash {
		f.counted(row, &record.Payload)
		return made, f.intact(ctx, row, record)
	}
	vouched, err := f.vouched(ctx, at, made)
	if err != nil {
		return hash, err
	}
	if vouched {
		f.report(DamageHash, index, row.RecordID, "hash %d is %v; the record makes %v", at.storedIndex(), hash, made)
		return made, f.intact(ctx, row, record)
	}
	if other, err := f.cfg.Store.ByRecordID(ctx, record.Payload.RecordID); err == nil && other.Index != index {
		f.report(DamageDuplicate, index, row.RecordID, "it stands at %d too; here %v was logged", other.Index, hash)
		return hash, nil
	}
	f.strays[made], f.logged[hash] = index, index
	f.report(DamageRow, index, row.RecordID, "its leaf hash is %v; logged is %v", made, hash)
	return hash, nil
}

// counted holds what the log counted against what is in it. A hole is a record that was counted and taken out.
func (f *fsck) counted(row *Row, p *evidence.Payload) {
	if p.ChainID != "" {
		f.chains[p.ChainID]++
		if n := f.chains[p.ChainID]; n != row.Counts.ChainSeq {
			f.report(DamageCount, row.Index, row.RecordID, "logged as %d of chain %q; it is %d", row.Counts.ChainSeq, p.ChainID, n)
		}
	}
	if digest := submitted(p); !digest.IsZero() {
		f.cases[digest]++
		if n := f.cases[digest]; n != row.Counts.CaseSeq {
			f.report(DamageCount, row.Index, row.RecordID, "logged as submission %d of case %v; it is %d", row.Counts.CaseSeq, digest, n)
		}
	}
}

// intact checks a record that is what was logged.
func (f *fsck) intact(ctx context.Context, row *Row, record *evidence.Record) error {
	if err := f.check(ctx, row, record); err != nil {
		return err
	}
	if err := f.lateStamps(ctx, row, &record.Payload); err != nil {
		return err
	}
	byID, errID := f.cfg.Store.ByRecordID(ctx, record.Payload.RecordID)
	byDigest, errDigest := f.cfg.Store.ByDigest(ctx, record.Digest)
	switch err := errors.Join(errID, errDigest); {
	case errors.Is(err, ErrNotFound) || errors.Is(err, ErrDamaged):
		f.report(DamageLookup, row.Index, row.RecordID, "by id: %v; by digest: %v", errID, errDigest)
	case err != nil:
		return err
	case byID.Index != row.Index || byDigest.Index != row.Index:
		f.report(DamageDuplicate, row.Index, row.RecordID, "it is found at %d by its id, at %d by its digest", byID.Index, byDigest.Index)
	}
	return nil
}

// check asks the caller's question.
func (f *fsck) check(ctx context.Context, row *Row, record *evidence.Record) (err error) {
	if f.options.Check == nil {
		return nil
	}
	waits := false
	if len(record.Timestamps) == 0 {
		if waits, err = f.waits(ctx, record, row.Index); err != nil {
			return err
		}
	}
	if err := f.options.Check(record, waits); err != nil {
		f.report(DamageCheck, row.Index, row.RecordID, "%v", err)
	}
	return nil
}

// inner holds a stored hash against what the two below it make, and returns what it should be.
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
		f.report(DamageBelow, -1, "", "hash %d, of the records %d to %d, is %v; those below make %v", at.storedIndex(), first, last, hash, made)
		return hash, nil
	}
	f.report(DamageHash, -1, "", "hash %d, of the records %d to %d, is %v; those below make %v", at.storedIndex(), first, last, hash, made)
	return made, nil
}

// vouched reports whether the tree above says that this is the hash at this place: the stored hash above it is made
// of it and its neighbour, or, where there is none above, the root.
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

// underRoot computes the root with this hash in its place.
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

// nameMoved finds, among records that are not what was logged in their places, those that were logged in another.
func (f *fsck) nameMoved() {
	for i := range f.found {
		d := &f.found[i]
		if d.Kind != DamageRow {
			continue
		}
		for leaf, index := range f.strays {
			if from, ok := f.logged[leaf]; ok && index == d.Index {
				d.Kind = DamageMoved
				d.Detail = fmt.Sprintf("it was logged at %d", from)
			}
		}
	}
}
