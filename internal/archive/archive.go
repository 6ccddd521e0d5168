// Package archive keeps ranges of the log in immutable files. They are compressed with a dictionary that is trained
// on their own records. One record can be read, proved and verified without unpacking the others.
//
// A file holds whole tiles of 256 records. Its table of contents, at the end, has the digest of each tile's index.
// The index has the leaf hash of each record and the digest of each compressed block. So the digest of the table
// covers every byte of the file. A reader who knows it, like the log's database, reads any record and knows that it
// is what was archived. The table also has the hashes of the RFC 6962 subtrees that the range consists of, a signed
// checkpoint, and the hashes that lead from these subtrees to its root. So a reader with only the log's key can
// verify that the file holds what the log holds.
//
// The same records under the same checkpoint give the same file. docs/format.md describes every byte.
//
// # Old records move to files, and the log stays complete
//
// A row sheds what makes it a record (payload, signatures, time stamps). It keeps what finds and proves it: id,
// digest, chain, case, counts, hashes. storage.WholeRows fills in what rows have shed, so readers of the log need not
// know of archives. If a file is missing, reading from it is an error that names the file. It does not prevent
// sealing: every start reads the operator's acts, which stay in the database as well, and opening ignores rows that
// have shed.
//
// # The digest of the table of contents covers the whole file
//
// The table has the digests of the tiles' indexes, and these have the digests of the blocks. So a reader who knows
// one digest, which the database stores, can check a single record. The leaf hashes are in the file, and the table
// has a signed checkpoint with the hashes up to it. So a copy of the file elsewhere proves its place in the log to
// anyone with the log's key. Reading a block of 16 KiB under a dictionary of 64 KiB takes less than a millisecond;
// larger blocks save little more.
//
// # This package trains the dictionary itself
//
// The same records must give the same file. Otherwise two runs at once, or an interrupted run, would make two
// versions. The library's trainer uses random numbers, iterates over maps, and sorts by a relation that is not an
// order. Without its entropy tables, texts of some hundred bytes compress less, but blocks do not.
//
// # A row sheds only what was read back from the file
//
// Folder.Create writes the file, syncs it, and opens it as a reader would. It compares the file with the rows byte
// for byte, and with the stored hashes. Then the file is registered, and its rows shed, one tile in a transaction. In
// SQLite the rows are deleted and inserted again within that transaction, because SQLite merges pages after rows are
// deleted, but not after rows become smaller.
//
// # Retention
//
// The book of retention contains what the log says about keeping records: for how long, which are on hold, and which
// were deleted.
//
// # Deleting is decided separately from archiving
//
// Deleting has an act of its own, a lower limit in the code (six months), and holds that prevent it. Time stamps
// prove the age of a record; its claim does not count. A deleted record leaves its log entry in the file, so that
// every entry can still be served and every other proof made. The act comes first, as with erasures. If a file lacks
// records and no act explains it, fsck reports it.
package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger/storage"
)

const (
	// Format is the version that files state.
	Format = "jurat/archive/v1"
	// Extension is what the names of files end in.
	Extension = ".jurat-archive"

	// MaxTiles is how many tiles a file can have: 65,536 records.
	MaxTiles = 256
	tile     = storage.TileWidth

	blockSize     = 16 << 10 // bytes: a block ends with the record that reaches this size
	maxBlock      = blockSize + maxEntry
	maxPacked     = maxBlock + maxBlock/128 + 1024 // zstd's own limit for incompressible data
	maxDictionary = 64 << 10
	maxTable      = 256 << 10 // bytes of the table of contents
	maxOutside    = 128       // hashes: two for each level of a tree
)

var (
	magic    = []byte("jurat/archive/v1\n")
	endMagic = []byte("\njurat/archive/v1")
)

// trailerSize is the size of the trailer: length of the table (8 bytes, big-endian), its SHA-256, and endMagic.
var trailerSize = int64(8 + sha256.Size + len(endMagic))

// A table is the table of contents of a file. A file consists of the magic, the dictionary, for each tile its blocks
// and its index, the table, and the trailer, without gaps.
type table struct {
	Checkpoint string            `json:"checkpoint"` // C2SP signed note, over at least To records
	Dictionary part              `json:"dictionary"` // one zstd frame
	Format     string            `json:"format"`
	From       int64             `json:"from"`
	Origin     string            `json:"origin"`  // the log's name
	Outside    []evidence.Digest `json:"outside"` // hashes of the subtrees before and after the range, from left to right
	Roots      []evidence.Digest `json:"roots"`   // hashes of the subtrees that the range is made of, from left to right
	Tiles      []tileParts       `json:"tiles"`
	To         int64             `json:"to"`
}

type part struct {
	Length int64           `json:"length"`
	SHA256 evidence.Digest `json:"sha256"`
}

type tileParts struct {
	Blocks int64 `json:"blocks"` // bytes of all its blocks
	Index  part  `json:"index"`
}

// An index finds a tile's records. In the file it is the tile's leaf hashes, then for each block: how many records it
// has (2 bytes), its packed and its unpacked length (4 bytes each, all big-endian), and the SHA-256 of its packed
// bytes.
type index struct {
	leaves [tile]tlog.Hash
	blocks []block
}

type block struct {
	records        int
	packed, length int64
	digest         evidence.Digest
}

const blockEntry = 2 + 4 + 4 + sha256.Size

func (x *index) marshal() []byte {
	var b []byte
	for _, leaf := range x.leaves {
		b = append(b, leaf[:]...)
	}
	for _, k := range x.blocks {
		b = binary.BigEndian.AppendUint16(b, uint16(k.records))
		b = binary.BigEndian.AppendUint32(b, uint32(k.packed))
		b = binary.BigEndian.AppendUint32(b, uint32(k.length))
		b = append(b, k.digest[:]...)
	}
	return b
}

// parseIndex reads the index of a tile. blocks is the length of the tile's blocks.
func parseIndex(b []byte, blocks int64) (*index, error) {
	x := new(index)
	for i := range x.leaves {
		copy(x.leaves[i][:], b[i*sha256.Size:]) // table.check has checked the length
	}
	records := 0
	for b = b[tile*sha256.Size:]; len(b) > 0; b = b[blockEntry:] {
		k := block{records: int(binary.BigEndian.Uint16(b)), packed: int64(binary.BigEndian.Uint32(b[2:])), length: int64(binary.BigEndian.Uint32(b[6:]))}
		copy(k.digest[:], b[10:])
		records, blocks = records+k.records, blocks-k.packed
		if k.records == 0 || k.packed == 0 || k.packed > maxPacked || k.length == 0 || k.length > maxBlock {
			return nil, fmt.Errorf("block %d has %d records, %d packed and %d unpacked bytes", len(x.blocks), k.records, k.packed, k.length)
		}
		x.blocks = append(x.blocks, k)
	}
	if records != tile || blocks != 0 {
		return nil, fmt.Errorf("its blocks hold %d records, and %d bytes of the tile belong to no block", records, blocks)
	}
	return x, nil
}

// blockOf finds the block with the record at a place of the tile. It returns the block's number, the offset of its
// bytes, and the record's number in the block.
func (x *index) blockOf(place int) (n int, offset int64, at int) {
	for n, k := range x.blocks {
		if place < k.records {
			return n, offset, place
		}
		place -= k.records
		offset += k.packed
	}
	panic("parseIndex has counted the records of a tile")
}

func (t *table) marshal() ([]byte, error) { return json.Marshal(t, json.Deterministic(true)) }

// parseTable reads the table of a file of size bytes. It returns an error for any text that marshal would not write.
func parseTable(doc []byte, size int64) (*table, error) {
	t := new(table)
	if err := json.Unmarshal(doc, t, json.RejectUnknownMembers(true)); err != nil {
		return nil, evidence.Steady(err)
	}
	if again, err := t.marshal(); err != nil || !bytes.Equal(again, doc) {
		return nil, errors.Join(errors.New("it is not in canonical form"), err)
	}
	if t.Format != Format {
		return nil, fmt.Errorf("format: it is %q, but this program reads %q", t.Format, Format)
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	want := int64(len(magic)) + t.Dictionary.Length + int64(len(doc)) + trailerSize
	for _, p := range t.Tiles {
		want += p.Blocks + p.Index.Length
	}
	if want != size {
		return nil, fmt.Errorf("it describes a file of %d bytes, but this one has %d", want, size)
	}
	return t, nil
}

func (t *table) check() error {
	if t.From < 0 || t.From%tile != 0 || t.To <= t.From || t.To > operator.MaxEntries || t.To-t.From > MaxTiles*tile || t.To-t.From != int64(len(t.Tiles))*tile {
		return fmt.Errorf("from %d to %d: these are not whole tiles, or not as many as the %d listed", t.From, t.To, len(t.Tiles))
	}
	if t.Dictionary.Length < 0 || t.Dictionary.Length > maxDictionary+1024 {
		return fmt.Errorf("dictionary: it has %d bytes", t.Dictionary.Length)
	}
	for i, p := range t.Tiles {
		blocks := p.Index.Length - tile*sha256.Size
		if blocks <= 0 || blocks%blockEntry != 0 || blocks/blockEntry > tile || p.Blocks <= 0 || p.Blocks > blocks/blockEntry*maxPacked {
			return fmt.Errorf("tile %d: blocks of %d bytes, and an index of %d", i, p.Blocks, p.Index.Length)
		}
	}
	if want := len(subtrees(t.From, t.To)); len(t.Roots) != want || len(t.Outside) > maxOutside {
		return fmt.Errorf("%d roots and %d hashes outside, want %d and at most %d", len(t.Roots), len(t.Outside), want, maxOutside)
	}
	return nil
}

// A subtree is a complete subtree of the log's tree: the 2^level records from n·2^level on.
type subtree struct {
	level int
	n     int64
}

func (s subtree) past() int64 { return (s.n + 1) << s.level }

// subtrees returns the largest complete subtrees that a range consists of, from left to right.
func subtrees(from, to int64) (list []subtree) {
	for from < to {
		level := 0
		for from%(2<<level) == 0 && from+(2<<level) <= to {
			level++
		}
		list = append(list, subtree{level, from >> level})
		from += 1 << level
	}
	return list
}

// rootFrom computes the root of the first size records from the hashes of the complete subtrees that cover them from
// left to right (RFC 6962, section 2.1).
func rootFrom(list []subtree, hashes []tlog.Hash, size int64) (tlog.Hash, error) {
	if len(list) != len(hashes) {
		return tlog.Hash{}, fmt.Errorf("%d hashes for %d subtrees", len(hashes), len(list))
	}
	at := 0
	var of func(from, to int64) (tlog.Hash, error)
	of = func(from, to int64) (tlog.Hash, error) {
		if at < len(list) && list[at].n<<list[at].level == from && list[at].past() == to {
			at++
			return hashes[at-1], nil
		}
		if to-from < 2 {
			return tlog.Hash{}, fmt.Errorf("record %d is covered by no hash", from)
		}
		k := int64(1)
		for k*2 < to-from {
			k *= 2
		}
		left, err := of(from, from+k)
		if err != nil {
			return left, err
		}
		right, err := of(from+k, to)
		return tlog.NodeHash(left, right), err
	}
	root, err := of(0, size)
	if err == nil && at != len(list) {
		err = fmt.Errorf("%d hashes are left over", len(list)-at)
	}
	return root, err
}

// around returns the subtrees before and after a range in a tree of size records, and all of them with the range's
// own.
func around(from, to, size int64) (before, after, all []subtree) {
	before, after = subtrees(0, from), subtrees(to, size)
	return before, after, slices.Concat(before, subtrees(from, to), after)
}

func digests(hashes []tlog.Hash) []evidence.Digest {
	list := make([]evidence.Digest, len(hashes))
	for i, h := range hashes {
		list[i] = evidence.Digest(h)
	}
	return list
}

func treeHashes(digests []evidence.Digest) []tlog.Hash {
	list := make([]tlog.Hash, len(digests))
	for i, d := range digests {
		list[i] = tlog.Hash(d)
	}
	return list
}

// merge computes the hash of a complete subtree from its leaves.
func merge(hashes []tlog.Hash) tlog.Hash {
	level := slices.Clone(hashes)
	for len(level) > 1 {
		for i := range len(level) / 2 {
			level[i] = tlog.NodeHash(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
	}
	return level[0]
}
