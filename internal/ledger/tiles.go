package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/fault"
)

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

// entries returns exactly these entries.
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

// lookSigned returns the size of the checkpoint in the store.
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
