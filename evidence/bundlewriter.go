package evidence

import (
	"bytes"
	"errors"
	"io"

	"jurat/internal/jsonform"
)

// A BundleWriter writes a bundle file record by record: the same bytes as Bundle.Marshal. It holds at most one record
// at a time.
type BundleWriter struct {
	w     io.Writer
	count int
	last  int64 // log index of the last record that has one
}

// endOfBundle closes a bundle without records.
var endOfBundle = []byte("]}")

// NewBundleWriter writes the part before the records. Its errors are those of w.
func NewBundleWriter(w io.Writer, checkpoint string, anchors []Anchor) (*BundleWriter, error) {
	head, err := (&Bundle{Checkpoint: checkpoint, Anchors: anchors, Records: []*Record{}}).marshal()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(bytes.TrimSuffix(head, endOfBundle))
	return &BundleWriter{w: w, last: -1}, err
}

// Add writes the next record. It returns a *RecordError if the record may not come there.
func (b *BundleWriter) Add(r *Record) error {
	form, err := r.form()
	if err == nil {
		err = errors.Join(form.checkSize(), b.place(r))
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

// place checks that the record has a place in the log, after those before it. So no record comes twice.
func (b *BundleWriter) place(r *Record) error {
	if r.Log == nil {
		return errors.New("log: it has no place in the log")
	}
	return r.Log.follow(&b.last)
}

// Close writes the part after the records. It does not close the writer below. Its errors are those of w.
func (b *BundleWriter) Close() error {
	_, err := b.w.Write(append(bytes.Clone(endOfBundle), '\n'))
	return err
}
