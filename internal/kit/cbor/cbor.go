// Package cbor writes and reads the CBOR (RFC 8949) that COSE needs.
//
// [Encode] writes the deterministic encoding of RFC 8949, section 4.2.1: shortest lengths, no indefinite ones, map keys in
// the order of their encoded bytes. [Decode] is for input from strangers. It refuses what two readers could read
// differently: duplicate keys, indefinite lengths, lengths and integers that are longer than needed, bytes after the end.
// It accepts map keys in any order, because many encoders keep the order of insertion and nothing depends on it.
//
// # Why not a library
//
// The product signs and verifies these bytes, so they belong to the format and its own code, like the canonical JSON. The
// usual libraries judge it in tests (scitt/judges).
package cbor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// A Map is a CBOR map. Its keys are int64 or string; others are refused.
type Map []Pair

// A Pair is a key of a Map with its value.
type Pair struct {
	Key   any
	Value any
}

// Get returns the value of a key, and false if the map lacks the key.
func (m Map) Get(key any) (value any, ok bool) {
	i := slices.IndexFunc(m, func(p Pair) bool { return p.Key == key })
	if i < 0 {
		return nil, false
	}
	return m[i].Value, true
}

// A Tag is a tagged value (RFC 8949, section 3.4).
type Tag struct {
	Number  uint64
	Content any
}

// A Float is a floating-point number in its 2, 4 or 8 bytes: nothing asks for its value.
type Float []byte

// The major types of RFC 8949, section 3.1.
const (
	majorUint   = 0
	majorNegInt = 1
	majorBytes  = 2
	majorText   = 3
	majorArray  = 4
	majorMap    = 5
	majorTag    = 6
	majorSimple = 7
)

const (
	simpleFalse = 20
	simpleTrue  = 21
	simpleNull  = 22
)

// Encode returns the deterministic encoding of a value: int64, []byte, string, []any, Map, Tag, bool, Float or nil. It returns an
// error for another type, for a text that is not UTF-8, and for a key that a map has twice.
func Encode(value any) ([]byte, error) {
	var e encoder
	if doc := e.value(nil, value); e.err == nil {
		return doc, nil
	}
	return nil, fmt.Errorf("encoding CBOR: %w", e.err)
}

// encoder appends values to documents, and keeps the first error.
type encoder struct{ err error }

func (e *encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

func (e *encoder) value(doc []byte, value any) []byte {
	switch v := value.(type) {
	case int64:
		if v < 0 {
			return appendHead(doc, majorNegInt, uint64(-1-v))
		}
		return appendHead(doc, majorUint, uint64(v))
	case []byte:
		return append(appendHead(doc, majorBytes, uint64(len(v))), v...)
	case string:
		if !utf8.ValidString(v) {
			e.fail("a text is not valid UTF-8")
		}
		return append(appendHead(doc, majorText, uint64(len(v))), v...)
	case []any:
		doc = appendHead(doc, majorArray, uint64(len(v)))
		for _, item := range v {
			doc = e.value(doc, item)
		}
		return doc
	case Map:
		return e.mapping(doc, v)
	case Tag:
		return e.value(appendHead(doc, majorTag, v.Number), v.Content)
	case bool:
		if v {
			return appendHead(doc, majorSimple, simpleTrue)
		}
		return appendHead(doc, majorSimple, simpleFalse)
	case Float:
		return append(append(doc, majorSimple<<5|byte(23+bits.Len(uint(len(v))))), v...)
	case nil:
		return appendHead(doc, majorSimple, simpleNull)
	}
	e.fail("a value of the type %T", value)
	return nil
}

func (e *encoder) mapping(doc []byte, m Map) []byte {
	type entry struct{ key, value []byte }
	entries := make([]entry, len(m))
	for i, p := range m {
		if !isKey(p.Key) {
			e.fail("a map key of the type %T", p.Key)
		}
		entries[i] = entry{e.value(nil, p.Key), e.value(nil, p.Value)}
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	doc = appendHead(doc, majorMap, uint64(len(m)))
	for i, one := range entries {
		if i > 0 && bytes.Equal(one.key, entries[i-1].key) {
			e.fail("a map has a key twice")
		}
		doc = append(append(doc, one.key...), one.value...)
	}
	return doc
}

func isKey(key any) bool {
	switch key.(type) {
	case int64, string:
		return true
	}
	return false
}

// appendHead writes a major type and its argument in the shortest form.
func appendHead(doc []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < 24:
		return append(doc, major|byte(n))
	case n <= math.MaxUint8:
		return append(doc, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(doc, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(doc, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(doc, major|27), n)
}

// Limits of a document from a stranger. Its length is for the caller to limit.
const (
	MaxDepth = 16     // arrays, maps and tags inside each other
	MaxItems = 10_000 // values in the whole document
)

// A SyntaxError says where a document is not CBOR that Decode reads, and why.
type SyntaxError struct {
	Offset int // of the value, in bytes from the start
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("CBOR at byte %d: %s", e.Offset, e.Reason) }

// Decode reads one value that fills the whole document. It returns int64, []byte, string, []any, Map, Tag, bool, Float or
// nil for null. Byte strings share the document's memory. Every error is a *SyntaxError.
func Decode(doc []byte) (any, error) {
	d := decoder{doc: doc}
	value := d.value(0)
	if d.at < len(doc) {
		d.fail(d.at, "%d bytes after the end of the value", len(doc)-d.at)
	}
	if d.err != nil {
		return nil, d.err
	}
	return value, nil
}

// decoder reads values, and nothing more after its first error.
type decoder struct {
	doc   []byte
	at    int
	items int
	err   error
}

func (d *decoder) fail(at int, format string, args ...any) {
	if d.err == nil {
		d.err = &SyntaxError{Offset: at, Reason: fmt.Sprintf(format, args...)}
	}
}

func (d *decoder) value(depth int) any {
	start := d.at
	switch d.items++; {
	case d.items > MaxItems:
		d.fail(start, "more than %d values", MaxItems)
	case depth > MaxDepth:
		d.fail(start, "more than %d levels of nesting", MaxDepth)
	case start == len(d.doc):
		d.fail(start, "the document ends too early")
	}
	if d.err != nil {
		return nil
	}
	major, info := d.doc[start]>>5, d.doc[start]&31
	d.at++
	if major == majorSimple {
		return d.simple(start, info)
	}
	n := d.argument(start, info)
	switch major {
	case majorUint, majorNegInt:
		if n > math.MaxInt64 {
			d.fail(start, "an integer beyond 64 bits with sign")
		}
		if major == majorNegInt {
			return -1 - int64(n)
		}
		return int64(n)
	case majorBytes:
		return d.take(start, n)
	case majorText:
		text := d.take(start, n)
		if !utf8.Valid(text) {
			d.fail(start, "a text that is not valid UTF-8")
		}
		return string(text)
	case majorArray:
		list := make([]any, d.room(start, n))
		for i := range list {
			list[i] = d.value(depth + 1)
		}
		return list
	case majorMap:
		return d.mapping(start, n, depth)
	}
	return Tag{Number: n, Content: d.value(depth + 1)}
}

// argument reads the number that follows the first byte, and refuses forms that are longer than needed.
func (d *decoder) argument(start int, info byte) (n uint64) {
	switch {
	case info < 24:
		return uint64(info)
	case info == 31:
		d.fail(start, "an indefinite length: only definite ones are accepted")
		return 0
	case info > 27:
		d.fail(start, "the reserved additional information %d", info)
		return 0
	}
	width := 1 << (info - 24)
	for _, one := range d.take(start, uint64(width)) {
		n = n<<8 | uint64(one)
	}
	if width == 1 && n < 24 || width > 1 && n>>(4*width) == 0 {
		d.fail(start, "a number that is longer than needed: %d in %d bytes", n, width)
	}
	return n
}

// take returns the next n bytes. It allocates nothing, so a huge length costs nothing.
func (d *decoder) take(start int, n uint64) []byte {
	if n > uint64(len(d.doc)-d.at) {
		d.fail(start, "it needs %d bytes, and %d are left", n, len(d.doc)-d.at)
		return nil
	}
	from := d.at
	d.at += int(n)
	return d.doc[from:d.at:d.at]
}

// room refuses a number of values that cannot be in the rest of the document: each has at least one byte.
func (d *decoder) room(start int, n uint64) int {
	if n > uint64(len(d.doc)-d.at) || n > MaxItems {
		d.fail(start, "it announces %d values, and %d bytes are left; at most %d values are read", n, len(d.doc)-d.at, MaxItems)
		return 0
	}
	return int(n)
}

func (d *decoder) mapping(start int, n uint64, depth int) Map {
	m := make(Map, d.room(start, n))
	seen := make(map[any]bool, len(m))
	for i := range m {
		at := d.at
		key := d.value(depth + 1)
		if !isKey(key) {
			d.fail(at, "a map key that is neither an integer nor a text")
			return nil
		}
		if seen[key] {
			d.fail(at, "the map has the key %v twice", key)
		}
		seen[key] = true
		m[i] = Pair{key, d.value(depth + 1)}
	}
	return m
}

func (d *decoder) simple(start int, info byte) any {
	switch info {
	case simpleFalse, simpleTrue:
		return info == simpleTrue
	case simpleNull:
		return nil
	case 25, 26, 27:
		return Float(d.take(start, 1<<(info-24)))
	case 31:
		d.fail(start, "an end of an indefinite length: only definite ones are accepted")
	default:
		d.fail(start, "the simple value %d, which is not accepted", info)
	}
	return nil
}

// ErrNotMap says that a value is of another kind than a map.
var ErrNotMap = errors.New("it is not a map")

// DecodeMap reads a document that is one map. Its other errors are those of Decode.
func DecodeMap(doc []byte) (Map, error) {
	value, err := Decode(doc)
	if err != nil {
		return nil, err
	}
	m, ok := value.(Map)
	if !ok {
		return nil, ErrNotMap
	}
	return m, nil
}
