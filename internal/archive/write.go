package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// A Source is the part of a log from which a file is made.
type Source struct {
	Origin     string
	From, To   int64  // whole tiles, at most MaxTiles
	Checkpoint string // signed, over at least To records
	Size       int64  // the number of records that it covers
	Hashes     tlog.HashReader
	Rows       func(ctx context.Context, from, n int64) ([]storage.Row, error) // complete rows, exactly these
	Progress   func(done int64)                                                // called after every tile; may be nil
}

// Without returns a source in which the records at some indexes are expired: only their log entries and the act are
// left.
func (s Source) Without(gone map[int64]bool, act string) Source {
	whole := s.Rows
	s.Rows = func(ctx context.Context, from, n int64) ([]storage.Row, error) {
		rows, err := whole(ctx, from, n)
		if err != nil {
			return nil, err
		}
		for k := range rows {
			if !gone[rows[k].Index] {
				continue
			}
			entry, err := rows[k].LogEntry()
			if err != nil {
				return nil, err
			}
			rows[k].Payload, rows[k].Signatures, rows[k].Timestamps = nil, nil, nil
			rows[k].Entry, rows[k].ExpiredBy = entry, act
		}
		return rows, nil
	}
	return s
}

const (
	maxSamples    = 1024    // number of records that train a dictionary
	maxSampleSize = 8 << 10 // bytes of each: later bytes rarely match those of other records
)

// Write writes a file, and returns the digest of its table of contents. Its errors are those of the source and of the
// writer.
func Write(ctx context.Context, to io.Writer, s Source) (evidence.Digest, error) {
	w := &writer{Source: s, to: to, table: table{Format: Format, Origin: s.Origin, From: s.From, To: s.To, Checkpoint: s.Checkpoint, Tiles: []tileParts{}}}
	digest, err := w.all(ctx)
	if err != nil {
		return digest, fmt.Errorf("writing archive of the records %d to %d: %w", s.From, s.To-1, err)
	}
	return digest, nil
}

type writer struct {
	Source
	to     io.Writer
	table  table
	packer *zstd.Encoder
}

func (w *writer) all(ctx context.Context) (digest evidence.Digest, err error) {
	if err := w.proof(); err != nil {
		return digest, err
	}
	if _, err := w.to.Write(magic); err != nil {
		return digest, err
	}
	if err := w.dictionary(ctx); err != nil {
		return digest, err
	}
	defer func() { err = errors.Join(err, w.packer.Close()) }()
	for from := w.From; from < w.To; from += tile {
		if err := w.tile(ctx, from); err != nil {
			return digest, err
		}
		if w.Progress != nil {
			w.Progress(from + tile - w.From)
		}
	}
	doc, err := w.table.marshal()
	if err != nil {
		return digest, err
	}
	digest = evidence.DigestOf(doc)
	end := binary.BigEndian.AppendUint64(doc, uint64(len(doc)))
	end = append(append(end, digest[:]...), endMagic...)
	_, err = w.to.Write(end)
	return digest, err
}

// proof adds to the table the hashes that lead from the range to the checkpoint.
func (w *writer) proof() error {
	read := func(list []subtree) ([]evidence.Digest, error) {
		indexes := make([]int64, len(list))
		for i, s := range list {
			indexes[i] = tlog.StoredHashIndex(s.level, s.n)
		}
		hashes, err := w.Hashes.ReadHashes(indexes)
		return digests(hashes), err
	}
	before, after, _ := around(w.From, w.To, w.Size)
	roots, err := read(subtrees(w.From, w.To))
	if err != nil {
		return err
	}
	left, err := read(before)
	if err != nil {
		return err
	}
	right, err := read(after)
	if err != nil {
		return err
	}
	w.table.Roots, w.table.Outside = roots, append(left, right...)
	return w.table.checkProof(w.Size, nil)
}

// dictionary trains a dictionary on records from the whole range, and writes it.
func (w *writer) dictionary(ctx context.Context) error {
	step := max(1, (w.To-w.From)/maxSamples)
	const page = 32
	var samples [][]byte
	var plain int64
	for from := w.From; from < w.To; from += page {
		first := (from - w.From + step - 1) / step * step // first sample in this page
		if first >= from-w.From+page {
			continue
		}
		rows, err := w.Rows(ctx, from, min(page, w.To-from))
		if err != nil {
			return err
		}
		for at := first - (from - w.From); at < int64(len(rows)); at += step {
			text := appendRow(nil, &rows[at])
			plain += int64(len(text)) * step
			samples = append(samples, text[:min(len(text), maxSampleSize)])
		}
	}
	dictionary := train(samples, int(min(maxDictionary, plain/16)))
	packed, err := pack(dictionary)
	if err != nil {
		return err
	}
	w.table.Dictionary = part{int64(len(packed)), evidence.DigestOf(packed)}
	if _, err := w.to.Write(packed); err != nil {
		return err
	}
	w.packer, err = zstd.NewWriter(nil, packing(dictionary)...)
	return err
}

// packing returns the settings that determine the compressed bytes.
func packing(dictionary []byte) []zstd.EOption {
	options := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true)}
	if len(dictionary) > 0 {
		options = append(options, zstd.WithEncoderDictRaw(0, dictionary))
	}
	return options
}

// pack compresses the dictionary. It returns no bytes for an empty one.
func pack(dictionary []byte) (packed []byte, err error) {
	if len(dictionary) == 0 {
		return nil, nil
	}
	packer, err := zstd.NewWriter(nil, packing(nil)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, packer.Close()) }()
	return packer.EncodeAll(dictionary, nil), nil
}

// tile writes the blocks of 256 records and their index.
func (w *writer) tile(ctx context.Context, from int64) error {
	rows, err := w.Rows(ctx, from, tile)
	if err != nil {
		return err
	}
	if len(rows) != tile {
		return fmt.Errorf("%d rows of the tile at %d", len(rows), from)
	}
	var x index
	blocks := int64(0)
	var plain []byte
	records := 0
	for i := range rows {
		entry, err := rows[i].LogEntry()
		if err != nil {
			return err
		}
		x.leaves[i] = tlog.RecordHash(entry)
		before := len(plain)
		plain = appendRow(plain, &rows[i])
		if len(plain)-before > maxEntry {
			return fmt.Errorf("record %s: with its time stamps it has %d bytes, and an archive takes %d", rows[i].RecordID, len(plain)-before, maxEntry)
		}
		if records++; len(plain) < blockSize && i < tile-1 {
			continue
		}
		packed := w.packer.EncodeAll(plain, nil)
		x.blocks = append(x.blocks, block{records: records, packed: int64(len(packed)), length: int64(len(plain)), digest: evidence.DigestOf(packed)})
		blocks += int64(len(packed))
		if _, err := w.to.Write(packed); err != nil {
			return err
		}
		plain, records = plain[:0], 0
	}
	doc := x.marshal()
	w.table.Tiles = append(w.table.Tiles, tileParts{Blocks: blocks, Index: part{int64(len(doc)), evidence.DigestOf(doc)}})
	_, err = w.to.Write(doc)
	return err
}
