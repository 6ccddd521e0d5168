package evidence

import (
	"bytes"
	"testing"
)

// TestBundleWriterWritesWhatMarshalDoes: a bundle written record by record has the same bytes as one that Marshal
// writes.
func TestBundleWriterWritesWhatMarshalDoes(t *testing.T) {
	for n := range 4 {
		bundle := testBundle(t)
		bundle.Records = bundle.Records[:n]
		want, err := bundle.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		w, err := NewBundleWriter(&got, bundle.Checkpoint, bundle.Anchors)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range bundle.Records {
			if err := w.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("of %d records it wrote\n%s\nwant\n%s", n, got.Bytes(), want)
		}
		for _, r := range bundle.Records {
			bare := *r
			bare.Log = nil
			if w.Add(r) == nil || w.Add(&bare) == nil {
				t.Error("the writer accepted a record twice, or without a place in the log")
			}
		}
	}
}
