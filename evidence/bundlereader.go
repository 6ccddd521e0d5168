package evidence

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxRecord is the largest record in bytes that a bundle may hold. The largest that this program seals has a payload of 32 MiB, as much
// that is disclosed, and 128 time stamps that count, which are 11 MiB.
const MaxRecord = 128 << 20

// maxHead bounds what stands before the records of a bundle: a signed note and its time stamps.
const maxHead = 16 << 20

// A BundleReader reads a bundle record by record, and keeps none. It reads the one form of a bundle, and, as Read does for a record, every other
// spelling of the same JSON.
type BundleReader struct {
	Checkpoint           string
	CheckpointTimestamps []Timestamp

	in     *bufio.Reader
	offset int64  // of the next byte
	head   []byte // what stands before the first record
	tail   []byte // what stands behind the last one, where it was read ahead
	count  int    // of the records that were given out
	ended  bool
	mended bool
	places *places
}

// A RawRecord is a record of a bundle that was found and not yet looked at.
type RawRecord struct {
	Index  int // place in the bundle, from 0
	doc    []byte
	offset int64
	mended bool
}

// ErrBehind says that the checkpoint of a bundle stands behind the records that are held against it, in a file that can be read only once.
var ErrBehind = errors.New("the checkpoint stands behind the records, and this can be read only once: read it from a file, or put the checkpoint first")

// ReadBundle reads what stands before the records. Members may stand in any order. What is needed to verify the records may stand behind
// them: a file that is an io.Seeker is looked through for that first.
func ReadBundle(file io.Reader) (*BundleReader, error) {
	tail, err := lookAhead(file)
	if err != nil {
		return nil, err
	}
	b, err := beginBundle(file)
	if err != nil {
		return nil, err
	}
	form, err := b.form(tail)
	if b.tail = tail; err != nil && tail != nil { // where a record is damaged, what seems to stand behind it may be anything
		b.tail = nil
		form, err = b.form(nil)
	}
	if err != nil {
		return nil, err
	}
	b.Checkpoint, b.CheckpointTimestamps = form.Checkpoint, form.CheckpointTimestamps
	return b, nil
}

// lookAhead returns what stands behind the records, and goes back to where it began; nil if the file cannot, or need not, or does not end as a
// bundle.
func lookAhead(file io.Reader) ([]byte, error) {
	seeker, seeks := file.(io.Seeker)
	if !seeks {
		return nil, nil
	}
	begin, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, nil // such as a pipe
	}
	b, err := beginBundle(file)
	if err == nil && !(b.named("checkpoint") && b.named("checkpoint_timestamps")) {
		err = b.skip()
	}
	var syntax *SyntaxError
	if err != nil && !errors.As(err, &syntax) { // what is wrong with the file is said when it is read
		return nil, err
	}
	_, err = seeker.Seek(begin, io.SeekStart)
	return b.tail, err
}

// beginBundle reads to where the records begin.
func beginBundle(file io.Reader) (*BundleReader, error) {
	b := &BundleReader{in: bufio.NewReaderSize(file, 64<<10), places: newPlaces()}
	if mark, err := b.in.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		b.discard(len(mark))
		b.mended = true
	}
	if err := b.space(); err != nil {
		return b, err
	}
	return b, b.readHead()
}

// Mended reports, when the file has ended, whether it was not in its one form.
func (b *BundleReader) Mended() bool { return b.mended }

// form reads what stands around the records. Without what stands behind them, that is taken to be nothing.
func (b *BundleReader) form(tail []byte) (*bundleForm, error) {
	if tail == nil {
		tail = []byte("}")
		if !b.named("format") { // which then stands behind them
			tail = []byte(`,"format":"` + BundleFormat + `"}`)
		}
	}
	doc := slices.Concat(b.head, []byte("]"), tail) // the bundle without its records
	form, mended, err := mend(doc, openBundleForm)
	b.mended = b.mended || mended
	return form, err
}

func openBundleForm(doc []byte) (*bundleForm, error) {
	form := new(bundleForm)
	if err := decode(doc, form); err != nil {
		return nil, err
	}
	if form.Format != BundleFormat {
		return nil, &SyntaxError{Pointer: "/format", Reason: fmt.Sprintf("want %q", BundleFormat)}
	}
	empty := &Bundle{Checkpoint: form.Checkpoint, CheckpointTimestamps: form.CheckpointTimestamps}
	return form, sameBytes(empty.marshal, doc)
}

// named reports whether a member stands before the records.
func (b *BundleReader) named(name string) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(b.head))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return false
		}
		if _, length := dec.StackIndex(1); dec.StackDepth() == 1 && length%2 == 1 && token.Kind() == '"' && token.String() == name {
			return true
		}
	}
}

// recordsMember is the member whose value is read record by record.
const recordsMember = "records"

// readHead reads to where the records begin.
func (b *BundleReader) readHead() error {
	var s scanner
	name := 0 // where the last string began
	for len(b.head) < maxHead {
		c, err := b.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return b.refuse("", "the document ends before any record")
		}
		if err != nil {
			return err
		}
		b.offset++
		b.head = append(b.head, c)
		if c == '"' && !s.inString {
			name = len(b.head) - 1
		}
		s.step(c)
		if s.depth == 1 && !s.inString && c == '[' && isRecords(b.head[name:len(b.head)-1]) {
			return nil
		}
		if s.depth == 0 {
			var form bundleForm
			if err := decode(b.head, &form); err != nil {
				return err
			}
			return b.refuse("", "it has no records in an array")
		}
	}
	return b.refuse("", fmt.Sprintf("more than %d bytes before the records", maxHead))
}

// isRecords reports whether a text is the name of the records' member and a colon.
func isRecords(text []byte) bool {
	text, found := bytes.CutSuffix(trimSpace(text), []byte(":"))
	if !found {
		return false
	}
	name, err := jsontext.AppendUnquote(nil, trimSpace(text))
	return err == nil && string(name) == recordsMember
}

const whiteSpace = " \t\r\n"

func trimSpace(text []byte) []byte { return bytes.Trim(text, whiteSpace) }

// space passes over white space, of which the one form has none.
func (b *BundleReader) space() error {
	for {
		next, err := b.in.Peek(1)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.IndexByte(whiteSpace, next[0]) < 0 {
			return nil
		}
		b.discard(1)
		b.mended = true
	}
}

// discard drops bytes that were peeked at.
func (b *BundleReader) discard(n int) {
	n, _ = b.in.Discard(n)
	b.offset += int64(n)
}

// skip reads the tail and passes over the records before it.
func (b *BundleReader) skip() error {
	for {
		_, err := b.next(false)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
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
// those of the file, ErrBehind, and, beside those of reading it, *SyntaxError or *RecordError.
func (b *BundleReader) Next() (*RawRecord, error) { return b.next(true) }

// next reads a record, and keeps its bytes if it is to.
func (b *BundleReader) next(keep bool) (*RawRecord, error) {
	if b.ended {
		return nil, io.EOF
	}
	c, err := b.token()
	if err == nil && c == ']' {
		return nil, b.end(keep)
	}
	if err == nil && b.count > 0 {
		if c != ',' {
			return nil, b.refuse(b.pointer(), "want a comma or the end of the records")
		}
		b.offset++
		c, err = b.token()
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
	length, err := b.object(&r.doc, keep)
	if err != nil {
		return nil, err
	}
	b.count++
	b.offset += int64(length)
	return r, nil
}

// token reads the next byte that is no white space. The caller counts it.
func (b *BundleReader) token() (byte, error) {
	if err := b.space(); err != nil {
		return 0, err
	}
	return b.in.ReadByte()
}

// end reads what stands after the records.
func (b *BundleReader) end(keep bool) error {
	b.ended = true
	b.offset++ // the bracket
	tail, err := b.readTail()
	if err != nil {
		return err
	}
	if !keep {
		b.tail = tail
		return io.EOF
	}
	if err := b.fits(tail); err != nil {
		return err
	}
	rest, err := b.in.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(rest) == "\n" { // as it is to be
		b.discard(1)
	} else {
		b.mended = true
	}
	if err := b.space(); err != nil {
		return err
	}
	if _, err := b.in.Peek(1); !errors.Is(err, io.EOF) {
		if err == nil {
			err = b.refuse("", "text after the end of the JSON value")
		}
		return err
	}
	return io.EOF
}

// readTail reads to the brace that ends the bundle.
func (b *BundleReader) readTail() ([]byte, error) {
	var tail []byte
	s := scanner{depth: 1}
	for s.depth > 0 {
		c, err := b.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil, b.refuse("", "the document ends too early")
		case err != nil:
			return nil, err
		case len(tail) == maxHead:
			return nil, b.refuse("", fmt.Sprintf("more than %d bytes behind the records", maxHead))
		}
		b.offset++
		tail = append(tail, c)
		s.step(c)
	}
	return tail, nil
}

// fits holds what stands behind the records against what was taken to stand there.
func (b *BundleReader) fits(tail []byte) error {
	if b.tail != nil {
		if !bytes.Equal(b.tail, tail) {
			return errors.New("the file was changed while it was read")
		}
		return nil
	}
	form, err := b.form(tail)
	if err != nil {
		return err
	}
	b.tail = tail
	if form.Checkpoint != b.Checkpoint || len(form.CheckpointTimestamps) != len(b.CheckpointTimestamps) {
		return ErrBehind
	}
	return nil
}

// object reads the object whose brace was read, which is where most bytes of a file are: strings are skipped at once. It returns how long the
// object is.
func (b *BundleReader) object(doc *[]byte, keep bool) (int, error) {
	s, length := scanner{depth: 1}, 1
	*doc = append(*doc, '{')
	for s.depth > 0 {
		if length > MaxRecord {
			return 0, b.inRecord(*doc, b.refuse(b.pointer(), fmt.Sprintf("the record is longer than %d bytes, which is more than any record needs", MaxRecord)))
		}
		if _, err := b.in.Peek(1); errors.Is(err, io.EOF) {
			b.offset += int64(length)
			return 0, b.inRecord(*doc, b.refuse(b.pointer(), "the document ends too early"))
		} else if err != nil {
			return 0, err
		}
		chunk, err := b.in.Peek(b.in.Buffered())
		if err != nil {
			return 0, err
		}
		n := s.skim(chunk)
		if length += n; keep {
			*doc = append(*doc, chunk[:n]...)
		}
		if _, err := b.in.Discard(n); err != nil {
			return 0, err
		}
	}
	return length, nil
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

// Size is how many bytes the record has in the file.
func (r *RawRecord) Size() int { return len(r.doc) }

// Mended reports whether the record was opened and not in its one form in the file.
func (r *RawRecord) Mended() bool { return r.mended }

// Open opens the record. It needs nothing of its reader, so that many can be opened at once. Its error is a
// *RecordError.
func (r *RawRecord) Open() (*Record, error) {
	record, mended, err := mend(r.doc, openRecord)
	if r.mended = mended; err == nil {
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
