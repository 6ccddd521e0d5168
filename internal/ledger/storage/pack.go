package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/evidence"
)

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
// random, and among letters would make every letter longer: so they are a zstd frame after that of the payload.
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

var errDamagedContent = errors.New("it is damaged: its content is not a record's")

// packer packs and unpacks the rows of a store. It is safe for concurrent use.
type packer struct {
	from Dictionaries

	mu     sync.Mutex // guards the members below; held while a dictionary is read
	known  map[int64]*codec
	newest *codec // nil: not read yet, or another one was added
}

// A codec compresses with one dictionary.
type codec struct {
	n      int64
	packer *zstd.Encoder
	opener *zstd.Decoder
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
	content := slices.Concat(text, rest)
	blob := c.packer.EncodeAll(rest, c.packer.EncodeAll(text, binary.AppendUvarint(nil, uint64(len(content)))))
	back, err := c.unpack(blob)
	if err != nil || !bytes.Equal(back, content) || len(blob) >= len(content) { // nothing is kept that does not come back as it was
		return Packed{Blob: content, Dictionary: Plain, Timestamps: len(row.Timestamps)}
	}
	return Packed{Blob: blob, Dictionary: c.n, Timestamps: len(row.Timestamps)}
}

// unpack returns the content of a blob: its size, and the frames.
func (c *codec) unpack(blob []byte) ([]byte, error) {
	size, n := binary.Uvarint(blob)
	if n <= 0 || size > min(maxContent, uint64(freely+maxRatio*len(blob))) {
		return nil, fmt.Errorf("it is damaged: %d bytes claim to hold %d", len(blob), size)
	}
	content, err := c.opener.DecodeAll(blob[n:], make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if uint64(len(content)) != size {
		return nil, fmt.Errorf("it is damaged: it holds %d bytes and says %d", len(content), size)
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
			row.Broken = fmt.Errorf("reading dictionary %d, which it is compressed with: %v", row.Packed.Dictionary, err) // the row is there: whoever asks is not to take it for one that is not
			return nil
		}
		if err != nil {
			return err
		}
		content, row.Broken = c.unpack(content)
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

// newCodec makes a codec with a dictionary, which can be any text. Its frames have checksums of their content.
func newCodec(n int64, dictionary []byte) (c *codec, err error) {
	if len(dictionary) > MaxDictionary {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", len(dictionary), MaxDictionary)
	}
	packing := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(reach)}
	opening := []zstd.DOption{zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxContent), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true)}
	if n > 0 {
		packing, opening = append(packing, zstd.WithEncoderDictRaw(0, dictionary)), append(opening, zstd.WithDecoderDictRaw(0, dictionary))
	}
	c = &codec{n: n}
	if c.packer, err = zstd.NewWriter(nil, packing...); err != nil {
		return nil, err
	}
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
	var b cryptobyte.Builder
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
