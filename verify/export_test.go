package verify

import (
	"bytes"
	"runtime"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// RootOf returns the root over the entries of a file.
func RootOf(t testing.TB, doc []byte) tlog.Hash {
	t.Helper()
	tree := new(operator.Frontier)
	err := operator.ReadEntries(bytes.NewReader(doc), func(_ int64, line []byte, _ *evidence.Entry) error {
		tree.Add(tlog.RecordHash(line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree.Root()
}

// KeptOf returns how many bytes a check keeps of a bundle's records once each is examined.
func KeptOf(b *evidence.Bundle, o Options) uint64 {
	file, err := b.Marshal()
	if err != nil {
		panic(err)
	}
	reader, err := evidence.ReadBundle(bytes.NewReader(file))
	if err != nil {
		panic(err)
	}
	before := alive()
	c := newCheck(o, ManyRecords)
	c.begin(reader.Checkpoint, nil)
	for range b.Records {
		raw, err := reader.Next()
		if err != nil {
			panic(err)
		}
		r, err := raw.Open()
		if err != nil {
			panic(err)
		}
		c.take(c.examine(r))
	}
	kept := alive() - before
	runtime.KeepAlive(c)
	runtime.KeepAlive(file)
	return kept
}

func alive() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
