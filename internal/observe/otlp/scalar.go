package otlp

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Senders write whole numbers as JSON numbers or as strings. Written is what the protocol has: those of 64 bits are strings.
type (
	// ID is the id of a trace or a span in lower-case hexadecimal. "": none.
	ID string
	// Count is a whole number of 32 bits that is not negative.
	Count uint32
	// Enum is a choice by its number.
	Enum int32
	// Nanos is a time in nanoseconds since 1970; 0: none.
	Nanos uint64
	// Int is a whole number of 64 bits.
	Int int64
	// Double is a number that may be NaN or infinite.
	Double float64
)

// maxID bounds the hexadecimal digits of an id.
const maxID = 64

// UnmarshalJSONFrom reads hexadecimal digits. OTLP/JSON has ids so, and not in base64 as protobuf's own JSON has bytes.
func (id *ID) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var text string
	if err := json.UnmarshalDecode(d, &text); err != nil {
		return err
	}
	if len(text) > maxID {
		return errors.New("an id is longer than 64 characters")
	}
	if _, err := hex.DecodeString(text); err != nil {
		return fmt.Errorf("the id %q is not hexadecimal", text)
	}
	*id = ID(strings.ToLower(text))
	return nil
}

// Is reports whether the id has this many bytes and is not zero.
func (id ID) Is(bytes int) bool { return len(id) == 2*bytes && strings.Trim(string(id), "0") != "" }

// UnmarshalJSONFrom reads a number or a string.
func (c *Count) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n, err := whole(d, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 32) })
	*c = Count(n)
	return err
}

// UnmarshalJSONFrom reads a number, a string with one, or one of the protocol's names.
func (e *Enum) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n, err := whole(d, func(s string) (int64, error) {
		if n, known := enums[s]; known {
			return n, nil
		}
		return strconv.ParseInt(s, 10, 32)
	})
	*e = Enum(n)
	return err
}

// enums are names that senders with protobuf's own JSON write.
var enums = map[string]int64{
	"SPAN_KIND_UNSPECIFIED": 0, "SPAN_KIND_INTERNAL": 1, "SPAN_KIND_SERVER": 2, "SPAN_KIND_CLIENT": 3, "SPAN_KIND_PRODUCER": 4, "SPAN_KIND_CONSUMER": 5,
	"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2,
	"SEVERITY_NUMBER_UNSPECIFIED": 0, "SEVERITY_NUMBER_TRACE": 1, "SEVERITY_NUMBER_DEBUG": 5, "SEVERITY_NUMBER_INFO": 9, "SEVERITY_NUMBER_WARN": 13, "SEVERITY_NUMBER_ERROR": 17, "SEVERITY_NUMBER_FATAL": 21,
}

// UnmarshalJSONFrom reads a string or a number.
func (n *Nanos) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	at, err := whole(d, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	*n = Nanos(at)
	return err
}

// MarshalJSONTo writes a string.
func (n Nanos) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteToken(jsontext.String(strconv.FormatUint(uint64(n), 10)))
}

// Time returns the time. It is zero if there is none, or if it is after the year 2262.
func (n Nanos) Time() time.Time {
	if n == 0 || n > math.MaxInt64 {
		return time.Time{}
	}
	return time.Unix(0, int64(n)).UTC()
}

// UnmarshalJSONFrom reads a string or a number.
func (i *Int) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n, err := whole(d, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
	*i = Int(n)
	return err
}

// MarshalJSONTo writes a string.
func (i Int) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteToken(jsontext.String(strconv.FormatInt(int64(i), 10)))
}

// UnmarshalJSONFrom reads a number, or a string with one, or NaN, Infinity or -Infinity.
func (f *Double) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n, err := whole(d, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	*f = Double(n)
	return err
}

// MarshalJSONTo writes a number, or a string for what is no number of JSON.
func (f Double) MarshalJSONTo(e *jsontext.Encoder) error {
	switch n := float64(f); {
	case math.IsNaN(n):
		return e.WriteToken(jsontext.String("NaN"))
	case math.IsInf(n, 1):
		return e.WriteToken(jsontext.String("Infinity"))
	case math.IsInf(n, -1):
		return e.WriteToken(jsontext.String("-Infinity"))
	default:
		return e.WriteToken(jsontext.Float(n))
	}
}

// whole reads a number that is written as a number or as a string. null is zero.
func whole[T any](d *jsontext.Decoder, parse func(string) (T, error)) (n T, err error) {
	v, err := d.ReadValue()
	if err != nil {
		return n, err
	}
	text := string(v)
	switch v.Kind() {
	case jsontext.KindNull:
		return n, nil
	case jsontext.KindString:
		if err := json.Unmarshal(v, &text); err != nil {
			return n, err
		}
	}
	if n, err = parse(text); err != nil {
		var none T
		return none, fmt.Errorf("%.40q is not a number of the kind that stands here", text)
	}
	return n, nil
}
