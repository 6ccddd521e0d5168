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
