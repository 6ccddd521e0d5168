package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/ledger/storage"
)

// Prove makes a bundle of records, in log order and each once. It contains all their time stamps in the log, proofs of
// their places under one checkpoint, and the stamped checkpoints that show the earliest times of each. The checkpoint is the last
// one that witnesses cosigned if it covers them all, or else the last signed one. Prove does not change the given records.
// It returns ErrNotFound, wrapped, if one is not in the log.
func (l *Ledger) Prove(ctx context.Context, records ...*evidence.Record) (_ *evidence.Bundle, err error) {
	defer fault.While(&err, "proving records")
	proved, err := l.place(ctx, records)
	if err != nil {
		return nil, err
	}
	var at []int64
	for _, record := range proved {
		at = append(at, record.Log.Index)
	}
	under, anchors, err := l.under(ctx, at)
	if err != nil {
		return nil, err
	}
	hashes := cached(l.cfg.hashes(ctx))
	for _, record := range proved {
		if err := prove(record, under.head, hashes); err != nil {
			return nil, err
		}
	}
	return &evidence.Bundle{Records: proved, Checkpoint: under.signed, Anchors: anchors}, nil
}

// ProveOne returns a copy of a record with the proof of its place and the checkpoints, which it chooses as Prove does.
// Its errors are those of Prove.
func (l *Ledger) ProveOne(ctx context.Context, record *evidence.Record) (*evidence.Record, error) {
	bundle, err := l.Prove(ctx, record)
	if err != nil {
		return nil, err
	}
	proved := bundle.Records[0]
	proved.Log.Checkpoint, proved.Log.Anchors = bundle.Checkpoint, bundle.Anchors
	return proved, nil
}

// under returns a checkpoint over records at these indexes, which are in log order, and the stamped ones that time them.
func (l *Ledger) under(ctx context.Context, at []int64) (under signedHead, anchors []evidence.Anchor, err error) {
	size := int64(0)
	if len(at) > 0 {
		size = at[len(at)-1] + 1
	}
	if under, err = l.covering(ctx, size); err != nil {
		return under, nil, err
	}
	anchors, err = l.anchors(ctx, at, under.head)
	return under, anchors, err
}

// place copies records in log order, and adds their places, all their time stamps, and the certificates registered
// for their signers.
func (l *Ledger) place(ctx context.Context, records []*evidence.Record) ([]*evidence.Record, error) {
	keys, err := l.Keys(ctx)
	if err != nil {
		return nil, err
	}
	placed := make([]*evidence.Record, len(records))
	for i, record := range records {
		row, err := l.row(ctx, record)
		if err != nil {
			return nil, err
		}
		placed[i] = new(*record)
		placed[i].Timestamps = row.Timestamps // the log may have more by now
		placed[i].Log = row.Counts.At(row.Index)
		placed[i].Certificates = keys.Certificates(&record.Payload)
	}
	slices.SortFunc(placed, func(a, b *evidence.Record) int { return cmp.Compare(a.Log.Index, b.Log.Index) })
	same := func(a, b *evidence.Record) bool { return a.Log.Index == b.Log.Index }
	return slices.CompactFunc(placed, same), nil
}

type signedHead struct {
	signed string
	head   storage.Head
}

// covering returns the last cosigned checkpoint if it covers enough, else the last signed one if that does, else a
// new one.
func (l *Ledger) covering(ctx context.Context, size int64) (signedHead, error) {
	if kept, err := l.cosigned(ctx); err != nil || kept.signed != "" && kept.head.Size >= size {
		return kept, err
	}
	signed, err := l.cfg.Store.Checkpoint(ctx)
	if err != nil {
		return signedHead{}, err
	}
	head, err := l.cfg.open(signed)
	if err != nil || head.Size >= size {
		return signedHead{signed, head}, err
	}
	if signed, err = l.Checkpoint(ctx); err != nil {
		return signedHead{}, err
	}
	head, err = l.cfg.open(signed)
	return signedHead{signed, head}, err
}

// prove sets the proof, and verifies it as its reader will. It returns ErrDamaged if the proof fails.
func prove(record *evidence.Record, head storage.Head, hashes tlog.HashReader) error {
	proof, err := tlog.ProveRecord(head.Size, record.Log.Index, hashes)
	if err != nil {
		return fmt.Errorf("record %s: %w", record.Payload.RecordID, err)
	}
	if err := tlog.CheckRecord(proof, head.Size, head.Root, record.Log.Index, storage.LeafHash(record, record.Log.Counts())); err != nil {
		return fmt.Errorf("%w: the checkpoint does not cover record %s at index %d: %w",
			ErrDamaged, record.Payload.RecordID, record.Log.Index, err)
	}
	record.Log.Proof = make([][]byte, len(proof))
	for i, node := range proof {
		record.Log.Proof[i] = slices.Clone(node[:])
	}
	return nil
}

// cached reads every hash once: the proofs of a chain's records share most hashes.
func cached(from tlog.HashReader) tlog.HashReader {
	seen := tree{edge: map[int64]tlog.Hash{}}
	fill := seen.remember(from)
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var missing []int64
		for _, index := range indexes {
			if _, ok := seen.edge[index]; !ok {
				missing = append(missing, index)
			}
		}
		if len(missing) > 0 {
			if _, err := fill.ReadHashes(missing); err != nil {
				return nil, err
			}
		}
		return seen.reader().ReadHashes(indexes)
	})
}

// ProveConsistency returns the proof that the log of oldSize records is the beginning of the log of newSize records.
// It returns ErrNotFound, wrapped, for a size outside the log.
func (l *Ledger) ProveConsistency(ctx context.Context, oldSize, newSize int64) ([]tlog.Hash, error) {
	if err := l.within(ctx, oldSize, newSize); err != nil {
		return nil, fmt.Errorf("proving consistency: %w", err)
	}
	if oldSize == 0 {
		return nil, nil // the empty log is the beginning of every log
	}
	return tlog.ProveTree(newSize, oldSize, l.cfg.hashes(ctx))
}

// within returns ErrNotFound, wrapped, unless 0 ≤ low ≤ high ≤ the size of the log.
func (l *Ledger) within(ctx context.Context, low, high int64) error {
	size, err := l.Size(ctx)
	if err != nil {
		return err
	}
	if low < 0 || low > high || high > size {
		return fmt.Errorf("%w: %d and %d in a log of %s", ErrNotFound, low, high, plural.Of(size, "record"))
	}
	return nil
}

// A tree is what is needed to append to a log: its head, and the stored hashes on its right edge (at most 63), from
// which later hashes are computed.
type tree struct {
	head storage.Head
	edge map[int64]tlog.Hash // by stored hash index
}

// loadTree reads the right edge, and returns ErrDamaged, wrapped, if it does not give the head's root.
func loadTree(head storage.Head, hashes tlog.HashReader) (*tree, error) {
	t := &tree{head: head, edge: map[int64]tlog.Hash{}}
	root, err := rootAt(head.Size, t.remember(hashes))
	if err != nil {
		return nil, err
	}
	if root != head.Root {
		return nil, fmt.Errorf("%w: the head is %v, but the stored hashes of %s give the root %v", ErrDamaged, head, plural.Of(head.Size, "record"), root)
	}
	return t, nil
}

// grow returns the tree with these leaves, and the hashes to store. It does not change t.
func (t *tree) grow(leaves []tlog.Hash) (*tree, []tlog.Hash, error) {
	known := tree{edge: maps.Clone(t.edge)}
	size := t.head.Size
	stored := make([]tlog.Hash, 0, tlog.StoredHashCount(size+int64(len(leaves)))-tlog.StoredHashCount(size))
	for _, leaf := range leaves {
		hashes, err := tlog.StoredHashesForRecordHash(size, leaf, known.reader())
		if err != nil {
			return nil, nil, fmt.Errorf("hashing record %d into the tree: %w", size, err)
		}
		for i, hash := range hashes {
			known.edge[tlog.StoredHashIndex(0, size)+int64(i)] = hash
		}
		stored = append(stored, hashes...)
		size++
	}
	next := &tree{head: storage.Head{Size: size}, edge: map[int64]tlog.Hash{}}
	root, err := rootAt(size, next.remember(known.reader()))
	next.head.Root = root
	return next, stored, err
}

// reader reads from the edge alone.
func (t *tree) reader() tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			hash, ok := t.edge[index]
			if !ok {
				return nil, fmt.Errorf("hash %d is not on the edge of the tree", index)
			}
			hashes[i] = hash
		}
		return hashes, nil
	})
}

// remember reads from another reader, and adds what it read to the edge.
func (t *tree) remember(from tlog.HashReader) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes, err := from.ReadHashes(indexes)
		if err != nil {
			return nil, err
		}
		for i, index := range indexes {
			t.edge[index] = hashes[i]
		}
		return hashes, nil
	})
}

// rootAt computes the root of the first size records from stored hashes. It returns ErrDamaged, wrapped, if one is
// missing.
func rootAt(size int64, hashes tlog.HashReader) (tlog.Hash, error) {
	root, err := tlog.TreeHash(size, hashes)
	if errors.Is(err, ErrNotFound) {
		return root, fmt.Errorf("%w: a hash under the root of %d records: %w", ErrDamaged, size, err)
	}
	if err != nil {
		return root, fmt.Errorf("computing the root of %d records: %w", size, err)
	}
	return root, nil
}

// contains returns ErrBehind or ErrForked, wrapped, unless the log with the head now begins with the log of the head
// before.
func contains(now, before storage.Head, hashes tlog.HashReader) error {
	if now.Size < before.Size {
		return fmt.Errorf("%w: it has %s, but is known to have had %d", ErrBehind, plural.Of(now.Size, "record"), before.Size)
	}
	root, err := rootAt(before.Size, hashes)
	if err != nil {
		return err
	}
	if root != before.Root {
		return fmt.Errorf("%w: its first %d records have the root %v, but the known root is %v", ErrForked, before.Size, root, before.Root)
	}
	return nil
}

func (c *Config) hashes(ctx context.Context) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		return c.Store.Hashes(ctx, indexes)
	})
}

func same(a, b *evidence.Record) bool {
	return a.Digest == b.Digest && slices.EqualFunc(a.Signatures, b.Signatures, bytes.Equal)
}

// Entries iterates over the log's entries, the bytes that it hashed, from index from up to and excluding to. It
// compares each with its stored leaf hash first. It ends after an error, ErrDamaged if a row does not fit its leaf
// hash.
func (l *Ledger) Entries(ctx context.Context, from, to int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := l.within(ctx, from, to)
		for index := from; err == nil && index < to; {
			var entries [][]byte
			entries, err = l.entries(ctx, index, min(pageSize, to-index))
			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
				index++
			}
		}
		if err != nil {
			yield(nil, fmt.Errorf("reading the log's entries: %w", err))
		}
	}
}

func (l *Ledger) entries(ctx context.Context, from, n int64) ([][]byte, error) {
	rows, err := l.RowsFrom(ctx, from, n)
	if err != nil {
		return nil, err
	}
	indexes := make([]int64, n)
	for i := range indexes {
		indexes[i] = tlog.StoredHashIndex(0, from+int64(i))
	}
	leaves, err := l.cfg.Store.Hashes(ctx, indexes)
	if err != nil {
		return nil, err
	}
	entries := make([][]byte, n)
	for i := range rows {
		if entries[i], err = rows[i].LogEntry(); err != nil {
			return nil, err
		}
		if tlog.RecordHash(entries[i]) != leaves[i] {
			return nil, fmt.Errorf("%w: row %d differs from what was logged", ErrDamaged, rows[i].Index)
		}
	}
	return entries, nil
}

// Consistency returns the proof that the log of size from is the beginning of the log of size to. It returns
// ErrNotFound, wrapped, for a size outside the log.
func (l *Ledger) Consistency(ctx context.Context, from, to int64) (*operator.Consistency, error) {
	proof, err := l.ProveConsistency(ctx, from, to)
	if err != nil {
		return nil, err
	}
	return &operator.Consistency{Origin: l.Origin(), From: from, To: to, Proof: proof}, nil
}

// SizeAt returns the size in a signed checkpoint of this log. It returns ErrCheckpoint if the checkpoint is not of
// this log, ErrBehind if the log is shorter, and ErrForked if the log contradicts it.
func (l *Ledger) SizeAt(ctx context.Context, signed string) (int64, error) {
	before, err := l.cfg.open(signed)
	if err != nil {
		return 0, err
	}
	head, err := l.cfg.Store.Head(ctx)
	if err != nil {
		return 0, err
	}
	return before.Size, contains(head, before, l.cfg.hashes(ctx))
}

// A tile contains 256 hashes. A tile above covers 256 tiles.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
)

// Tile returns the first width hashes of a tile of the tree (C2SP tlog-tiles), as bytes. It returns ErrNotFound,
// wrapped, if no signed checkpoint covers them.
func (l *Ledger) Tile(ctx context.Context, level int, index int64, width int) (tile []byte, err error) {
	defer fault.While(&err, "reading tile")
	if err := l.signedOver(ctx, level, index, width); err != nil {
		return nil, err
	}
	indexes := make([]int64, width)
	for i := range indexes {
		indexes[i] = tlog.StoredHashIndex(level*tileHeight, index*tileWidth+int64(i))
	}
	hashes, err := l.cfg.Store.Hashes(ctx, indexes)
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: a hash under a signed checkpoint is missing", ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	for _, hash := range hashes {
		tile = append(tile, hash[:]...)
	}
	return tile, nil
}

// EntryBundle returns what the log hashed under the first width hashes of a tile of level 0. It returns ErrNotFound,
// wrapped, if no signed checkpoint covers them.
func (l *Ledger) EntryBundle(ctx context.Context, index int64, width int) (entries [][]byte, err error) {
	defer fault.While(&err, "reading entries")
	if err := l.signedOver(ctx, 0, index, width); err != nil {
		return nil, err
	}
	for len(entries) < width {
		more, err := l.entries(ctx, index*tileWidth+int64(len(entries)), min(pageSize, int64(width-len(entries))))
		if err != nil {
			return nil, err
		}
		entries = slices.Concat(entries, more)
	}
	return entries, nil
}

// signedOver returns ErrNotFound unless a stored checkpoint covers the first width hashes of a tile.
func (l *Ledger) signedOver(ctx context.Context, level int, index int64, width int) error {
	if level < 0 || index < 0 || width < 1 || width > tileWidth {
		return ErrNotFound
	}
	for _, look := range []func() (int64, error){
		func() (int64, error) { return l.signedSize.Load(), nil }, // what a checkpoint covered once stays covered
		func() (int64, error) { return l.lookSigned(ctx) },
	} {
		size, err := look()
		if err != nil {
			return err
		}
		if level*tileHeight < 64 && index <= size/tileWidth && index*tileWidth+int64(width) <= size>>(level*tileHeight) {
			return nil
		}
	}
	return ErrNotFound
}

func (l *Ledger) lookSigned(ctx context.Context) (int64, error) {
	signed, err := l.cfg.Store.Checkpoint(ctx)
	if err != nil {
		return 0, err
	}
	head, err := l.cfg.open(signed)
	if err != nil {
		return 0, err
	}
	for {
		size := l.signedSize.Load()
		if size >= head.Size || l.signedSize.CompareAndSwap(size, head.Size) {
			return head.Size, nil
		}
	}
}

// maxTiledEntry is the longest entry in a bundle: its length is stored in two bytes.
const maxTiledEntry = 1<<16 - 1

// fitsInBundle returns ErrRefused, wrapped, for a record whose entry is too long to be served. That takes hundreds of
// signatures.
func fitsInBundle(record *evidence.Record) error {
	length := 1024 // more than the rest of the entry; signatures are in base64
	for _, signature := range record.Signatures {
		length += (len(signature)+2)/3*4 + 3
	}
	if length > maxTiledEntry {
		return fmt.Errorf("%w: its %d signatures make a log entry of more than %d bytes", ErrRefused, len(record.Signatures), maxTiledEntry)
	}
	return nil
}
