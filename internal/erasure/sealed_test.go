package erasure

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// A value of every length is written as its entry is, and opens.
func TestSealedEntry(t *testing.T) {
	key := bytes.Repeat([]byte{7}, keySize)
	at := placeOf(evidence.DigestOf([]byte("record")), "/response")
	for _, length := range slices.Concat(upTo(1, 70), upTo(3<<10-64, 3<<10+8), upTo(6<<10-64, 6<<10+8), []int{100_000, 100_001, 100_002}) {
		d := evidence.Disclosure{Pointer: at.pointer, Salt: bytes.Repeat([]byte{3}, saltSize), Value: []byte(fmt.Sprintf("%0*d", length, 1))}
		for i := range d.Value {
			d.Value[i] = byte(i * 31)
		}
		text, err := entry{Pointer: at.pointer, Record: at.record}.sealed(key, at, &d)
		if err != nil {
			t.Fatal(err)
		}
		var e entry
		if err := json.Unmarshal(text, &e, json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%d bytes: %v", length, err)
		}
		if written, err := e.text(); err != nil || !bytes.Equal(written, text) {
			t.Errorf("%d bytes: %.80q, and its entry is written %.80q, %v", length, text, written, err)
		}
		if len(e.Ciphertext) != sealedLength(&d) || cap(text) != len(text) {
			t.Errorf("%d bytes: %d sealed, want %d, in a buffer of %d for %d", length, len(e.Ciphertext), sealedLength(&d), cap(text), len(text))
		}
		if opened, err := open(key, at, e.Ciphertext); err != nil || !bytes.Equal(opened.Value, d.Value) || !bytes.Equal(opened.Salt, d.Salt) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

func upTo(from, to int) (list []int) {
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}
