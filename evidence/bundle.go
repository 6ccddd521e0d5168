package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"io"

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
	name := e.RecordID
	if name == "" {
		name = "unreadable id"
	}
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
