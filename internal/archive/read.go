package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/fault"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
)

// A Damage says what is wrong with a file, and where. It wraps ledger.ErrArchive.
type Damage struct {
	Where  string // such as "tile 3, block 2"
	Reason error
}

func (d *Damage) Error() string { return fmt.Sprintf("%s: %v", d.Where, d.Reason) }

func (d *Damage) Unwrap() []error { return []error{ledger.ErrArchive, d.Reason} }

func damage(reason error, where string, args ...any) error {
	return &Damage{Where: fmt.Sprintf(where, args...), Reason: reason}
}

var errChanged = errors.New("its SHA-256 differs from the one in the file's own table: it was changed")

// A File is an open archive. It is safe for concurrent use.
type File struct {
	from   io.ReaderAt
	table  *table
	digest evidence.Digest

	unpacker *zstd.Decoder
	recent   atomic.Pointer[unpacked] // the block that was read last: callers often ask for neighbours
	index    atomic.Pointer[found]    // the tile index that was read last
}

type unpacked struct {
	offset int64 // in the file
	rows   []storage.Row
}

type found struct {
	tile int
	*index
}

// Open opens a file of size bytes, and reads its table of contents and its dictionary. It returns a *Damage for a
// file that is wrong.
func Open(from io.ReaderAt, size int64) (*File, error) {
	f := &File{from: from}
	if err := f.readTable(size); err != nil {
		return nil, err
	}
	if err := f.readDictionary(); err != nil {
		return nil, err
	}
	return f, nil
}

// Close frees the decoder. It does not close the reader given to Open.
func (f *File) Close() { f.unpacker.Close() }

// Digest is the digest of the table of contents, which covers everything in the file.
func (f *File) Digest() evidence.Digest { return f.digest }

// Range returns the range of the log in the file: the index of the first record, and the one after the last.
func (f *File) Range() (from, to int64) { return f.table.From, f.table.To }

// Origin is the name of the log, as the file says.
func (f *File) Origin() string { return f.table.Origin }

// Checkpoint is the signed checkpoint in the file; see CheckProof.
func (f *File) Checkpoint() string { return f.table.Checkpoint }

// Roots returns the hashes of the subtrees that the range consists of, and their stored hash indexes.
func (f *File) Roots() (indexes []int64, hashes []tlog.Hash) {
	for _, s := range subtrees(f.table.From, f.table.To) {
		indexes = append(indexes, tlog.StoredHashIndex(s.level, s.n))
	}
	return indexes, treeHashes(f.table.Roots)
}

func (f *File) readTable(size int64) error {
	if size < int64(len(magic))+trailerSize {
		return damage(fmt.Errorf("it has %d bytes", size), "file")
	}
	begin, err := f.read(0, int64(len(magic)))
	if err == nil && string(begin) != string(magic) {
		err = fmt.Errorf("it does not begin like a %s file", Format)
	}
	if err != nil {
		return damage(err, "beginning")
	}
	end, err := f.read(size-trailerSize, trailerSize)
	if err == nil && string(end[8+32:]) != string(endMagic) {
		err = errors.New("it does not end like an archive: it was truncated, or something was added")
	}
	if err != nil {
		return damage(err, "end")
	}
	length := binary.BigEndian.Uint64(end)
	if length > maxTable || int64(length) > size-trailerSize-int64(len(magic)) {
		return damage(fmt.Errorf("the stated length of the table of contents is %d bytes", length), "end")
	}
	doc, err := f.read(size-trailerSize-int64(length), int64(length))
	if err == nil && evidence.DigestOf(doc) != evidence.Digest(end[8:8+32]) {
		err = errChanged
	}
	if err == nil {
		f.table, err = parseTable(doc, size)
	}
	if err != nil {
		return damage(err, "table of contents")
	}
	f.digest = evidence.DigestOf(doc)
	return nil
}

func (f *File) readDictionary() error {
	d := f.table.Dictionary
	packed, err := f.read(int64(len(magic)), d.Length)
	if err == nil && evidence.DigestOf(packed) != d.SHA256 {
		err = errChanged
	}
	var dictionary []byte
	if err == nil && len(packed) > 0 {
		dictionary, err = unpackOnce(packed, maxDictionary)
	}
	if err != nil {
		return damage(err, "dictionary")
	}
	f.unpacker, err = unpacker(dictionary)
	return err
}

// unpacker limits memory: it refuses a frame that claims to be larger than a block before it unpacks anything.
func unpacker(dictionary []byte) (*zstd.Decoder, error) {
	options := []zstd.DOption{zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true)}
	if len(dictionary) > 0 {
		options = append(options, zstd.WithDecoderDictRaw(0, dictionary))
	}
	return zstd.NewReader(nil, options...)
}

func unpackOnce(packed []byte, most int64) ([]byte, error) {
	u, err := unpacker(nil)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	length, err := contentSize(packed, most)
	if err != nil {
		return nil, err
	}
	return unpack(u, packed, length)
}

// contentSize returns the unpacked size that a frame states. It returns an error if the size is missing or larger
// than most.
func contentSize(packed []byte, most int64) (int64, error) {
	var h zstd.Header
	if err := h.Decode(packed); err != nil {
		return 0, err
	}
	if !h.HasFCS || h.Skippable || h.FrameContentSize > uint64(most) {
		return 0, fmt.Errorf("a frame states an unpacked size of %d bytes, or none, want at most %d", h.FrameContentSize, most)
	}
	return int64(h.FrameContentSize), nil
}

// unpack returns exactly length bytes, and allocates no more.
func unpack(u *zstd.Decoder, packed []byte, length int64) ([]byte, error) {
	plain, err := u.DecodeAll(packed, make([]byte, 0, length))
	if err != nil {
		return nil, err
	}
	if int64(len(plain)) != length {
		return nil, fmt.Errorf("it unpacks to %d bytes, want %d", len(plain), length)
	}
	return plain, nil
}

func (f *File) read(offset, n int64) ([]byte, error) {
	b := make([]byte, n)
	read, err := f.from.ReadAt(b, offset)
	if int64(read) == n {
		return b, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

// tileAt is the offset of a tile's blocks.
func (f *File) tileAt(n int) int64 {
	at := int64(len(magic)) + f.table.Dictionary.Length
	for _, p := range f.table.Tiles[:n] {
		at += p.Blocks + p.Index.Length
	}
	return at
}

func (f *File) indexOf(n int) (*index, error) {
	if last := f.index.Load(); last != nil && last.tile == n {
		return last.index, nil
	}
	p := f.table.Tiles[n]
	doc, err := f.read(f.tileAt(n)+p.Blocks, p.Index.Length)
	if err == nil && evidence.DigestOf(doc) != p.Index.SHA256 {
		err = errChanged
	}
	var x *index
	if err == nil {
		x, err = parseIndex(doc, p.Blocks)
	}
	if err != nil {
		return nil, damage(err, "tile %d, index", n)
	}
	f.index.Store(&found{n, x})
	return x, nil
}

// block reads and unpacks one block.
func (f *File) block(tileNumber, n int, k block, offset int64) ([]storage.Row, error) {
	if last := f.recent.Load(); last != nil && last.offset == offset {
		return last.rows, nil
	}
	rows, err := f.unpackBlock(k, offset)
	if err != nil {
		return nil, damage(err, "tile %d, block %d", tileNumber, n)
	}
	f.recent.Store(&unpacked{offset, rows})
	return rows, nil
}

func (f *File) unpackBlock(k block, offset int64) ([]storage.Row, error) {
	packed, err := f.read(offset, k.packed)
	if err != nil {
		return nil, err
	}
	if evidence.DigestOf(packed) != k.digest {
		return nil, errChanged
	}
	length, err := contentSize(packed, k.length)
	if err != nil {
		return nil, err
	}
	if length != k.length {
		return nil, fmt.Errorf("it unpacks to %d bytes, but the index says %d", length, k.length)
	}
	plain, err := unpack(f.unpacker, packed, k.length)
	if err != nil {
		return nil, err
	}
	return parseBlock(plain, k.records)
}

// Row returns what the file holds of the record at this index of the log, and the log's leaf hash of it. That is
// payload, signatures, time stamps and counts, or what is left of an expired record. It shares memory with other
// rows, so the caller must not change it. It returns ledger.ErrNotFound, wrapped, for an index outside the file.
func (f *File) Row(logIndex int64) (storage.Row, tlog.Hash, error) {
	if logIndex < f.table.From || logIndex >= f.table.To {
		return storage.Row{}, tlog.Hash{}, fmt.Errorf("%w: the file holds the records %d to %d", ledger.ErrNotFound, f.table.From, f.table.To-1)
	}
	n, place := int((logIndex-f.table.From)/tile), int((logIndex-f.table.From)%tile)
	x, err := f.indexOf(n)
	if err != nil {
		return storage.Row{}, tlog.Hash{}, err
	}
	b, offset, at := x.blockOf(place)
	rows, err := f.block(n, b, x.blocks[b], f.tileAt(n)+offset)
	if err != nil {
		return storage.Row{}, tlog.Hash{}, err
	}
	row := rows[at]
	row.Index = logIndex
	return row, x.leaves[place], nil
}

// Record returns a record, after comparing it with its leaf hash. It returns ledger.ErrExpired, wrapped, if it was
// deleted.
func (f *File) Record(logIndex int64) (*evidence.Record, error) {
	row, leaf, err := f.Row(logIndex)
	if err != nil {
		return nil, err
	}
	record, err := hold(&row, leaf)
	if err != nil {
		return nil, damage(err, "record %d", logIndex)
	}
	if record == nil {
		return nil, fmt.Errorf("%w: record %d was deleted after its retention time, by act %s", ledger.ErrExpired, logIndex, row.ExpiredBy)
	}
	return record, nil
}

// checkProof compares the roots with a checkpoint over size records. want may be nil; then only the number of hashes
// is checked.
func (t *table) checkProof(size int64, want *operator.Checkpoint) error {
	if size < t.To {
		return fmt.Errorf("the checkpoint covers %d records, but the file needs %d", size, t.To)
	}
	before, _, all := around(t.From, t.To, size)
	if len(t.Outside)+len(t.Roots) != len(all) {
		return fmt.Errorf("%d hashes outside, want %d", len(t.Outside), len(all)-len(t.Roots))
	}
	hashes := slices.Concat(t.Outside[:len(before)], t.Roots, t.Outside[len(before):])
	root, err := rootFrom(all, treeHashes(hashes), size)
	if err != nil {
		return err
	}
	if want != nil && root != want.Root {
		return fmt.Errorf("the hashes of the file give the root %v, but the checkpoint over %d records has %v", root, size, want.Root)
	}
	return nil
}

// CheckProof returns a *Damage unless the log with this key has signed a checkpoint that covers the roots. Check
// verifies that the roots are those of the records.
func (f *File) CheckProof(log note.Verifier) error {
	c, err := operator.OpenCheckpoint(f.table.Checkpoint, log)
	if err == nil && c.Origin != f.table.Origin {
		err = fmt.Errorf("the file is of the log %q, but its checkpoint is of %q", f.table.Origin, c.Origin)
	}
	if err == nil {
		err = f.table.checkProof(c.Size, &c)
	}
	if err != nil {
		return damage(err, "proof")
	}
	return nil
}

// ErrUntrusted means that none of the given keys is the key of the file's log.
var ErrUntrusted = errors.New("no key of its log is trusted")

// CheckProofBy is CheckProof with the key of the file's log, among keys in the format of package note. It returns
// ErrUntrusted, wrapped, if none fits.
func (f *File) CheckProofBy(keys []string) error {
	for _, key := range keys {
		if log, err := note.NewVerifier(key); err == nil && log.Name() == f.table.Origin {
			return f.CheckProof(log)
		}
	}
	return fmt.Errorf("%w: %q", ErrUntrusted, f.table.Origin)
}

// An Examination says what Check does besides checking the file in itself.
type Examination struct {
	Workers int // number of goroutines; 0: as many as there are processors
	// Each is called with every row and its record (nil if expired), by Workers goroutines, in no order. Its error is
	// reported as a damage. It may be nil.
	Each     func(row *storage.Row, record *evidence.Record) error
	Found    func(d *Damage)         // called with every damage, by one goroutine at a time; may be nil
	Progress func(done, total int64) // called after every tile, by one goroutine at a time; may be nil
}

// Check reads the whole file: every block, every record, every leaf hash, and the roots that they give. It returns
// the number of damages, and an error only if it could not continue. It holds a few tiles in memory, however long the
// file is.
func (f *File) Check(ctx context.Context, e Examination) (damages int, err error) {
	if e.Workers == 0 {
		e.Workers = runtime.GOMAXPROCS(0)
	}
	c := &checking{File: f, Examination: e, roots: make([]tlog.Hash, len(f.table.Tiles))}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range e.Workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= len(f.table.Tiles) {
					return
				}
				if err := fault.Guard(func() error { c.tile(n); return nil }); err != nil { // a panic in this goroutine would end the program
					c.report(damage(err, "tile %d", n))
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return c.damages, err
	}
	c.checkRoots()
	return c.damages, nil
}

// checking is one run of Check.
type checking struct {
	*File
	Examination
	roots []tlog.Hash // of tiles

	mu      sync.Mutex // guards the members below, and is held while Found and Progress run
	damages int
	done    int64
}

func (c *checking) report(err error) {
	var d *Damage
	if !errors.As(err, &d) {
		d = &Damage{Where: "file", Reason: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.damages++
	if c.Found != nil {
		c.Found(d)
	}
}

// tile examines one tile. It holds one block in memory at a time.
func (c *checking) tile(n int) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.done += tile
		if c.Progress != nil {
			c.Progress(c.done, c.table.To-c.table.From)
		}
	}()
	x, err := c.indexOf(n)
	if err != nil {
		c.report(err)
		return
	}
	c.roots[n] = merge(x.leaves[:])
	offset, place := c.tileAt(n), 0
	for b, k := range x.blocks {
		rows, err := c.unpackBlock(k, offset)
		if err != nil {
			c.report(damage(err, "tile %d, block %d", n, b))
		}
		for i := range rows {
			if err := c.record(&rows[i], n, place+i, x.leaves[place+i]); err != nil {
				c.report(err)
			}
		}
		place, offset = place+k.records, offset+k.packed
	}
}

func (c *checking) record(row *storage.Row, n, place int, leaf tlog.Hash) error {
	row.Index = c.table.From + int64(n)*tile + int64(place)
	record, err := hold(row, leaf)
	if err == nil && c.Each != nil {
		err = c.Each(row, record)
	}
	if err != nil {
		return damage(err, "record %d", row.Index)
	}
	return nil
}

// hold compares a row of a file with its leaf hash, and returns the record, or nil if it has expired.
func hold(row *storage.Row, leaf tlog.Hash) (*evidence.Record, error) {
	if row.Entry != nil {
		if _, err := evidence.ParseEntry(row.Entry); err != nil {
			return nil, err
		}
		if tlog.RecordHash(row.Entry) != leaf {
			return nil, errOther
		}
		return nil, nil
	}
	record, err := evidence.OpenParts(row.Payload, row.Signatures, row.Timestamps)
	if err != nil {
		return nil, err
	}
	if !row.Counts.Fit(&record.Payload) || tlog.RecordHash(record.LogEntry(row.Counts)) != leaf {
		return nil, errOther
	}
	row.RecordID, row.Digest, row.ChainID = record.Payload.RecordID, record.Digest, record.Payload.ChainID
	if row.Counts.ActorSeq > 0 {
		row.Actor = storage.ActorOf(&record.Payload)
	}
	return record, nil
}

var errOther = errors.New("it differs from what the log hashed at this place")

// checkRoots compares the roots in the table with those that the leaves give.
func (c *checking) checkRoots() {
	at := 0
	for i, s := range subtrees(c.table.From, c.table.To) {
		tiles := 1 << s.level / tile
		root := merge(c.roots[at : at+tiles])
		at += tiles
		if slices.Contains(c.roots[at-tiles:at], tlog.Hash{}) {
			continue // the index of a tile cannot be read, which has been reported
		}
		if root != tlog.Hash(c.table.Roots[i]) {
			c.report(damage(fmt.Errorf("root %d is %v, but the records give %v", i, tlog.Hash(c.table.Roots[i]), root), "table of contents"))
		}
	}
}
