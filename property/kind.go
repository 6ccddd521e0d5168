package property

import (
	"crypto/sha512"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/sigma"
)

// A Kind says how a JSON value becomes a number.
type Kind string

const (
	Integer Kind = "integer" // a whole number from −(2⁵³−1) to 2⁵³−1
	Date    Kind = "date"    // a string "2006-01-02": days since 1970-01-01
	Time    Kind = "time"    // a string "2006-01-02T15:04:05.999Z" in UTC: milliseconds since 1970-01-01T00:00:00Z
	Text    Kind = "text"    // any JSON value: a hash of it, so that only equality can be proved

	decimal = "decimal:" // with a digit k from 1 to 9: a number with at most k decimals, times 10 to the power of k
)

// maxNumber bounds the numbers of ordered kinds: with up to 256 of them, no sum comes near the order of the group.
const maxNumber = 1<<53 - 1

// ErrKind is the error for an unknown kind.
var ErrKind = errors.New(`want "integer", "decimal:1" to "decimal:9", "date", "time" or "text"`)

// Check returns [ErrKind] for an unknown kind.
func (k Kind) Check() error {
	switch k {
	case Integer, Date, Time, Text:
		return nil
	}
	if digit, is := strings.CutPrefix(string(k), decimal); is && len(digit) == 1 && digit[0] >= '1' && digit[0] <= '9' {
		return nil
	}
	return fmt.Errorf("kind %q: %w", string(k), ErrKind)
}

// Ordered reports whether values of the kind can be compared, added, and lie in ranges.
func (k Kind) Ordered() bool { return k != Text }

// Number returns the number of a value of an ordered kind. The value is canonical JSON. Its error says why the value is not of the kind.
func (k Kind) Number(value jsontext.Value) (int64, error) {
	if err := k.Check(); err != nil {
		return 0, err
	}
	switch k {
	case Date:
		return dayNumber(value)
	case Time:
		return milliseconds(value)
	case Text:
		return 0, errors.New("text has no order: only sets and equality can be asked of it")
	}
	return k.scaled(value)
}

// scaled returns a JSON number times the power of ten that the kind has.
func (k Kind) scaled(value jsontext.Value) (int64, error) {
	if value.Kind() != '0' {
		return 0, fmt.Errorf("it is a JSON %s, and a value of the kind %s is a number", kindName(value), k)
	}
	// A short text can be a number of millions of digits, which must not be computed.
	tooLarge := fmt.Errorf("%.40s is too large for the kind %s, whose numbers end at %d", string(value), k, int64(maxNumber))
	near, err := strconv.ParseFloat(string(value), 64)
	switch {
	case err != nil || math.Abs(near) > maxNumber:
		return 0, tooLarge
	case near == 0 && string(value) != "0" || near != 0 && math.Abs(near) < 1e-9:
		return 0, fmt.Errorf("%.40s has more decimals than the kind %s", string(value), k)
	}
	exact, ok := new(big.Rat).SetString(string(value))
	if !ok {
		return 0, fmt.Errorf("%.40q is not a number", string(value))
	}
	if digit, is := strings.CutPrefix(string(k), decimal); is {
		exponent, _ := strconv.Atoi(digit)
		exact.Mul(exact, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil)))
	}
	if !exact.IsInt() {
		return 0, fmt.Errorf("%.40s has more decimals than the kind %s", string(value), k)
	}
	n := exact.Num()
	if n.CmpAbs(big.NewInt(maxNumber)) > 0 {
		return 0, tooLarge
	}
	return n.Int64(), nil
}

func kindName(value jsontext.Value) string {
	switch value.Kind() {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return "number"
}

func stringOf(value jsontext.Value, k Kind) (string, error) {
	var text string
	if value.Kind() != '"' {
		return "", fmt.Errorf("it is a JSON %s, and a value of the kind %s is a string", kindName(value), k)
	}
	err := json.Unmarshal(value, &text)
	return text, err
}

const day = 24 * time.Hour

func dayNumber(value jsontext.Value) (int64, error) {
	text, err := stringOf(value, Date)
	if err != nil {
		return 0, err
	}
	t, err := parseDate(text)
	if err != nil {
		return 0, err
	}
	return t.Unix() / int64(day/time.Second), nil // midnight: exact, below zero, too
}

func parseDate(text string) (time.Time, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || t.Format(time.DateOnly) != text {
		return t, fmt.Errorf("%.40q is not a date as 2006-01-02", text)
	}
	return t, nil
}

func milliseconds(value jsontext.Value) (int64, error) {
	text, err := stringOf(value, Time)
	if err != nil {
		return 0, err
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil || !strings.HasSuffix(text, "Z") || t.Year() < 0 || t.Year() > 9999:
		return 0, fmt.Errorf("%.40q is not a time in UTC as 2006-01-02T15:04:05Z", text)
	case t.Nanosecond()%int(time.Millisecond) != 0:
		return 0, fmt.Errorf("%.40q is finer than a millisecond", text)
	}
	return t.UnixMilli(), nil
}

// scalar returns the number v of a value, of whichever kind. value is canonical JSON.
func (k Kind) scalar(value jsontext.Value) (sigma.Scalar, error) {
	if k != Text {
		n, err := k.Number(value)
		return scalarOf(n), err
	}
	hash := sha512.Sum512(append([]byte("jurat/property/v1/text\x00"), value...))
	return sigma.ReduceScalar([48]byte(hash[:48])), nil
}

func scalarOf(n int64) sigma.Scalar {
	if n < 0 {
		return sigma.ScalarOf(uint64(-n)).Negate()
	}
	return sigma.ScalarOf(uint64(n))
}
