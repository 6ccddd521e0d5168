package evidence

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// BundleFormat is the version of the bundle format that this package writes and reads.
const BundleFormat = "jurat/bundle/v1"

// A Bundle is several records of one log, in log order, under one checkpoint: a chain, or the case file of a trial.
type Bundle struct {
	Records    []*Record
	Checkpoint string // C2SP signed note against which every record's log proof holds; "" if the records have none

	CheckpointTimestamps []Timestamp // RFC 3161 tokens over the checkpoint: all that it covers existed by then
}

// bundleForm is a bundle as it is written, its members in canonical order.
type bundleForm[R jsontext.Value | *recordForm] struct {
	Checkpoint           string      `json:"checkpoint,omitzero"`
	CheckpointTimestamps []Timestamp `json:"checkpoint_timestamps,omitempty"`
	Format               string      `json:"format"`
	Records              []R         `json:"records"`
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

func (e *RecordError) Unwrap() error { return e.Err }

// Marshal writes the bundle as a file: canonical JSON and a line feed. There is one such file for one content.
func (b *Bundle) Marshal() ([]byte, error) {
	form, err := b.marshal()
	if err != nil {
		return nil, err
	}
	return append(form, '\n'), nil
}

func (b *Bundle) marshal() ([]byte, error) {
	if err := checkCheckpointTimestamps(b.Checkpoint, b.CheckpointTimestamps); err != nil {
		return nil, err
	}
	form := bundleForm[*recordForm]{Checkpoint: b.Checkpoint, CheckpointTimestamps: b.CheckpointTimestamps, Format: BundleFormat}
	places := newPlaces()
	for i, r := range b.Records {
		record, err := r.form()
		if err == nil {
			err = places.take(r)
		}
		if err != nil {
			return nil, &RecordError{Index: i, RecordID: r.Payload.RecordID, Err: err}
		}
		form.Records = append(form.Records, record)
	}
	return encode(form)
}

// places holds the records of a bundle against each other while it is gone through.
type places struct {
	last    int64 // log index of the last record that has one
	ids     map[string]bool
	digests map[Digest]bool
}

func newPlaces() *places {
	return &places{last: -1, ids: map[string]bool{}, digests: map[Digest]bool{}}
}

// take checks that the next record is there once, stands in the log behind those before it, and under the bundle's
// checkpoint.
func (p *places) take(r *Record) error {
	if p.ids[r.Payload.RecordID] || p.digests[r.Digest] {
		return errors.New("the bundle has this record twice")
	}
	p.ids[r.Payload.RecordID], p.digests[r.Digest] = true, true
	if r.Log == nil {
		return nil
	}
	if r.Log.Checkpoint != "" {
		return errors.New("log: a checkpoint of its own, inside a bundle that has one for all")
	}
	if r.Log.Index <= p.last {
		return fmt.Errorf("log: index %d after %d: the records are not in log order", r.Log.Index, p.last)
	}
	p.last = r.Log.Index
	return nil
}

// ParseBundle reads a bundle file. It is strict: what parses marshals back to the same bytes.
func ParseBundle(file []byte) (*Bundle, error) {
	doc, ok := bytes.CutSuffix(file, []byte("\n"))
	if !ok {
		return nil, &SyntaxError{Offset: int64(len(file)), Reason: "a bundle file ends with a line feed"}
	}
	var form bundleForm[jsontext.Value]
	if err := decode(doc, &form); err != nil {
		return nil, inRecord(doc, err)
	}
	if form.Format != BundleFormat {
		return nil, &SyntaxError{Pointer: "/format", Reason: fmt.Sprintf("want %q", BundleFormat)}
	}
	b := &Bundle{Checkpoint: form.Checkpoint, CheckpointTimestamps: form.CheckpointTimestamps}
	places := newPlaces()
	for i, value := range form.Records {
		if err := b.add(value, places); err != nil {
			err = shift(err, doc, value, fmt.Sprintf("/records/%d", i))
			return nil, &RecordError{Index: i, RecordID: recordIDIn(value), Err: err}
		}
	}
	if err := sameBytes(b.marshal, doc); err != nil {
		return nil, inRecord(doc, err)
	}
	return b, nil
}

func (b *Bundle) add(value jsontext.Value, places *places) error {
	r, err := openForm(value)
	if err != nil {
		return err
	}
	b.Records = append(b.Records, r)
	return places.take(r)
}

// IsBundle reports whether a file is a bundle rather than a record, going by how it begins, or, if the beginning is
// damaged, by whether it names the format anywhere.
func IsBundle(file []byte) bool {
	for _, start := range []string{`{"certificates":`, `{"digest":`} {
		if bytes.HasPrefix(file, []byte(start)) {
			return false // a record, which may well speak about bundles
		}
	}
	return bytes.Contains(file, []byte(BundleFormat))
}
