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

// A tree is what one must know of a log to append to it: its head, and the stored hashes on its right edge (at most
// 63), which are all that later hashes are made of.
type tree struct {
	head storage.Head
	edge map[int64]tlog.Hash // by stored hash index
}

// loadTree reads the right edge, and checks that the head is made of it.
func loadTree(head storage.Head, hashes tlog.HashReader) (*tree, error) {
	t := &tree{head: head, edge: map[int64]tlog.Hash{}}
	root, err := rootAt(head.Size, t.remember(hashes))
	if err != nil {
		return nil, err
	}
	if root != head.Root {
		return nil, fmt.Errorf("%w: the head says %v, the stored hashes of %s make the root %v", ErrDamaged, head, plural.Of(head.Size, "record"), root)
	}
	return t, nil
}

// grow returns the tree with these leaves, and the hashes to store. It changes nothing in t.
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

// remember reads from elsewhere and keeps what was read as the edge.
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

// rootAt computes the root of the first size records from stored hashes.
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

// contains checks that the log with the head now began as the log with the head before.
func contains(now, before storage.Head, hashes tlog.HashReader) error {
	if now.Size < before.Size {
		return fmt.Errorf("%w: it holds %s, and is known to have held %d", ErrBehind, plural.Of(now.Size, "record"), before.Size)
	}
	root, err := rootAt(before.Size, hashes)
	if err != nil {
		return err
	}
	if root != before.Root {
		return fmt.Errorf("%w: its first %d records make the root %v, known is %v", ErrForked, before.Size, root, before.Root)
	}
	return nil
}

// hashes reads committed hashes.
func (c *Config) hashes(ctx context.Context) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		return c.Store.Hashes(ctx, indexes)
	})
}

// same reports whether two records are one: the same payload with the same signatures.
func same(a, b *evidence.Record) bool {
	return a.Digest == b.Digest && slices.EqualFunc(a.Signatures, b.Signatures, bytes.Equal)
}
