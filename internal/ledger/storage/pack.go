package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

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
// was appended with, compressed together. So one record is read without unpacking another.
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
)

// A Packer packs and unpacks the rows of a store. It is safe for concurrent use.
type Packer struct {
	from Dictionaries

	mu     sync.Mutex // guards the members below; held while a dictionary is read
	known  map[int64]*codec
	newest *codec // nil: not read yet, or another one was added
}

// A codec compresses with one dictionary.
type codec struct {
	n        int64
	words    *words
	template *template
	packer   *zstd.Encoder
	opener   *zstd.Decoder
}

// NewPacker returns a packer that reads dictionaries when it needs them.
func NewPacker(from Dictionaries) *Packer { return &Packer{from: from, known: map[int64]*codec{}} }

// Pack packs rows with the newest dictionary. Callers pack before they wait for their turn to append; a store packs
// what is not. Its errors are those of the store.
func (p *Packer) Pack(ctx context.Context, rows []Row) error {
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
	text, rest := c.words.split(row)
	packed := Packed{Dictionary: c.n, Timestamps: len(row.Timestamps), Blob: c.compress(text, binary.LittleEndian.AppendUint32(rest, checksum(row)))}
	if len(packed.Blob) >= len(text)+len(rest) || c.expand(packed.Blob, &Row{RecordID: row.RecordID}) != nil { // nothing is kept that does not come back as it was
		packed.Blob, packed.Dictionary = Content(row), Plain
	}
	return packed
}

// magic is what every zstd frame begins with. Blobs leave it out.
const magic = "\x28\xb5\x2f\xfd"

// compress makes a blob: a frame of the text, with its length before it, and how the rest differs from the template.
// Letters and random bytes would need more room in one frame.
func (c *codec) compress(text, rest []byte) []byte {
	frame, differs := c.packer.EncodeAll(text, nil), c.template.diff(rest)
	return append(appendBytes(make([]byte, 0, len(frame)+len(differs)), frame[len(magic):]), differs...)
}

// checksum is over the parts of a row that are packed.
func checksum(row *Row) (sum uint32) {
	add := func(parts ...[]byte) {
		for _, part := range parts {
			sum = crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), part)
		}
	}
	add(row.Payload, row.Entry, []byte(row.ExpiredBy))
	add(row.Signatures...)
	for _, t := range row.Timestamps {
		add([]byte(t.Kind), t.Token)
	}
	return sum
}

// expand reads what compress has written.
func (c *codec) expand(blob []byte, row *Row) error {
	p, largest := parser{rest: blob}, freely+maxRatio*len(blob)
	text, err := c.unpack(p.bytes(), largest)
	if err != nil {
		return err
	}
	rest, err := c.template.patch(p.rest, largest)
	if err != nil {
		return err
	}
	if p.bad || len(rest) < crc32.Size {
		return errDamagedContent
	}
	rest, sum := rest[:len(rest)-crc32.Size], binary.LittleEndian.Uint32(rest[len(rest)-crc32.Size:])
	if err := c.words.join(row, text, rest, largest); err != nil {
		return err
	}
	if checksum(row) != sum {
		return errDamagedContent
	}
	return nil
}

// Unpack sets the content of a row from what is packed. If that is damaged or its dictionary is missing, it notes the
// reason in Row.Broken, so that the rows beside it can be read. It returns the store's errors.
func (p *Packer) Unpack(ctx context.Context, row *Row) error {
	late := row.Timestamps
	row.Timestamps = nil
	if row.Packed.Dictionary == Plain {
		row.Broken = parseContent(row.Packed.Blob, row)
	} else {
		c, err := p.codec(ctx, row.Packed.Dictionary)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDamaged) {
			row.Broken = fmt.Errorf("reading dictionary %d, which it is compressed with: %v", row.Packed.Dictionary, err) // the row is there: whoever asks is not to take it for one that is not
			return nil
		}
		if err != nil {
			return err
		}
		row.Broken = c.expand(row.Packed.Blob, row)
	}
	if row.Broken == nil && len(row.Timestamps) != row.Packed.Timestamps {
		row.Broken = fmt.Errorf("it holds %d time stamps, but the row says %d", len(row.Timestamps), row.Packed.Timestamps)
	}
	row.Timestamps = append(row.Timestamps, late...)
	return nil
}

// UnpackAll unpacks rows.
func (p *Packer) UnpackAll(ctx context.Context, rows []Row) error {
	for i := range rows {
		if err := p.Unpack(ctx, &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// unpack returns the content of a frame, which has at most so many bytes. It does not trust what the frame says of that.
func (c *codec) unpack(frame []byte, largest int) ([]byte, error) {
	frame = append([]byte(magic), frame...)
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if !h.HasFCS || h.FrameContentSize > min(maxContent, uint64(largest)) {
		return nil, fmt.Errorf("it is damaged: %d bytes claim to hold %d", len(frame), h.FrameContentSize)
	}
	content, err := c.opener.DecodeAll(frame, make([]byte, 0, h.FrameContentSize))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	return content, nil
}

// latest returns the codec of the newest dictionary that this process knows of.
func (p *Packer) latest(ctx context.Context) (*codec, error) {
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

// Renew makes the packer look for the newest dictionary again.
func (p *Packer) Renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = nil
}

func (p *Packer) codec(ctx context.Context, n int64) (*codec, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read(ctx, n)
}

// read returns the codec of a dictionary, which another process may have added. The caller holds p.mu.
func (p *Packer) read(ctx context.Context, n int64) (*codec, error) {
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

func newCodec(n int64, dictionary []byte) (c *codec, err error) {
	if len(dictionary) > MaxDictionary {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", len(dictionary), MaxDictionary)
	}
	packing := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(reach)}
	opening := []zstd.DOption{zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxContent), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true)}
	if n > 0 {
		packing, opening = append(packing, zstd.WithEncoderDictRaw(0, dictionary)), append(opening, zstd.WithDecoderDictRaw(0, dictionary))
	}
	list, after, _ := bytes.Cut(dictionary, []byte{'\n'})
	p := parser{rest: after}
	c = &codec{n: n, words: newWords(list), template: newTemplate(p.bytes())}
	if c.packer, err = zstd.NewWriter(nil, packing...); err != nil {
		return nil, err
	}
	c.opener, err = zstd.NewReader(nil, opening...)
	return c, err
}

// NewDictionary makes a dictionary: a line of words, the most frequent first, the template, and texts. Any other text can
// be a dictionary too.
func NewDictionary(list string, rows []Row) []byte {
	text := []byte(strings.Join(strings.Fields(list), " "))
	w := newWords(text)
	var texts, rests []byte
	for i := range rows {
		short, rest := w.split(&rows[i])
		texts, rests = append(texts, short...), append(rests, rest...)
	}
	return append(appendBytes(append(text, '\n'), rests), texts...)
}

// Content is a row's content before it is compressed.
func Content(row *Row) []byte {
	text, rest := new(words).split(row)
	return append(appendBytes(nil, text), rest...)
}

// parseContent reads what Content has written.
func parseContent(b []byte, row *Row) error {
	p := parser{rest: b}
	text := p.bytes()
	if p.bad {
		return errDamagedContent
	}
	return new(words).join(row, text, p.rest, maxContent)
}

func appendBytes(b, text []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// Limits of one row. They bound the memory of a reader: each part takes more memory than the byte that it may take in
// the content.
const (
	maxSignatures = 16 // the limit of package evidence
	maxTimestamps = 1024
)

var errDamagedContent = errors.New("it is damaged: its content is not a record's")

// A parser reads until something is wrong.
type parser struct {
	rest []byte
	bad  bool
}

// count reads a number of at most most.
func (p *parser) count(most int) int {
	n, size := binary.Uvarint(p.rest)
	if p.bad = p.bad || size <= 0 || n > uint64(most); p.bad {
		return 0
	}
	p.rest = p.rest[size:]
	return int(n)
}

// bytes reads a length and as many bytes.
func (p *parser) bytes() []byte {
	n := p.count(max(0, len(p.rest)))
	if n > len(p.rest) {
		p.bad, n = true, 0
	}
	text := p.rest[:n:n]
	p.rest = p.rest[n:]
	return text
}
