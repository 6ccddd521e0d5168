package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/internal/plural"
)

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

// hashes reads committed hashes.
func (c *Config) hashes(ctx context.Context) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		return c.Store.Hashes(ctx, indexes)
	})
}

// same reports whether two records have the same payload and the same signatures.
func same(a, b *evidence.Record) bool {
	return a.Digest == b.Digest && slices.EqualFunc(a.Signatures, b.Signatures, bytes.Equal)
}
