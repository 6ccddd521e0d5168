package evidence

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxRecord is the largest record in bytes that a bundle may hold.
const MaxRecord = 256 << 20

// maxHead bounds what stands before the records of a bundle: a signed note and its time stamps.
const maxHead = 16 << 20

// A BundleReader reads a bundle record by record, and keeps none. It is as strict as ParseBundle: what it reads to the
// end without an error is the one form of its content.
type BundleReader struct {
	Checkpoint           string
	CheckpointTimestamps []Timestamp

	in     *bufio.Reader
	offset int64 // of the next byte
	count  int   // of the records that were given out
	ended  bool
	places *places
}

// A RawRecord is a record of a bundle that was found and not yet looked at.
type RawRecord struct {
	Index  int // place in the bundle, from 0
	doc    []byte
	offset int64
}

// ReadBundle reads what stands before the records.
func ReadBundle(file io.Reader) (*BundleReader, error) {
	b := &BundleReader{in: bufio.NewReaderSize(file, 64<<10), places: newPlaces()}
	head, err := b.head()
	if err != nil {
		return nil, err
	}
	doc := append(head, "]}"...) // the bundle without its records
	var form bundleForm
	if err := decode(doc, &form); err != nil {
		return nil, err
	}
	if form.Format != BundleFormat {
		return nil, &SyntaxError{Pointer: "/format", Reason: fmt.Sprintf("want %q", BundleFormat)}
	}
	b.Checkpoint, b.CheckpointTimestamps = form.Checkpoint, form.CheckpointTimestamps
	empty := &Bundle{Checkpoint: b.Checkpoint, CheckpointTimestamps: b.CheckpointTimestamps}
	return b, sameBytes(empty.marshal, doc)
}

// recordsMember is what stands before the first record.
const recordsMember = `"records":[`

// head reads to where the records begin.
func (b *BundleReader) head() ([]byte, error) {
	var head []byte
	var s scanner
	for len(head) < maxHead {
		c, err := b.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil, b.refuse("", "the document ends before any record")
		}
		if err != nil {
			return nil, err
		}
		b.offset++
		head = append(head, c)
		s.step(c)
		if s.depth == 1 && !s.inString && c == '[' && bytes.HasSuffix(head, []byte(recordsMember)) {
			return head, nil
		}
		if s.depth == 0 {
			var form bundleForm
			if err := decode(head, &form); err != nil {
				return nil, err
			}
			return nil, b.refuse("", "not in the one form that this content has: the records come last, in an array")
		}
	}
	return nil, b.refuse("", fmt.Sprintf("more than %d bytes before the records", maxHead))
}

// scanner follows JSON far enough to know where an object ends. Whether it is JSON shows when it is opened.
type scanner struct {
	depth    int // of objects
	inString bool
	escaped  bool
}

func (s *scanner) step(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.inString:
		s.escaped, s.inString = c == '\\', c != '"'
	case c == '"':
		s.inString = true
	case c == '{':
		s.depth++
	case c == '}':
		s.depth--
	}
}

// Next returns the next record, and io.EOF after the last one, when the file has ended as a bundle does. Its errors are
// those of the file, and, beside those of reading it, *SyntaxError or *RecordError.
func (b *BundleReader) Next() (*RawRecord, error) {
	if b.ended {
		return nil, io.EOF
	}
	c, err := b.in.ReadByte()
	if err == nil && c == ']' {
		return nil, b.end()
	}
	if err == nil && b.count > 0 {
		if c != ',' {
			return nil, b.refuse(b.pointer(), "want a comma or the end of the records")
		}
		b.offset++
		c, err = b.in.ReadByte()
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, b.refuse(b.pointer(), "the document ends too early")
	case err != nil:
		return nil, err
	case c != '{':
		err := b.refuse(b.pointer(), "want a record, which is an object")
		ahead, _ := b.in.Peek(b.in.Size()) // which names the record, perhaps
		return nil, b.inRecord(append([]byte{c}, ahead...), err)
	}
	r := &RawRecord{Index: b.count, offset: b.offset}
	if r.doc, err = b.object(); err != nil {
		return nil, err
	}
	b.count++
	b.offset += int64(len(r.doc))
	return r, nil
}

// end reads what stands after the records.
func (b *BundleReader) end() error {
	b.ended = true
	rest, err := io.ReadAll(io.LimitReader(b.in, 3))
	if err != nil {
		return err
	}
	if string(rest) != "}\n" {
		return b.refuse("", "a bundle file ends with a line feed, after its records and a brace")
	}
	return io.EOF
}

// object reads the object whose brace was read, which is where most bytes of a file are: strings are skipped at once.
func (b *BundleReader) object() ([]byte, error) {
	doc, s := []byte{'{'}, scanner{depth: 1}
	for s.depth > 0 {
		if len(doc) > MaxRecord {
			return nil, b.inRecord(doc, b.refuse(b.pointer(), fmt.Sprintf("longer than %d bytes", MaxRecord)))
		}
		if _, err := b.in.Peek(1); errors.Is(err, io.EOF) {
			b.offset += int64(len(doc))
			return nil, b.inRecord(doc, b.refuse(b.pointer(), "the document ends too early"))
		} else if err != nil {
			return nil, err
		}
		chunk, err := b.in.Peek(b.in.Buffered())
		if err != nil {
			return nil, err
		}
		n := s.skim(chunk)
		doc = append(doc, chunk[:n]...)
		if _, err := b.in.Discard(n); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// skim steps through a chunk until the object has ended, and returns how many bytes it took.
func (s *scanner) skim(chunk []byte) int {
	for i := 0; i < len(chunk); i++ {
		if s.inString && !s.escaped {
			i += plain(chunk[i:])
			if i == len(chunk) {
				return i
			}
		}
		if s.step(chunk[i]); s.depth == 0 {
			return i + 1
		}
	}
	return len(chunk)
}

// plain counts the bytes up to the next quotation mark or backslash.
func plain(chunk []byte) int {
	end := bytes.IndexByte(chunk, '"')
	if end < 0 {
		end = len(chunk)
	}
	if escape := bytes.IndexByte(chunk[:end], '\\'); escape >= 0 {
		return escape
	}
	return end
}

func (b *BundleReader) pointer() string { return fmt.Sprintf("/records/%d", b.count) }

func (b *BundleReader) refuse(pointer, reason string) error {
	return &SyntaxError{Pointer: pointer, Offset: b.offset, Reason: reason}
}

func (b *BundleReader) inRecord(doc []byte, err error) error {
	return &RecordError{Index: b.count, RecordID: recordIDIn(doc), Err: err}
}

// Open reads the record strictly. It needs nothing of its reader, so that many can be opened at once. Its error is a
// *RecordError.
func (r *RawRecord) Open() (*Record, error) {
	record, err := openForm(r.doc)
	if err == nil {
		err = sameBytes(record.marshal, r.doc)
	}
	if err == nil {
		return record, nil
	}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		err = &SyntaxError{Pointer: fmt.Sprintf("/records/%d%s", r.Index, syntax.Pointer), Offset: r.offset + syntax.Offset, Reason: syntax.Reason}
	}
	return nil, &RecordError{Index: r.Index, RecordID: recordIDIn(r.doc), Err: err}
}

// Take holds an opened record against those before it: it is there once, and in log order. It is called with every
// record, in the order of the bundle. Its error is a *RecordError.
func (b *BundleReader) Take(index int, r *Record) error {
	if err := b.places.take(r); err != nil {
		return &RecordError{Index: index, RecordID: r.Payload.RecordID, Err: err}
	}
	return nil
}
