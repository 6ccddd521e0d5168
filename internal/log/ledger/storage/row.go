package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// A Row is a record as a store keeps it.
type Row struct {
	Index      int64 // place in the log, from 0
	RecordID   string
	Digest     evidence.Digest
	ChainID    string          // "": in no chain
	Case       evidence.Digest // of a submission: what is submitted; zero for everything else
	Counts     evidence.LogCounts
	Actor      evidence.Digest // tag of its actor; zero if Counts.ActorSeq is 0
	Payload    []byte          // canonical
	Signatures [][]byte
	Timestamps []evidence.Timestamp // in order of arrival; the only part that can grow

	Packed Packed // payload, signatures and time stamps as a store keeps them
	Broken error  // why Packed cannot be unpacked; nil if it can

	// An expired record has only these instead of its payload, signatures and time stamps.
	Entry     []byte // what the log hashed
	ExpiredBy string // record id of the act about the deletion
}

// Record makes a record of a row, and checks that the row's keys are the record's. It returns ErrExpired, wrapped, if
// the record has expired, and ErrDamaged, wrapped, if the row is not a record.
func (row *Row) Record() (*evidence.Record, error) {
	if row.Entry != nil {
		return nil, row.expired()
	}
	record, err := row.open()
	if err != nil {
		return nil, fmt.Errorf("%w: row %d (record %s): %w", ErrDamaged, row.Index, row.RecordID, err)
	}
	if err := row.Agrees(record); err != nil {
		return nil, err
	}
	return record, nil
}

func (row *Row) open() (*evidence.Record, error) {
	if row.Broken != nil {
		return nil, row.Broken
	}
	return evidence.OpenParts(row.Payload, row.Signatures, row.Timestamps)
}

// Agrees returns ErrDamaged, wrapped, if the row's keys differ from those in its record.
func (row *Row) Agrees(record *evidence.Record) (err error) {
	switch {
	case record.Digest != row.Digest:
		err = fmt.Errorf("the payload has the digest %v, but the row says %v", record.Digest, row.Digest)
	case record.Payload.RecordID != row.RecordID:
		err = fmt.Errorf("the payload is of record %s", record.Payload.RecordID)
	case record.Payload.ChainID != row.ChainID:
		err = fmt.Errorf("the payload is in chain %q, but the row is in %q", record.Payload.ChainID, row.ChainID)
	case Submitted(&record.Payload) != row.Case:
		err = fmt.Errorf("the payload submits the case %v, but the row says %v", Submitted(&record.Payload), row.Case)
	case row.Counts.ActorSeq > 0 && row.Actor != ActorOf(&record.Payload) || row.Counts.ActorSeq == 0 && !row.Actor.IsZero():
		err = fmt.Errorf("the payload is by %s %q, but the row has another tag", record.Payload.Role(), record.Payload.Actor())
	case !row.Counts.Fit(&record.Payload):
		err = fmt.Errorf("counted as %+v, which does not fit %s", row.Counts, record.Payload.ActionType)
	default:
		return nil
	}
	return fmt.Errorf("%w: row %d (record %s): %w", ErrDamaged, row.Index, row.RecordID, err)
}

// HasTimestamp reports whether a row has this time stamp.
func (row *Row) HasTimestamp(t evidence.Timestamp) bool {
	return slices.ContainsFunc(row.Timestamps, func(has evidence.Timestamp) bool { return has.Kind == t.Kind && bytes.Equal(has.Token, t.Token) })
}

// LogEntry returns what the log hashed for a row. For an expired record, this is all that is left. It returns
// ErrDamaged, wrapped, if the row is not a record.
func (row *Row) LogEntry() ([]byte, error) {
	if row.Entry != nil {
		return row.Entry, nil
	}
	record, err := row.Record()
	if err != nil {
		return nil, err
	}
	return record.LogEntry(row.Counts), nil
}

// expired is the error for a row of which only the hashes are left.
func (row *Row) expired() error {
	return fmt.Errorf("%w: row %d (record %s) was deleted by act %s", ErrExpired, row.Index, row.RecordID, row.ExpiredBy)
}

// RowOf makes the row of a record that has no place and no counts yet.
func RowOf(r *evidence.Record) Row {
	return Row{RecordID: r.Payload.RecordID, Digest: r.Digest, ChainID: r.Payload.ChainID, Actor: ActorOf(&r.Payload),
		Case: Submitted(&r.Payload), Payload: r.Canonical(), Signatures: r.Signatures, Timestamps: r.Timestamps}
}

// ActorOf is the tag of a payload's actor.
func ActorOf(p *evidence.Payload) evidence.Digest { return evidence.ActorTag(p.Role(), p.Actor()) }

// Submitted is the case that a payload submits, or zero.
func Submitted(p *evidence.Payload) evidence.Digest {
	if p.ActionType != evidence.Submission {
		return evidence.Digest{}
	}
	return p.Case
}

// LeafHash is the hash of a record in the tree.
func LeafHash(r *evidence.Record, counts evidence.LogCounts) tlog.Hash {
	return tlog.RecordHash(r.LogEntry(counts))
}

// ExactRows returns n rows from an index on. It returns ErrDamaged, wrapped, if one is missing.
func ExactRows(ctx context.Context, of Records, from, n int64) ([]Row, error) {
	rows, err := of.Rows(ctx, from, n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if i >= int64(len(rows)) || rows[i].Index != from+i {
			return nil, fmt.Errorf("%w: row %d is missing", ErrDamaged, from+i)
		}
	}
	if int64(len(rows)) > n {
		return nil, fmt.Errorf("%w: row %d is there twice", ErrDamaged, rows[n].Index)
	}
	return rows, nil
}

// ReadableRows returns those of the n rows from an index on that the store can read. Others count as missing.
func ReadableRows(ctx context.Context, from Records, index, n int64) ([]Row, error) {
	rows, err := from.Rows(ctx, index, n)
	if err == nil || !Unreadable(err) {
		return rows, err
	}
	rows = nil
	for i := index; i < index+n && n > 1; i++ {
		one, err := ReadableRows(ctx, from, i, 1)
		if err != nil {
			return nil, err
		}
		rows = append(rows, one...)
	}
	return rows, nil
}

// Dictionaries keeps the texts that rows are compressed with. A row names the one that it needs, so none is ever
// changed or removed. They are numbered from 1.
type Dictionaries interface {
	// Dictionary returns the text of dictionary n, or ErrNotFound.
	Dictionary(ctx context.Context, n int64) ([]byte, error)
	// NewestDictionary returns the number of the last one, or 0 if there is none.
	NewestDictionary(ctx context.Context) (int64, error)
	// PutDictionary adds dictionary n, durably. It returns ErrConflict if n is not the next number.
	PutDictionary(ctx context.Context, n int64, text []byte) error
}

// Packed is the content of a row as a store keeps it: the payload, the signatures and the time stamps that the record
// was appended with, compressed together. So one record is read without unpacking another. Signatures and most of a token are
// random, and among letters would make every letter longer: so they are an S2 block after the zstd frame of the payload.
type Packed struct {
	Blob       []byte // nil: it is not packed yet
	Dictionary int64  // what it is compressed with; 0: without a dictionary; Plain: it is not compressed
	Timestamps int    // how many time stamps it holds; later ones are beside it
}

// Plain instead of the number of a dictionary says that a blob is not compressed.
const Plain = -1

const (
	// maxContent is the largest content of a row.
	maxContent = evidence.MaxDocument + 8<<20
	// MaxDictionary is the size of the largest dictionary.
	MaxDictionary = 64 << 10
	// A blob unpacks to at most this many times its size, and freely to so much. So a small hostile database does not
	// fill the memory. What would compress further is stored plain.
	maxRatio, freely = 64, 64 << 10
	// How far back a text is compared with itself. Whoever opens a log makes a buffer of this size.
	reach = 256 << 10
	// Limits of one row. They bound the memory of a reader: each part takes more memory than the bytes that it may take
	// in the content.
	maxSignatures = 16 // the limit of package evidence
	maxTimestamps = 1024
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errDamagedContent = errors.New("it is damaged: its content is not a record's")

// packer packs and unpacks the rows of a store. It is safe for concurrent use.
type packer struct {
	from Dictionaries

	mu     sync.Mutex // guards the members below; held while a dictionary is read
	known  map[int64]*codec
	newest *codec // nil: not read yet, or another one was added
}

type codec struct {
	n        int64
	packing  []zstd.EOption
	encoders sync.Pool // of *encoder: each processor keeps its own, because before each frame one copies what it knows of the dictionary, 256 KiB
	opener   *zstd.Decoder
	rest     *s2.Dict
}

// An encoder packs one row at a time, in memory of its own.
type encoder struct {
	zstd                *zstd.Encoder
	content, blob, back []byte
}

func (c *codec) encoder() (*encoder, error) {
	if e, ok := c.encoders.Get().(*encoder); ok {
		return e, nil
	}
	e, err := zstd.NewWriter(nil, c.packing...)
	return &encoder{zstd: e}, err
}

// pack packs rows with the newest dictionary. Callers pack before they wait for their turn to append; a store packs
// what is not. Its errors are those of the store.
func (p *packer) pack(ctx context.Context, rows []Row) error {
	c, err := p.latest(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].Packed.Blob == nil {
			rows[i].Packed = c.pack(&rows[i])
		}
	}
	return nil
}

func (c *codec) pack(row *Row) Packed {
	text, rest := contentOf(row)
	packed := Packed{Dictionary: Plain, Timestamps: len(row.Timestamps)}
	if e, err := c.encoder(); err == nil {
		defer c.encoders.Put(e)
		e.content = append(append(e.content[:0], text...), rest...)
		e.blob = e.zstd.EncodeAll(text, append(e.blob[:0], make([]byte, head)...))
		frame := len(e.blob) - head
		for i, n := range []uint32{crc32.Checksum(e.content, castagnoli), uint32(len(e.content)), uint32(frame)} { //nolint:gosec // below 2^32
			binary.BigEndian.PutUint32(e.blob[4*i:], n)
		}
		e.blob = slices.Grow(e.blob, s2.MaxEncodedLen(len(rest)))
		e.blob = append(e.blob, c.rest.Encode(e.blob[len(e.blob):cap(e.blob)], rest)...)
		e.back, err = c.unpack(e.blob, e.back)
		if err == nil && bytes.Equal(e.back, e.content) && len(e.blob) < len(e.content) { // nothing is kept that does not come back as it was
			packed.Blob, packed.Dictionary = bytes.Clone(e.blob), c.n
			return packed
		}
	}
	packed.Blob = slices.Concat(text, rest)
	return packed
}

// head is the size of a blob's first part: a checksum of the content, the content's size, and that of the frame. Then come the frame and the block.
const head = 12

// unpack returns the content of a blob. It may use the memory of another one.
func (c *codec) unpack(blob, memory []byte) ([]byte, error) {
	s := cryptobyte.String(blob)
	var sum, size, length uint32
	var frame []byte
	if !s.ReadUint32(&sum) || !s.ReadUint32(&size) || uint64(size) > min(maxContent, uint64(freely+maxRatio*len(blob))) ||
		!s.ReadUint32(&length) || !s.ReadBytes(&frame, int(length)) {
		return nil, fmt.Errorf("it is damaged: %d bytes claim to hold %d", len(blob), size)
	}
	content, err := c.opener.DecodeAll(frame, slices.Grow(memory[:0], int(size))[:0:size])
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if n, err := s2.DecodedLen(s); err != nil || len(content)+n != int(size) {
		return nil, fmt.Errorf("it is damaged: it does not hold the %d bytes that it says", size)
	}
	if _, err := c.rest.Decode(content[len(content):], s); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if content = content[:size]; crc32.Checksum(content, castagnoli) != sum {
		return nil, errors.New("it is damaged: its checksum is another")
	}
	return content, nil
}

// unpack sets the content of a row from what is packed. If that is damaged or its dictionary is missing, it notes the
// reason in Row.Broken, so that the rows beside it can be read. It returns the store's errors.
func (p *packer) unpack(ctx context.Context, row *Row) error {
	late, content := row.Timestamps, row.Packed.Blob
	row.Timestamps = nil
	if row.Packed.Dictionary != Plain {
		c, err := p.codec(ctx, row.Packed.Dictionary)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDamaged) {
			row.Broken = fmt.Errorf("reading dictionary %d, which it is compressed with: %v", row.Packed.Dictionary, err) // not %w: the row itself is there
			return nil
		}
		if err != nil {
			return err
		}
		content, row.Broken = c.unpack(content, nil)
	}
	if row.Broken == nil {
		row.Broken = row.setContent(content)
	}
	if row.Broken == nil && len(row.Timestamps) != row.Packed.Timestamps {
		row.Broken = fmt.Errorf("it holds %d time stamps, but the row says %d", len(row.Timestamps), row.Packed.Timestamps)
	}
	row.Timestamps = append(row.Timestamps, late...)
	return nil
}

func (p *packer) unpackAll(ctx context.Context, rows []Row) error {
	for i := range rows {
		if err := p.unpack(ctx, &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// latest returns the codec of the newest dictionary that this process knows of.
func (p *packer) latest(ctx context.Context) (*codec, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest != nil {
		return p.newest, nil
	}
	n, err := p.from.NewestDictionary(ctx)
	if err == nil {
		p.newest, err = p.read(ctx, n)
	}
	return p.newest, err
}

// renew makes the packer look for the newest dictionary again.
func (p *packer) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = nil
}

func (p *packer) codec(ctx context.Context, n int64) (*codec, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read(ctx, n)
}

// read returns the codec of a dictionary, which another process may have added. The caller holds p.mu.
func (p *packer) read(ctx context.Context, n int64) (*codec, error) {
	if c, there := p.known[n]; there {
		return c, nil
	}
	var text []byte
	if n > 0 {
		var err error
		if text, err = p.from.Dictionary(ctx, n); err != nil {
			return nil, err
		}
	} else if n < 0 {
		return nil, ErrNotFound
	}
	c, err := newCodec(n, text)
	if err != nil {
		return nil, fmt.Errorf("%w: dictionary %d: %w", ErrDamaged, n, err)
	}
	p.known[n] = c
	return c, nil
}

// newCodec makes a codec with a dictionary, which can be any text.
func newCodec(n int64, dictionary []byte) (c *codec, err error) {
	if len(dictionary) > MaxDictionary {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", len(dictionary), MaxDictionary)
	}
	c = &codec{n: n, packing: []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithSingleSegment(true),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(reach), zstd.WithEncoderCRC(false)},
		rest: s2.MakeDict(append(make([]byte, s2.MinDictSize), dictionary...), nil)}
	opening := []zstd.DOption{zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxContent), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true)}
	if n > 0 {
		c.packing, opening = append(c.packing, zstd.WithEncoderDictRaw(0, dictionary)), append(opening, zstd.WithDecoderDictRaw(0, dictionary))
	}
	first, err := c.encoder()
	if err != nil {
		return nil, err
	}
	c.encoders.Put(first)
	c.opener, err = zstd.NewReader(nil, opening...)
	return c, err
}

// NewDictionary makes a dictionary of frequent words and of records.
func NewDictionary(words string, rows []Row) []byte {
	text := []byte(words)
	for i := range rows {
		text = append(text, Content(&rows[i])...)
	}
	return text[:min(len(text), MaxDictionary)]
}

// Content is a row's content before it is compressed.
func Content(row *Row) []byte { return slices.Concat(contentOf(row)) }

// contentOf returns a row's content in DER. The text is the payload; the rest are the signatures, and of each time stamp its
// kind and its token. The text of an expired row is the act that removed the content, and the entry.
func contentOf(row *Row) (text, rest []byte) {
	b := *cryptobyte.NewBuilder(make([]byte, 0, len(row.Payload)+16))
	name := func(name string) {
		b.AddASN1(asn1.UTF8String, func(b *cryptobyte.Builder) { b.AddBytes([]byte(name)) })
	}
	if row.Entry != nil {
		name(row.ExpiredBy)
		b.AddASN1OctetString(row.Entry)
		return b.BytesOrPanic(), nil // lengths of 32 bits are enough for what is in memory of a record
	}
	b.AddASN1OctetString(row.Payload)
	text, b = b.BytesOrPanic(), cryptobyte.Builder{}
	for _, s := range row.Signatures {
		b.AddASN1OctetString(s)
	}
	for _, t := range row.Timestamps {
		name(string(t.Kind))
		b.AddASN1OctetString(t.Token)
	}
	return text, b.BytesOrPanic()
}

// setContent reads what Content has written, and sets nothing of anything else.
func (row *Row) setContent(content []byte) error {
	s := cryptobyte.String(content)
	bytes := func(into *[]byte) bool { return s.ReadASN1Bytes(into, asn1.OCTET_STRING) }
	var text cryptobyte.String
	var r Row
	expired := false
	ok := s.ReadOptionalASN1(&text, &expired, asn1.UTF8String)
	if expired {
		r.ExpiredBy = string(text)
		ok = ok && bytes(&r.Entry) && len(r.Entry) > 0
	} else {
		ok = ok && bytes(&r.Payload)
		for ok && s.PeekASN1Tag(asn1.OCTET_STRING) && len(r.Signatures) < maxSignatures {
			var signature []byte
			ok = bytes(&signature)
			r.Signatures = append(r.Signatures, signature)
		}
		for ok && !s.Empty() && len(r.Timestamps) < maxTimestamps {
			var token []byte
			ok = s.ReadASN1(&text, asn1.UTF8String) && bytes(&token)
			r.Timestamps = append(r.Timestamps, evidence.Timestamp{Kind: evidence.TimestampKind(text), Token: token})
		}
	}
	if !ok || !s.Empty() {
		return errDamagedContent
	}
	row.Payload, row.Signatures, row.Timestamps, row.Entry, row.ExpiredBy = r.Payload, r.Signatures, r.Timestamps, r.Entry, r.ExpiredBy
	return nil
}
