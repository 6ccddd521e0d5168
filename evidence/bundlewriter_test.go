package evidence

import (
	"bytes"
	"testing"

	"jurat/internal/must"
)

// TestBundleWriterWritesWhatMarshalDoes: a bundle written record by record has the same bytes as one that Marshal
// writes.
func TestBundleWriterWritesWhatMarshalDoes(t *testing.T) {
	for n := range 4 {
		bundle := testBundle(t)
		bundle.Records = bundle.Records[:n]
		want := must.Get(bundle.Marshal())(t)
		var got bytes.Buffer
		w := must.Get(NewBundleWriter(&got, bundle.Checkpoint, bundle.Anchors))(t)
		for _, r := range bundle.Records {
			must.Do(t, w.Add(r))
		}
		must.Do(t, w.Close())
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
