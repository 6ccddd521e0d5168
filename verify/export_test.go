package verify

import (
	"bytes"
	"reflect"
	"runtime"
	"testing"
	"weak"

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

// KeptOf returns how many of a bundle's records a check still holds once each is examined, with any text of them, and how long the texts are that it has copied.
func KeptOf(b *evidence.Bundle, o Options) (held, copied int) {
	file, err := b.Marshal()
	if err != nil {
		panic(err)
	}
	reader, err := evidence.ReadBundle(bytes.NewReader(file))
	if err != nil {
		panic(err)
	}
	c := newCheck(o, ManyRecords)
	c.begin(reader.Checkpoint, nil)
	var seen []weak.Pointer[byte]
	for range b.Records {
		raw, err := reader.Next()
		if err != nil {
			panic(err)
		}
		r, err := raw.Open()
		if err != nil {
			panic(err)
		}
		seen = append(seen, weak.Make(&r.Payload.Response[0]), weak.Make(&r.Canonical()[0]))
		c.take(c.examine(r))
	}
	runtime.GC()
	for _, p := range seen {
		if p.Value() != nil {
			held++
		}
	}
	return held, texts(reflect.ValueOf(c), map[reflect.Value]bool{})
}

// texts returns how many bytes the texts have that can be reached from a value.
func texts(v reflect.Value, seen map[reflect.Value]bool) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if v.Kind() == reflect.Pointer && seen[v] || v.IsNil() {
			return 0
		}
		seen[v] = true
		return texts(v.Elem(), seen)
	case reflect.Struct:
		for _, field := range v.Fields() {
			n += texts(field, seen)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Len()
		}
		for _, element := range v.Seq2() {
			n += texts(element, seen)
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			n += texts(key, seen) + texts(value, seen)
		}
	}
	return n
}
