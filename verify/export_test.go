package verify

import (
	"bytes"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// RootOf is the root over the entries of a file.
func RootOf(t testing.TB, doc []byte) tlog.Hash {
	t.Helper()
	tree := new(frontier)
	err := readEntries(bytes.NewReader(doc), func(_ int64, line []byte, _ *evidence.Entry) error {
		tree.add(tlog.RecordHash(line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree.root()
}
