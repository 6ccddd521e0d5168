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

	"jurat/internal/jsonform"
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
	name := e.RecordID
	name = cmp.Or(name, "unreadable id")
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

	in     *source
	dec    *jsontext.Decoder
	start  int64    // where in the file dec begins
	last   int64    // for dec, where the last record ended, or the head
	head   []byte   // the part before the first record
	names  []string // of the members in it
	tail   []byte   // the part after the last record, if it was read ahead
	count  int      // of records returned
	ended  bool
	mended bool
	places *places
}

// A source is the file. The decoder holds a whole value in memory, so the source fails after a number of bytes, unless it is bounded anew.
type source struct {
	*bufio.Reader
	left  int
	what  string // is wrong if there is more
	keeps bool
	kept  []byte // what was read since keep
}

var errBound = errors.New("longer than what is read")

func (s *source) bound(most int, what string) { s.left, s.what = most, what }

// keep has all kept that the decoder reads from here on. before is what it has read ahead.
func (s *source) keep(before []byte, where string) {
	s.bound(maxHead-len(before), fmt.Sprintf("more than %d bytes %s the records", maxHead, where))
	s.kept, s.keeps = bytes.Clone(before), true
}

func (s *source) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, errBound
	}
	n, err := s.Reader.Read(p[:min(len(p), s.left)])
	if s.left -= n; s.keeps {
		s.kept = append(s.kept, p[:n]...)
	}
	return n, err
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
func lookAhead(file io.Reader) (tail []byte, err error) {
	seeker, seeks := file.(io.Seeker)
	if !seeks {
		return nil, nil
	}
	begin, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, nil // such as a pipe
	}
	b, err := beginBundle(file)
	if err == nil && !(slices.Contains(b.names, "checkpoint") && slices.Contains(b.names, "anchors")) {
		for doc := jsontext.Value("{}"); err == nil && doc != nil; {
			doc, err = b.record()
		}
		if err == nil {
			tail, err = b.readTail()
		}
	}
	var syntax *SyntaxError
	if err != nil && !errors.As(err, &syntax) { // reading the file reports its errors later
		return nil, err
	}
	_, err = seeker.Seek(begin, io.SeekStart)
	return tail, err
}

func beginBundle(file io.Reader) (*BundleReader, error) {
	in := &source{Reader: bufio.NewReaderSize(file, 64<<10)}
	b := &BundleReader{in: in, places: newPlaces(), dec: jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	if mark, err := in.Peek(len(jsonform.ByteOrderMark)); err == nil && string(mark) == jsonform.ByteOrderMark {
		n, _ := in.Discard(len(mark)) // they are there
		b.start = int64(n)
	}
	n, err := skipSpace(in.Reader)
	if b.start += n; err != nil {
		return b, err
	}
	b.mended = b.start > 0
	in.keep(nil, "before")
	return b, b.readHead()
}

const whiteSpace = " \t\r\n"

// skipSpace skips white space, of which the canonical form has none.
func skipSpace(in *bufio.Reader) (n int64, err error) {
	for ; ; n++ {
		c, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if strings.IndexByte(whiteSpace, c) < 0 {
			return n, in.UnreadByte()
		}
	}
}

// Mended reports whether the file was not in canonical form. It is known at the end of the file.
func (b *BundleReader) Mended() bool { return b.mended }

// form parses the parts around the records. A missing tail counts as empty.
func (b *BundleReader) form(tail []byte) (*bundleForm, error) {
	if tail == nil {
		tail = []byte("}")
		if !slices.Contains(b.names, "format") { // then it comes after them
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

// recordsMember is the member whose value is read record by record.
const recordsMember = "records"

func (b *BundleReader) readHead() error {
	_, err := b.dec.ReadToken()
	for err == nil && b.dec.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = b.dec.ReadToken(); err != nil {
			break
		}
		member := name.String()
		if member == recordsMember && b.dec.PeekKind() == '[' {
			_, err = b.dec.ReadToken()
			b.last = b.dec.InputOffset()
			b.head, b.in.keeps = b.in.kept[:b.last], false
			return err
		}
		b.names = append(b.names, member)
		err = b.dec.SkipValue()
	}
	if err == nil {
		_, err = b.dec.ReadToken()
	}
	if err != nil {
		return b.fail(err)
	}
	if err := jsonform.Decode(b.in.kept[:b.dec.InputOffset()], new(bundleForm)); err != nil {
		return err
	}
	return b.refuse("", "it has no array of records")
}

// Next returns the next record. It returns io.EOF after the last one, if the file ended as a bundle does. Its other
// errors are those of the file, ErrBehind, *SyntaxError and *RecordError.
func (b *BundleReader) Next() (*RawRecord, error) {
	if b.ended {
		return nil, io.EOF
	}
	doc, err := b.record()
	switch {
	case err != nil:
		return nil, err
	case doc == nil:
		b.ended = true
		if err := b.end(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	b.count++
	return &RawRecord{Index: b.count - 1, doc: bytes.Clone(doc), offset: b.start + b.last - int64(len(doc))}, nil
}

// record reads the next record, which is valid up to the next call; nil: they have ended.
func (b *BundleReader) record() (doc jsontext.Value, err error) {
	long := fmt.Sprintf("the record is longer than %d bytes, which is more than any record needs", MaxRecord)
	b.in.bound(MaxRecord+64<<10, long) // and white space before it
	if b.dec.PeekKind() == ']' {
		if _, err = b.dec.ReadToken(); err == nil {
			b.follows(1, 0)
		}
		return nil, err
	}
	doc, err = b.dec.ReadValue()
	switch {
	case err != nil:
		if err = b.fail(err); !errors.As(err, new(*SyntaxError)) {
			return nil, err
		}
		ahead, _ := b.in.Peek(b.in.Buffered())
		doc = bytes.TrimLeft(slices.Concat(b.dec.UnreadBuffer(), ahead), whiteSpace+",")
	case len(doc) > MaxRecord:
		err = b.refuse(b.pointer(), long)
	case doc.Kind() != '{':
		err = b.refuse(b.pointer(), "want a record, which is an object")
	}
	if err != nil {
		return nil, &RecordError{Index: b.count, RecordID: recordIDIn(doc), Err: err}
	}
	b.follows(len(doc), min(b.count, 1))
	return doc, nil
}

// follows notes where a value of this length ends, and whether it comes after a comma at most, as in the canonical form.
func (b *BundleReader) follows(length, comma int) {
	end := b.dec.InputOffset()
	b.mended = b.mended || end != b.last+int64(comma+length)
	b.last = end
}

func (b *BundleReader) end() error {
	tail, err := b.readTail()
	if err == nil {
		err = b.fits(tail)
	}
	if err != nil {
		return err
	}
	after := bufio.NewReader(io.MultiReader(bytes.NewReader(b.dec.UnreadBuffer()), b.in.Reader))
	rest, err := after.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	b.mended = b.mended || string(rest) != "\n" // the canonical end
	if _, err = skipSpace(after); err != nil {
		return err
	}
	if _, err = after.ReadByte(); err == nil {
		return b.refuse("", "text after the end of the JSON value")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (b *BundleReader) readTail() ([]byte, error) {
	b.in.keep(b.dec.UnreadBuffer(), "after")
	for b.dec.StackDepth() > 0 {
		if _, err := b.dec.ReadToken(); err != nil {
			return nil, b.fail(err)
		}
	}
	return b.in.kept[:b.dec.InputOffset()-b.last], nil
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

func (b *BundleReader) pointer() string { return fmt.Sprintf("/records/%d", b.count) }

func (b *BundleReader) refuse(pointer, reason string) error {
	return &SyntaxError{Pointer: pointer, Offset: b.start + b.dec.InputOffset(), Reason: reason}
}

// fail words an error of the decoder. Those of the file stay as they are.
func (b *BundleReader) fail(err error) error {
	switch {
	case errors.Is(err, errBound):
		return b.refuse("", b.in.what)
	case errors.Is(err, io.EOF), errors.As(err, new(*jsontext.SyntacticError)):
		return jsonform.ShiftBy(jsonform.Refusal(err, b.dec.InputOffset()), int(b.start))
	}
	return cmp.Or(errors.Unwrap(err), err)
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
