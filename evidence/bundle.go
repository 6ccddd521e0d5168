package evidence

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/jsonform"
)

// BundleFormat is the version of the bundle format that this package writes and reads.
const BundleFormat = "jurat/bundle/v1"

// A Bundle is several records of one log, in log order, under one checkpoint: a chain, or the case file of a trial.
type Bundle struct {
	Records    []*Record
	Checkpoint string // C2SP signed note that all log proofs refer to; "" if the records have none

	Anchors []Anchor // stamped checkpoints of the same log
}

// bundleForm is a bundle without its records, as it is written, with its members in canonical order.
type bundleForm struct {
	Anchors    []Anchor         `json:"anchors,omitempty"`
	Checkpoint string           `json:"checkpoint,omitzero"`
	Format     string           `json:"format"`
	Records    []jsontext.Value `json:"records"`
}

// frame returns what is around the records.
func (b *Bundle) frame() ([]byte, error) {
	if err := CheckAnchors(b.Checkpoint, b.Anchors); err != nil {
		return nil, err
	}
	return jsonform.Encode(bundleForm{Anchors: b.Anchors, Checkpoint: b.Checkpoint, Format: BundleFormat, Records: []jsontext.Value{}})
}

// RecordError says which record of a bundle cannot be opened.
type RecordError struct {
	Index    int    // place in the bundle, from 0
	RecordID string // as far as it can be read; "" if it cannot
	Err      error
}

func (e *RecordError) Error() string {
	name := cmp.Or(e.RecordID, "unreadable id")
	return fmt.Sprintf("record %d of the bundle (%s): %v", e.Index, name, e.Err)
}

// Unwrap returns why the record cannot be opened.
func (e *RecordError) Unwrap() error { return e.Err }

// Marshal returns the bundle as a file: canonical JSON and a line feed. Each content has exactly one such file. For a
// wrong record its error is a *RecordError.
func (b *Bundle) Marshal() ([]byte, error) {
	file := new(bytes.Buffer)
	w, err := newBundleWriter(file, b, newPlaces().take)
	if err != nil {
		return nil, err
	}
	for _, r := range b.Records {
		if err := w.Add(r); err != nil {
			return nil, err
		}
	}
	return append(file.Bytes(), endOfBundle...), nil
}

// checkSize refuses a record that is too large for BundleReader. It measures only records that may be too large.
func (f *recordForm) checkSize() error {
	rough := len(f.Payload)
	for _, d := range f.Disclosures {
		rough += len(d.Value)
	}
	rough += min(len(f.Properties), 1) * 2 * MaxPropertyTotal
	rough += MaxToken * len(f.Timestamps)
	rough += maxCertificate * len(f.Certificates)
	if rough < MaxRecord/4 {
		return nil
	}
	doc, err := jsonform.Encode(f)
	if err == nil && len(doc) > MaxRecord {
		err = fmt.Errorf("the record is longer than %d bytes", MaxRecord)
	}
	return err
}

// places checks the order of a bundle's records while they are read.
type places struct {
	last int64 // log index of the last record that has one
	ids  map[string]bool
}

func newPlaces() *places { return &places{last: -1, ids: map[string]bool{}} }

// take checks that the next record is new, is later in the log than the records before it, and is under the bundle's
// checkpoint.
func (p *places) take(r *Record) error {
	if p.ids[r.Payload.RecordID] {
		return errors.New("the bundle has this record twice")
	}
	p.ids[r.Payload.RecordID] = true
	if r.Log == nil {
		return nil
	}
	return r.Log.follow(&p.last)
}

// follow checks that a record in a bundle comes later in the log than the last one, and is under the bundle's checkpoint.
func (l *LogProof) follow(last *int64) error {
	if l.Checkpoint != "" { // and no anchors without one
		return errors.New("log: the record has its own checkpoint, inside a bundle that has one for all")
	}
	if l.Index <= *last {
		return fmt.Errorf("log: index %d after %d: the records are not in log order", l.Index, *last)
	}
	*last = l.Index
	return nil
}

// ParseBundle reads a bundle file. It is strict: what it parses marshals back to the same bytes. ReadWholeBundle also
// takes other spellings. Its errors are *SyntaxError and *RecordError.
func ParseBundle(file []byte) (*Bundle, error) {
	b, mended, err := ReadWholeBundle(file)
	if err == nil && mended {
		err = jsonform.SameBytes(b.Marshal, file)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// ReadWholeBundle reads a bundle file as BundleReader does, and keeps all of it. mended reports that it was not in
// canonical form. Its errors are those of the BundleReader.
func ReadWholeBundle(file []byte) (b *Bundle, mended bool, err error) {
	reader, err := ReadBundle(bytes.NewReader(file))
	if err != nil {
		return nil, false, err
	}
	b = &Bundle{Checkpoint: reader.Checkpoint, Anchors: reader.Anchors}
	for {
		raw, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return b, mended || reader.Mended(), nil
		}
		if err != nil {
			return nil, false, err
		}
		r, err := raw.Open()
		if err == nil {
			err = reader.Take(raw.Index, r)
		}
		if err != nil {
			return nil, false, err
		}
		mended = mended || raw.Mended()
		b.Records = append(b.Records, r)
	}
}

// IsBundle reports whether a file is a bundle rather than a record, by its beginning. If the beginning is damaged, it
// looks for the name of the format in the whole file.
func IsBundle(file []byte) bool {
	if BeginsAsRecord(file) {
		return false // a record can mention bundles
	}
	return bytes.Contains(file, []byte(BundleFormat))
}

// A BundleWriter writes a bundle file record by record: the same bytes as Bundle.Marshal. It holds at most one record
// at a time.
type BundleWriter struct {
	w     io.Writer
	count int
	take  func(*Record) error // refuses a record that may not come next
}

// endOfBundle is the part after the records.
const endOfBundle = "]}\n"

// NewBundleWriter writes the part before the records. Each must have a place in the log, after those before it. So no record comes twice. Its errors are
// those of w.
func NewBundleWriter(w io.Writer, checkpoint string, anchors []Anchor) (*BundleWriter, error) {
	last := int64(-1)
	return newBundleWriter(w, &Bundle{Checkpoint: checkpoint, Anchors: anchors}, func(r *Record) error {
		if r.Log == nil {
			return errors.New("log: it has no place in the log")
		}
		return r.Log.follow(&last)
	})
}

func newBundleWriter(w io.Writer, b *Bundle, take func(*Record) error) (*BundleWriter, error) {
	frame, err := b.frame()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(bytes.TrimSuffix(frame, []byte("]}")))
	return &BundleWriter{w: w, take: take}, err
}

// Add writes the next record. It returns a *RecordError if the record may not come there.
func (b *BundleWriter) Add(r *Record) error {
	form, err := r.form()
	if err == nil {
		err = errors.Join(form.checkSize(), b.take(r))
	}
	if err != nil {
		return &RecordError{Index: b.count, RecordID: r.Payload.RecordID, Err: err}
	}
	doc, err := jsonform.Encode(form)
	if err != nil {
		return err
	}
	if b.count++; b.count > 1 {
		doc = append([]byte{','}, doc...)
	}
	_, err = b.w.Write(doc)
	return err
}

// Close writes the part after the records. It does not close the writer below. Its errors are those of w.
func (b *BundleWriter) Close() error {
	_, err := io.WriteString(b.w, endOfBundle)
	return err
}

// MaxRecord is the largest record in bytes that a bundle may hold. The largest record that jurat seals has a payload
// of 32 MiB, as much disclosed text, and 128 time stamps that count (11 MiB).
const MaxRecord = 128 << 20

// maxHead bounds the part of a bundle before its records: a signed note and its time stamps.
const maxHead = 16 << 20

// A BundleReader reads a bundle record by record, and keeps none. It reads the canonical form of a bundle and, like
// Read for a record, every other spelling of the same JSON.
type BundleReader struct {
	Checkpoint string
	Anchors    []Anchor

	in     *bufio.Reader
	offset int64  // of the next byte
	head   []byte // the part before the first record
	tail   []byte // the part after the last record, if it was read ahead
	count  int    // of records returned
	ended  bool
	mended bool
	places *places
}

// A RawRecord is a record of a bundle whose end was found, and that was not yet opened.
type RawRecord struct {
	Index  int // place in the bundle, from 0
	doc    []byte
	offset int64
	mended bool
}

// ErrBehind says that the checkpoint of a bundle comes after its records, in a file that can be read only once.
var ErrBehind = errors.New("the checkpoint comes after the records, and this input can be read only once: read it from a file, or put the checkpoint first")

// ReadBundle reads the part before the records. Members may be in any order. What is needed to verify the records may
// come after them: ReadBundle searches a file that is an io.Seeker for it first. Its errors are those of the file and
// *SyntaxError.
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
	if b.tail = tail; err != nil && tail != nil { // after a damaged record, the tail may be anything
		b.tail = nil
		form, err = b.form(nil)
	}
	if err != nil {
		return nil, err
	}
	b.Checkpoint, b.Anchors = form.Checkpoint, form.Anchors
	return b, nil
}

// lookAhead returns the part after the records, and seeks back to where it began. It returns nil if the file cannot
// seek, has no need, or does not end as a bundle.
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
	if err == nil && !(b.named("checkpoint") && b.named("anchors")) {
		err = b.skip()
	}
	var syntax *SyntaxError
	if err != nil && !errors.As(err, &syntax) { // reading the file reports its errors later
		return nil, err
	}
	_, err = seeker.Seek(begin, io.SeekStart)
	return b.tail, err
}

// beginBundle reads up to the first record.
func beginBundle(file io.Reader) (*BundleReader, error) {
	b := &BundleReader{in: bufio.NewReaderSize(file, 64<<10), places: newPlaces()}
	if mark, err := b.in.Peek(len(jsonform.ByteOrderMark)); err == nil && string(mark) == jsonform.ByteOrderMark {
		b.discard(len(mark))
		b.mended = true
	}
	if err := b.space(); err != nil {
		return b, err
	}
	return b, b.readHead()
}

// Mended reports whether the file was not in canonical form. It is known at the end of the file.
func (b *BundleReader) Mended() bool { return b.mended }

// form parses the parts around the records. A missing tail counts as empty.
func (b *BundleReader) form(tail []byte) (*bundleForm, error) {
	if tail == nil {
		tail = []byte("}")
		if !b.named("format") { // then it comes after them
			tail = []byte(`,"format":"` + BundleFormat + `"}`)
		}
	}
	doc := slices.Concat(b.head, []byte("]"), tail) // the bundle without its records
	form, mended, err := jsonform.Mend(ofFile, doc, openBundleForm)
	b.mended = b.mended || mended
	return form, err
}

func openBundleForm(doc []byte) (*bundleForm, error) {
	form := new(bundleForm)
	if err := jsonform.Decode(doc, form); err != nil {
		return nil, err
	}
	if form.Format != BundleFormat {
		return nil, &SyntaxError{Pointer: "/format", Reason: fmt.Sprintf("want %q", BundleFormat)}
	}
	empty := &Bundle{Checkpoint: form.Checkpoint, Anchors: form.Anchors}
	return form, jsonform.SameBytes(empty.frame, doc)
}

// named reports whether a member comes before the records.
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

// readHead reads up to the first record.
func (b *BundleReader) readHead() error {
	var s jsonform.Scanner
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
		if c == '"' && !s.InString {
			name = len(b.head) - 1
		}
		s.Step(c)
		if s.Depth == 1 && !s.InString && c == '[' && isRecords(b.head[name:len(b.head)-1]) {
			return nil
		}
		if s.Depth == 0 {
			var form bundleForm
			if err := jsonform.Decode(b.head, &form); err != nil {
				return err
			}
			return b.refuse("", "it has no array of records")
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

// space skips white space. The canonical form has none.
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

// skip reads past the records to the tail, and reads the tail.
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

// Next returns the next record. It returns io.EOF after the last one, if the file ended as a bundle does. Its other
// errors are those of the file, ErrBehind, *SyntaxError and *RecordError.
func (b *BundleReader) Next() (*RawRecord, error) { return b.next(true) }

// next reads a record, and keeps its bytes if keep is set.
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
		ahead, _ := b.in.Peek(b.in.Size()) // it may contain the record's id
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

// token reads the next byte after white space. The caller counts it.
func (b *BundleReader) token() (byte, error) {
	if err := b.space(); err != nil {
		return 0, err
	}
	return b.in.ReadByte()
}

// end reads the part after the records.
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
	if string(rest) == "\n" { // the canonical end
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

// readTail reads up to the brace that ends the bundle.
func (b *BundleReader) readTail() ([]byte, error) {
	var tail []byte
	s := jsonform.Scanner{Depth: 1}
	for s.Depth > 0 {
		c, err := b.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil, b.refuse("", "the document ends too early")
		case err != nil:
			return nil, err
		case len(tail) == maxHead:
			return nil, b.refuse("", fmt.Sprintf("more than %d bytes after the records", maxHead))
		}
		b.offset++
		tail = append(tail, c)
		s.Step(c)
	}
	return tail, nil
}

// fits compares the part after the records with the part that lookAhead read.
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
	if form.Checkpoint != b.Checkpoint || len(form.Anchors) != len(b.Anchors) {
		return ErrBehind
	}
	return nil
}

// object reads the object whose opening brace was read, and returns its length. It skips strings at once, because
// most bytes of a file are in strings.
func (b *BundleReader) object(doc *[]byte, keep bool) (int, error) {
	s, length := jsonform.Scanner{Depth: 1}, 1
	*doc = append(*doc, '{')
	for s.Depth > 0 {
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
		n := s.Skim(chunk)
		if length += n; keep {
			*doc = append(*doc, chunk[:n]...)
		}
		if _, err := b.in.Discard(n); err != nil {
			return 0, err
		}
	}
	return length, nil
}

func (b *BundleReader) pointer() string { return fmt.Sprintf("/records/%d", b.count) }

func (b *BundleReader) refuse(pointer, reason string) error {
	return &SyntaxError{Pointer: pointer, Offset: b.offset, Reason: reason}
}

func (b *BundleReader) inRecord(doc []byte, err error) error {
	return &RecordError{Index: b.count, RecordID: recordIDIn(doc), Err: err}
}

// Size returns the size of the record in the file, in bytes.
func (r *RawRecord) Size() int { return len(r.doc) }

// Mended reports whether the opened record was not in canonical form in the file.
func (r *RawRecord) Mended() bool { return r.mended }

// Open opens the record. It does not use the BundleReader, so many records can be opened at once. Its error is a
// *RecordError.
func (r *RawRecord) Open() (*Record, error) {
	record, mended, err := jsonform.Mend(ofFile, r.doc, openRecord)
	if r.mended = mended; err == nil {
		return record, nil
	}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		err = &SyntaxError{Pointer: fmt.Sprintf("/records/%d%s", r.Index, syntax.Pointer), Offset: r.offset + syntax.Offset, Reason: syntax.Reason}
	}
	return nil, &RecordError{Index: r.Index, RecordID: recordIDIn(r.doc), Err: err}
}

// Take checks an opened record against those before it: it is new, and in log order. The caller must call it with
// every record, in the order of the bundle. Its error is a *RecordError.
func (b *BundleReader) Take(index int, r *Record) error {
	if err := b.places.take(r); err != nil {
		return &RecordError{Index: index, RecordID: r.Payload.RecordID, Err: err}
	}
	return nil
}
