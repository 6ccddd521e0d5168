package tiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
)

// ErrInconsistent says that the log serves data that its checkpoint does not cover.
var ErrInconsistent = errors.New("what the log serves is not what it signed")

// An InconsistentError holds data that a log served and that contradicts its checkpoint.
type InconsistentError struct {
	Path   string // of the tile or bundle
	Served []byte // the data; for a bundle, the wrong entry
	Reason string
}

func (e *InconsistentError) Error() string {
	return fmt.Sprintf("%v: %s: %s", ErrInconsistent, e.Path, e.Reason)
}

func (e *InconsistentError) Is(target error) bool { return target == ErrInconsistent }

// parallel is how many tiles are fetched at a time.
const parallel = 8

// A Tree is the tree of one checkpoint, read from tiles. Every hash that it returns is proved under the checkpoint's
// root. It ends with its context.
type Tree struct {
	ctx    context.Context
	client *Client
	head   operator.Checkpoint
	reader tlog.HashReader
	kept   map[tlog.Tile][]byte // proved tiles, without whole ones of level 0, of which there are many

	served  map[tlog.Tile][]byte // the tiles read last
	fetched error                // why that failed
}

// Tree makes the tree of a checkpoint whose signature the caller has checked.
func (c *Client) Tree(ctx context.Context, head operator.Checkpoint) *Tree {
	t := &Tree{ctx: ctx, client: c, head: head, kept: map[tlog.Tile][]byte{}}
	t.reader = tlog.TileHashReader(tlog.Tree{N: head.Size, Hash: head.Root}, (*tileReader)(t))
	return t
}

// possible refuses sizes that no log can have. The holder of the log's key can sign any size. From 2^62 on, the
// arithmetic of package tlog overflows and never ends, which would stop every monitor.
func (t *Tree) possible() error {
	if t.head.Size < 0 || t.head.Size > operator.MaxEntries {
		return &InconsistentError{Path: "checkpoint", Reason: fmt.Sprintf("it is over %d entries: no log can have more than %d", t.head.Size, int64(operator.MaxEntries))}
	}
	return nil
}

// Head returns the checkpoint.
func (t *Tree) Head() operator.Checkpoint { return t.head }

// ReadHashes implements tlog.HashReader. It returns an *InconsistentError if the log's data contradicts the
// checkpoint, and ErrUnavailable or ErrRefused if the log does not serve it.
func (t *Tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	if len(indexes) == 0 {
		return nil, nil
	}
	if err := t.possible(); err != nil {
		return nil, err
	}
	t.served, t.fetched = nil, nil
	hashes, err := t.reader.ReadHashes(indexes)
	if err == nil || t.fetched != nil {
		return hashes, err
	}
	return nil, t.blame(err)
}

// blame finds the first wrong tile. Tiles of higher levels come first; each must contain the hash of the tile below
// it.
func (t *Tree) blame(reason error) error {
	lowestLast := func(a, b tlog.Tile) int { return cmp.Or(b.L-a.L, cmp.Compare(a.N, b.N)) }
	batch := slices.SortedFunc(maps.Keys(t.served), lowestLast)
	for _, tile := range batch {
		above, known := Of(tile.L+1, tile.N/Width, t.head.Size), false
		var data []byte
		if data, known = t.served[above]; !known {
			data, known = t.kept[above]
		}
		if tile.W < Width || !known {
			continue // on the right edge: all of these together give the root
		}
		at := tile.N % Width * tlog.HashSize
		if rootOf(t.served[tile]) != tlog.Hash(data[at:at+tlog.HashSize]) {
			return &InconsistentError{Path(tile), t.served[tile], fmt.Sprintf("it does not hash to what %s says of it", Path(above))}
		}
	}
	if len(batch) == 0 {
		return reason
	}
	edge := batch[len(batch)-1]
	return &InconsistentError{Path(edge), t.served[edge], fmt.Sprintf("the tiles on the right edge do not give the root of %d entries", t.head.Size)}
}

// rootOf hashes a whole tile.
func rootOf(tile []byte) tlog.Hash {
	var level []tlog.Hash
	for hash := range slices.Chunk(tile, tlog.HashSize) {
		level = append(level, tlog.Hash(hash))
	}
	for len(level) > 1 {
		for i := range len(level) / 2 {
			level[i] = tlog.NodeHash(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
	}
	return level[0]
}

// tileReader makes a Tree a tlog.TileReader.
type tileReader Tree

func (r *tileReader) Height() int { return height }

func (r *tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	r.fetched = inParallel(r.ctx, len(tiles), func(ctx context.Context, i int) (err error) {
		if kept, there := r.kept[tiles[i]]; there {
			data[i] = kept
			return nil
		}
		data[i], err = r.client.tile(ctx, tiles[i])
		return err
	})
	if r.fetched != nil {
		return nil, r.fetched
	}
	r.served = make(map[tlog.Tile][]byte, len(tiles))
	for i, tile := range tiles {
		r.served[tile] = data[i]
	}
	return data, nil
}

// SaveTiles implements tlog.TileReader. tlog calls it with tiles that are proved under the root.
func (r *tileReader) SaveTiles(tiles []tlog.Tile, data [][]byte) {
	for i, tile := range tiles {
		if tile.L > 0 || tile.W < Width {
			r.kept[tile] = data[i]
		}
	}
}

// inParallel does n things, a few at a time, and returns the first error.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	places := make(chan struct{}, parallel)
	var running sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-places }()
			if err := do(ctx, i); err != nil {
				stop(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// Leaves returns the leaf hashes from index from up to, but not including, to. Its errors are those of ReadHashes.
func (t *Tree) Leaves(from, to int64) ([]tlog.Hash, error) {
	indexes := make([]int64, 0, max(0, to-from))
	for i := from; i < to; i++ {
		indexes = append(indexes, tlog.StoredHashIndex(0, i))
	}
	return t.ReadHashes(indexes)
}

// Entries calls take with the entries from index from up to, but not including, to, in order. Each is proved to hash
// to its leaf. It returns the first error of take, and those of ReadHashes.
func (t *Tree) Entries(from, to int64, take func(index int64, entry []byte) error) error {
	const step = parallel * Width
	for start := from; start < to; start = (start/step + 1) * step {
		end := min(to, (start/step+1)*step)
		leaves, err := t.Leaves(start, end)
		if err != nil {
			return err
		}
		entries, err := t.bundles(start/Width, (end-1)/Width)
		if err != nil {
			return err
		}
		for i, leaf := range leaves {
			index := start + int64(i)
			entry := entries[index-start/Width*Width]
			if tlog.RecordHash(entry) != leaf {
				return &InconsistentError{Path(Of(EntriesLevel, index/Width, t.head.Size)), entry, fmt.Sprintf("entry %d does not hash to its leaf %v", index, leaf)}
			}
			if err := take(index, entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// bundles fetches the bundles from one index to another, and returns all their entries.
func (t *Tree) bundles(first, last int64) ([][]byte, error) {
	got := make([][][]byte, last-first+1)
	err := inParallel(t.ctx, len(got), func(ctx context.Context, i int) (err error) {
		got[i], err = t.client.bundle(ctx, Of(EntriesLevel, first+int64(i), t.head.Size))
		return err
	})
	return slices.Concat(got...), err
}

// ProveInclusion returns the audit path of the entry at an index. It returns an error if the checkpoint does not
// cover it, and those of ReadHashes.
func (t *Tree) ProveInclusion(index int64) ([]tlog.Hash, error) {
	if index < 0 || index >= t.head.Size {
		return nil, fmt.Errorf("entry %d is not among the %d that the checkpoint covers", index, t.head.Size)
	}
	if err := t.possible(); err != nil {
		return nil, err
	}
	return tlog.ProveRecord(t.head.Size, index, t)
}

// ProveConsistency returns the proof from the first size entries of the tree to all of it. Its Check compares it with
// a smaller checkpoint. It refuses a size that the checkpoint does not cover. Its other errors are those of
// ReadHashes.
func (t *Tree) ProveConsistency(size int64) (*operator.Consistency, error) {
	if size < 0 || size > t.head.Size {
		return nil, fmt.Errorf("the checkpoint covers %d entries, not the first %d", t.head.Size, size)
	}
	if err := t.possible(); err != nil {
		return nil, err
	}
	proof := &operator.Consistency{Origin: t.head.Origin, From: size, To: t.head.Size}
	if size == 0 || size == t.head.Size {
		return proof, nil
	}
	var err error
	proof.Proof, err = tlog.ProveTree(t.head.Size, size, t)
	return proof, err
}

// ProveFork is ProveConsistency without trust in any smaller root. If a smaller checkpoint under the same key is not
// of the beginning of this tree, the proof shows this to any reader. See operator.ErrFork. Its errors are those of
// ProveConsistency.
func (t *Tree) ProveFork(size int64) (*operator.Consistency, error) {
	proof, err := t.ProveConsistency(size)
	if err != nil || len(proof.Proof) == 0 || size&(size-1) != 0 {
		return proof, err
	}
	root, err := t.ReadHashes([]int64{tlog.StoredHashIndex(bits.TrailingZeros64(uint64(size)), 0)})
	proof.Proof = slices.Concat(root, proof.Proof)
	return proof, err
}
