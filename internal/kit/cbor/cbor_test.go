package cbor

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"jurat/internal/test/must"
)

// examples are of RFC 8949, appendix A, as far as COSE needs them.
var examples = []struct {
	doc   string
	value any
}{
	{"00", int64(0)}, {"17", int64(23)}, {"1818", int64(24)}, {"1903e8", int64(1000)}, {"1a000f4240", int64(1000000)}, {"1b000000e8d4a51000", int64(1000000000000)},
	{"20", int64(-1)}, {"3903e7", int64(-1000)}, {"3b7fffffffffffffff", int64(math.MinInt64)}, {"1b7fffffffffffffff", int64(math.MaxInt64)},
	{"f4", false}, {"f5", true}, {"f6", nil}, {"40", []byte{}}, {"4401020304", []byte{1, 2, 3, 4}}, {"60", ""}, {"6449455446", "IETF"}, {"62225c", `"\`}, {"62c3bc", "ü"},
	{"80", []any{}}, {"83010203", []any{int64(1), int64(2), int64(3)}}, {"8301820203820405", []any{int64(1), []any{int64(2), int64(3)}, []any{int64(4), int64(5)}}},
	{"a0", Map{}}, {"a201020304", Map{{int64(1), int64(2)}, {int64(3), int64(4)}}}, {"a26161016162820203", Map{{"a", int64(1)}, {"b", []any{int64(2), int64(3)}}}},
	{"d74401020304", Tag{23, []byte{1, 2, 3, 4}}}, {"d818456449455446", Tag{24, []byte("dIETF")}}, {"fb3ff199999999999a", Float("\x3f\xf1\x99\x99\x99\x99\x99\x9a")}, {"fbc010666666666666", Float("\xc0\x10\x66\x66\x66\x66\x66\x66")},
}

func TestExamplesOfTheRFC(t *testing.T) {
	for _, tt := range examples {
		doc := must.Get(hex.DecodeString(tt.doc))(t)
		got, err := Decode(doc)
		must.Hold(t, err == nil && reflect.DeepEqual(got, tt.value), "%s: %#v, %v", tt.doc, got, err)
		if got, err := Encode(tt.value); err != nil || !bytes.Equal(got, doc) {
			t.Errorf("%#v: %x, %v", tt.value, got, err)
		}
	}
	for _, text := range []string{"f93e00", "f97c00", "f9c400", "fa47c35000"} { // floating-point numbers
		doc := must.Get(hex.DecodeString(text))(t)
		got := must.Get(Decode(doc))(t)
		again, err := Encode(got)
		must.Hold(t, err == nil && bytes.Equal(again, doc) && reflect.DeepEqual(got, Float(doc[1:])), "%s: %v, %x, %v", text, got, again, err)
	}
}

// TestOrderOfKeys is the example of RFC 8949, section 4.2.1.
func TestOrderOfKeys(t *testing.T) {
	got, err := Encode(Map{{"aa", nil}, {int64(-1), nil}, {"z", nil}, {int64(100), nil}, {int64(10), nil}})
	want := "a5" + "0af6" + "1864f6" + "20f6" + "617af6" + "626161f6"
	must.Hold(t, err == nil && hex.EncodeToString(got) == want, "%x, %v", got, err)
}

func TestDocumentsRefused(t *testing.T) {
	for _, tt := range []struct{ name, doc, want string }{
		{"nothing", "", "ends too early"},
		{"bytes after the end", "0000", "1 bytes after the end"},
		{"a number in more bytes than needed", "1817", "longer than needed"},
		{"a number in two bytes", "1900ff", "longer than needed"},
		{"a number in four bytes", "1a0000ffff", "longer than needed"},
		{"a number in eight bytes", "1b00000000ffffffff", "longer than needed"},
		{"a length in more bytes than needed", "580100", "longer than needed"},
		{"a tag in more bytes than needed", "d81200", "longer than needed"},
		{"an indefinite byte string", "5f4100ff", "indefinite"},
		{"an indefinite text", "7f6161ff", "indefinite"},
		{"an indefinite array", "9f00ff", "indefinite"},
		{"an indefinite map", "bf0000ff", "indefinite"},
		{"a break", "ff", "indefinite"},
		{"reserved information", "1c", "reserved"},
		{"a key twice", "a200010002", "twice"},
		{"a text key twice", "a2616101616102", "twice"},
		{"a key that is bytes", "a14000", "neither an integer nor a text"},
		{"a key that is an array", "a18000", "neither an integer nor a text"},
		{"a key that is a number with a fraction", "a1fb3ff199999999999a00", "neither an integer nor a text"},
		{"a text that is not UTF-8", "61ff", "UTF-8"},
		{"an integer of more than 64 bits with sign", "1bffffffffffffffff", "beyond 64 bits"},
		{"a negative integer of more than 64 bits with sign", "3bffffffffffffffff", "beyond 64 bits"},
		{"undefined", "f7", "simple value 23"},
		{"a simple value", "f820", "simple value 24"},
		{"a huge byte string", "5b7fffffffffffffff00", "it needs 9223372036854775807 bytes"},
		{"a byte string of more than 63 bits", "5bffffffffffffffff00", "it needs 18446744073709551615 bytes"},
		{"a huge array", "9b7fffffffffffffff00", "announces"},
		{"a huge map", "bb7fffffffffffffff00", "announces"},
		{"an array that ends early", "8200", "announces 2 values, and 1 bytes are left"},
		{"a map that ends early", "a100", "ends too early"},
		{"an argument that ends early", "19ff", "it needs 2 bytes"},
		{"too deep arrays", strings.Repeat("81", 17) + "00", "levels of nesting"},
		{"too deep maps", strings.Repeat("a100", 17) + "00", "levels of nesting"},
		{"too deep tags", strings.Repeat("c0", 17) + "00", "levels of nesting"},
		{"too many values", "82" + "992710" + strings.Repeat("00", 10000) + "00", "more than 10000 values"},
	} {
		doc, err := hex.DecodeString(tt.doc)
		must.Do(t, err)
		_, err = Decode(doc)
		var syntax *SyntaxError
		must.Hold(t, errors.As(err, &syntax) && strings.Contains(err.Error(), tt.want), "%s: %v, want %q", tt.name, err, tt.want)
	}
	must.Refuse(t, "", "an array without its value")(Decode(bytes.Repeat([]byte{0x81}, 16)))
}

func TestValuesRefused(t *testing.T) {
	for name, value := range map[string]any{"a text": "\xff", "a type": 7, "a key twice": Map{{int64(1), nil}, {int64(1), nil}}, "a key": Map{{1.5, nil}},
		"inside an array": []any{7}, "inside a map": Map{{int64(1), 7}}, "a key that is no text": Map{{"\xff", nil}}, "inside a tag": Tag{1, 7}} {
		doc, err := Encode(value)
		must.Hold(t, err != nil, "%s: %x", name, doc)
	}
}

func TestGet(t *testing.T) {
	m := Map{{int64(1), "a"}, {"1", "b"}}
	for key, want := range map[any]any{int64(1): "a", "1": "b", int64(2): nil} {
		got, ok := m.Get(key)
		must.Hold(t, got == want && ok == (want != nil), "%v: %v, %t", key, got, ok)
	}
	must.Fail(t, ErrNotMap)(DecodeMap([]byte{0x80}))
}

// FuzzDecode: what decodes encodes again, and its encoding decodes to the same. With keys in order, it is the same bytes.
func FuzzDecode(f *testing.F) {
	for _, tt := range examples {
		doc := must.Get(hex.DecodeString(tt.doc))(f)
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		value, err := Decode(doc)
		if err != nil {
			return
		}
		again, err := Encode(value)
		must.Need(t, err == nil, "%x: %v", doc, err)
		second, err := Decode(again)
		must.Need(t, err == nil, "%x: %v", again, err)
		third, err := Encode(second)
		must.Need(t, err == nil && bytes.Equal(again, third), "%x, %x, %v", again, third, err)
		must.Need(t, len(again) == len(doc), "%x became %x", doc, again)
	})
}
