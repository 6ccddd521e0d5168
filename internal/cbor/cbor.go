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
	doc, err := appendValue(nil, value)
	if err != nil {
		return nil, fmt.Errorf("encoding CBOR: %w", err)
	}
	return doc, nil
}

func appendValue(doc []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case int64:
		if v < 0 {
			return appendHead(doc, majorNegInt, uint64(-1-v)), nil
		}
		return appendHead(doc, majorUint, uint64(v)), nil
	case []byte:
		return append(appendHead(doc, majorBytes, uint64(len(v))), v...), nil
	case string:
		if !utf8.ValidString(v) {
			return nil, errors.New("a text is not valid UTF-8")
		}
		return append(appendHead(doc, majorText, uint64(len(v))), v...), nil
	case []any:
		return appendArray(doc, v)
	case Map:
		return appendMap(doc, v)
	case Tag:
		return appendValue(appendHead(doc, majorTag, v.Number), v.Content)
	case bool:
		if v {
			return appendHead(doc, majorSimple, simpleTrue), nil
		}
		return appendHead(doc, majorSimple, simpleFalse), nil
	case Float:
		return append(append(doc, majorSimple<<5|byte(23+bits.Len(uint(len(v))))), v...), nil
	case nil:
		return appendHead(doc, majorSimple, simpleNull), nil
	}
	return nil, fmt.Errorf("a value of the type %T", value)
}

func appendArray(doc []byte, list []any) (_ []byte, err error) {
	doc = appendHead(doc, majorArray, uint64(len(list)))
	for _, item := range list {
		if doc, err = appendValue(doc, item); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

func appendMap(doc []byte, m Map) ([]byte, error) {
	type entry struct{ key, value []byte }
	entries := make([]entry, len(m))
	for i, p := range m {
		if !isKey(p.Key) {
			return nil, fmt.Errorf("a map key of the type %T", p.Key)
		}
		key, err := appendValue(nil, p.Key)
		if err != nil {
			return nil, err
		}
		value, err := appendValue(nil, p.Value)
		if err != nil {
			return nil, err
		}
		entries[i] = entry{key, value}
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	doc = appendHead(doc, majorMap, uint64(len(m)))
	for i, e := range entries {
		if i > 0 && bytes.Equal(e.key, entries[i-1].key) {
			return nil, errors.New("a map has a key twice")
		}
		doc = append(append(doc, e.key...), e.value...)
	}
	return doc, nil
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
	value, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if d.at < len(doc) {
		return nil, d.wrong(d.at, "%d bytes after the end of the value", len(doc)-d.at)
	}
	return value, nil
}

type decoder struct {
	doc   []byte
	at    int
	items int
}

func (d *decoder) wrong(at int, format string, args ...any) error {
	return &SyntaxError{Offset: at, Reason: fmt.Sprintf(format, args...)}
}

func (d *decoder) value(depth int) (any, error) {
	start := d.at
	if d.items++; d.items > MaxItems {
		return nil, d.wrong(start, "more than %d values", MaxItems)
	}
	if depth > MaxDepth {
		return nil, d.wrong(start, "more than %d levels of nesting", MaxDepth)
	}
	major, info, err := d.first()
	if err != nil {
		return nil, err
	}
	if major == majorSimple {
		return d.simple(start, info)
	}
	n, err := d.argument(start, info)
	if err != nil {
		return nil, err
	}
	switch major {
	case majorUint, majorNegInt:
		return d.integer(start, major, n)
	case majorBytes:
		return d.take(start, n)
	case majorText:
		return d.text(start, n)
	case majorArray:
		return d.array(start, n, depth)
	case majorMap:
		return d.mapping(start, n, depth)
	}
	content, err := d.value(depth + 1)
	return Tag{Number: n, Content: content}, err
}

func (d *decoder) first() (major, info byte, err error) {
	if d.at == len(d.doc) {
		return 0, 0, d.wrong(d.at, "the document ends too early")
	}
	b := d.doc[d.at]
	d.at++
	return b >> 5, b & 31, nil
}

// argument reads the number that follows the first byte, and refuses forms that are longer than needed.
func (d *decoder) argument(start int, info byte) (uint64, error) {
	if info < 24 {
		return uint64(info), nil
	}
	if info == 31 {
		return 0, d.wrong(start, "an indefinite length: only definite ones are accepted")
	}
	if info > 27 {
		return 0, d.wrong(start, "the reserved additional information %d", info)
	}
	width := 1 << (info - 24)
	b, err := d.take(start, uint64(width))
	if err != nil {
		return 0, err
	}
	n := uint64(0)
	for _, one := range b {
		n = n<<8 | uint64(one)
	}
	if width == 1 && n < 24 || width > 1 && n>>(4*width) == 0 {
		return 0, d.wrong(start, "a number that is longer than needed: %d in %d bytes", n, width)
	}
	return n, nil
}

// take returns the next n bytes. It allocates nothing, so a huge length costs nothing.
func (d *decoder) take(start int, n uint64) ([]byte, error) {
	if n > uint64(len(d.doc)-d.at) {
		return nil, d.wrong(start, "it needs %d bytes, and %d are left", n, len(d.doc)-d.at)
	}
	b := d.doc[d.at : d.at+int(n) : d.at+int(n)]
	d.at += int(n)
	return b, nil
}

func (d *decoder) integer(start int, major byte, n uint64) (any, error) {
	if n > math.MaxInt64 {
		return nil, d.wrong(start, "an integer beyond 64 bits with sign")
	}
	if major == majorNegInt {
		return -1 - int64(n), nil
	}
	return int64(n), nil
}

func (d *decoder) text(start int, n uint64) (any, error) {
	b, err := d.take(start, n)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		return nil, d.wrong(start, "a text that is not valid UTF-8")
	}
	return string(b), nil
}

// room refuses a number of values that cannot be in the rest of the document: each has at least one byte.
func (d *decoder) room(start int, n uint64) error {
	if n > uint64(len(d.doc)-d.at) || n > MaxItems {
		return d.wrong(start, "it announces %d values, and %d bytes are left; at most %d values are read", n, len(d.doc)-d.at, MaxItems)
	}
	return nil
}

func (d *decoder) array(start int, n uint64, depth int) (any, error) {
	if err := d.room(start, n); err != nil {
		return nil, err
	}
	list := make([]any, n)
	for i := range list {
		var err error
		if list[i], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (d *decoder) mapping(start int, n uint64, depth int) (any, error) {
	if err := d.room(start, n); err != nil {
		return nil, err
	}
	m := make(Map, n)
	seen := make(map[any]bool, n)
	for i := range m {
		at := d.at
		key, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if !isKey(key) {
			return nil, d.wrong(at, "a map key that is neither an integer nor a text")
		}
		if seen[key] {
			return nil, d.wrong(at, "the map has the key %v twice", key)
		}
		seen[key] = true
		value, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		m[i] = Pair{key, value}
	}
	return m, nil
}

func (d *decoder) simple(start int, info byte) (any, error) {
	switch info {
	case simpleFalse:
		return false, nil
	case simpleTrue:
		return true, nil
	case simpleNull:
		return nil, nil
	case 25, 26, 27:
		b, err := d.take(start, 1<<(info-24))
		return Float(b), err
	case 31:
		return nil, d.wrong(start, "an end of an indefinite length: only definite ones are accepted")
	}
	return nil, d.wrong(start, "the simple value %d, which is not accepted", info)
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
