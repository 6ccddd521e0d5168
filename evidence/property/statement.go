package property

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/jsonform"
)

// Format is the version of statements.
const Format = "jurat/property/v1"

// Form is what a statement says.
type Form string

const (
	Range      Form = "range"        // lo ≤ value ≤ hi
	In         Form = "in"           // the value is in the set
	NotIn      Form = "not_in"       // the value is not in the set
	AgeAtLeast Form = "age_at_least" // the date is at least so many years before another
)

// A Member names a provable member of a record.
type Member struct {
	Pointer string `json:"pointer"`
	Record  string `json:"record"` // digest of the payload
}

// A Statement is what is proved of a hidden value.
type Statement struct {
	At       string           `json:"at,omitzero"`       // of age_at_least: a date
	Audience string           `json:"audience,omitzero"` // for whom the proof is made; "": for everybody
	Form     Form             `json:"form"`
	Format   string           `json:"format"`
	Hi       jsontext.Value   `json:"hi,omitzero"` // of range
	Kind     Kind             `json:"kind"`
	Lo       jsontext.Value   `json:"lo,omitzero"` // of range
	Members  []Member         `json:"members"`     // one
	Set      []jsontext.Value `json:"set,omitempty"`
	Years    int              `json:"years,omitzero"` // of age_at_least
}

// Bounds of statements.
const (
	MaxSet   = 256 // entries of a set
	maxYears = 1000
	maxName  = 200 // bytes of an audience
)

// ParseStatement reads a statement in canonical form. It returns an error for any other spelling, for an unknown member, and for what
// [Statement.Check] refuses.
func ParseStatement(doc []byte) (*Statement, error) {
	s := new(Statement)
	if err := json.Unmarshal(doc, s, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading a statement: %w", jsonform.Steady(err))
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("reading a statement: %w", err)
	}
	again, err := s.Bytes()
	if err != nil {
		return nil, fmt.Errorf("reading a statement: %w", err)
	}
	if !bytes.Equal(again, doc) {
		return nil, errors.New("reading a statement: it is not in canonical form, or has an empty member")
	}
	return s, nil
}

// Bytes writes the statement in canonical form. It returns an error for a value that is not JSON.
func (s *Statement) Bytes() ([]byte, error) {
	doc, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing a statement: %w", err)
	}
	value := jsontext.Value(doc)
	if err := value.Canonicalize(); err != nil {
		return nil, fmt.Errorf("writing a statement: %w", err)
	}
	return value, nil
}

// tag is what binds a proof to the statement. Its errors are those of Check.
func (s *Statement) tag() (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	doc, err := s.Bytes()
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(doc)
	return "JURAT-PROPERTY-V01-CMPT-with-sigma-proofs_Shake128_P256/" + hex.EncodeToString(digest[:]), nil
}

// Check returns an error for a statement that breaks a rule of its form, with the member that is wrong.
func (s *Statement) Check() error {
	if s.Format != Format {
		return fmt.Errorf("format is %.40q, want %q", s.Format, Format)
	}
	err := s.Kind.Check()
	if err == nil && len(s.Audience) > maxName {
		err = fmt.Errorf("audience has %d bytes, want at most %d", len(s.Audience), maxName)
	}
	return cmp.Or(err, s.checkMembers(), s.checkForm())
}

func (s *Statement) checkMembers() error {
	if n := len(s.Members); n != 1 {
		return fmt.Errorf("members: %d of them, and a statement is about one", n)
	}
	m := s.Members[0]
	digits, is := strings.CutPrefix(m.Record, "sha256:")
	if _, err := hex.DecodeString(digits); !is || err != nil || len(digits) != 64 || strings.ToLower(digits) != digits {
		return fmt.Errorf("members/0/record: %.80q is not a digest", m.Record)
	}
	if !strings.HasPrefix(m.Pointer, "/") {
		return fmt.Errorf("members/0/pointer: %.80q is not a JSON pointer to a member", m.Pointer)
	}
	return nil
}

// extra names the members that a form has beside those that all have.
var extra = map[Form][]string{
	Range:      {"hi", "lo"},
	In:         {"set"},
	NotIn:      {"set"},
	AgeAtLeast: {"at", "years"},
}

// extras names those that the statement has.
func (s *Statement) extras() []string {
	there := map[string]bool{"at": s.At != "", "hi": s.Hi != nil, "lo": s.Lo != nil, "set": s.Set != nil, "years": s.Years != 0}
	maps.DeleteFunc(there, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(there))
}

func (s *Statement) checkForm() error {
	want, known := extra[s.Form]
	switch {
	case !known:
		return fmt.Errorf("unknown form %.40q", string(s.Form))
	case !slices.Equal(want, s.extras()):
		return fmt.Errorf("it has the members %q, and %s has %q", s.extras(), s.Form, want)
	case s.Set != nil:
		return s.checkSet()
	}
	return s.CheckBounds()
}

func (s *Statement) checkSet() error {
	if n := len(s.Set); n < 2 || n > MaxSet {
		return fmt.Errorf("set has %d entries, want 2 to %d", n, MaxSet)
	}
	seen := map[string]bool{}
	for i, value := range s.Set {
		v, err := s.Kind.scalar(value)
		if err != nil {
			return fmt.Errorf("set/%d: %w", i, err)
		}
		if seen[string(v[:])] {
			return fmt.Errorf("set/%d is there twice", i)
		}
		seen[string(v[:])] = true
	}
	return nil
}

// bounds returns the first and the last number that a statement about a range or an age allows.
func (s *Statement) bounds() (lo, hi int64, err error) {
	if s.Form == AgeAtLeast {
		return s.ages()
	}
	if lo, err = s.Kind.Number(s.Lo); err != nil {
		return 0, 0, fmt.Errorf("lo: %w", err)
	}
	if hi, err = s.Kind.Number(s.Hi); err != nil {
		return 0, 0, fmt.Errorf("hi: %w", err)
	}
	if hi <= lo {
		return 0, 0, errors.New("hi is not more than the least value: showing that shows the value")
	}
	return lo, hi, nil
}

// CheckBounds returns an error unless the numbers of a statement of the form range or age_at_least are of its kind and in order.
func (s *Statement) CheckBounds() error {
	if s.Form == AgeAtLeast && s.Kind != Date {
		return fmt.Errorf("age_at_least is asked of the kind date, and this is %s", s.Kind)
	}
	_, _, err := s.bounds()
	return err
}

// ages returns the days from 0000-01-01 to the last one that is so many years before a date. Of 29 February, it is 28 February in years that
// have no other.
func (s *Statement) ages() (lo, hi int64, err error) {
	at, err := parseDate(s.At)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("at: %w", err)
	case s.Years < 1 || s.Years > maxYears || at.Year()-s.Years < 1:
		return 0, 0, fmt.Errorf("years is %d, want 1 to %d, and at is in a year after that", s.Years, maxYears)
	}
	year, month, d := at.Date()
	last := time.Date(year-s.Years, month, d, 0, 0, 0, 0, time.UTC)
	if last.Day() != d {
		last = last.AddDate(0, 0, -1)
	}
	first := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	days := func(t time.Time) int64 { return t.Unix() / int64(day/time.Second) }
	return days(first), days(last), nil
}

// Warning says what a statement nearly discloses, or "".
func (s *Statement) Warning() string {
	switch s.Form {
	case Range:
		if lo, hi, err := s.bounds(); err == nil && hi-lo < 15 {
			return fmt.Sprintf("only %d values lie in this range: the proof nearly shows the value", hi-lo+1)
		}
	case In:
		if n := len(s.Set); n < 4 {
			return fmt.Sprintf("only %d values are in this set: the proof nearly shows the value", n)
		}
	}
	return ""
}

// Allows reports whether a value, which is canonical JSON, is one that a statement allows. It
// returns an error if the value, or a number of the statement, is not of the statement's kind. It asks nothing of the statement's
// members, and a set may have a single entry.
func (s *Statement) Allows(value jsontext.Value) (bool, error) {
	if s.Form == In || s.Form == NotIn {
		entries, err := s.entries()
		if err != nil {
			return false, err
		}
		v, err := s.Kind.scalar(value)
		return slices.Contains(entries, v) == (s.Form == In), err
	}
	if err := s.CheckBounds(); err != nil {
		return false, err
	}
	lo, hi, err := s.bounds()
	if err != nil {
		return false, err
	}
	v, err := s.Kind.Number(value)
	return err == nil && lo <= v && v <= hi, err
}

// Implies reports whether each value that s allows is one that the other statement allows. A statement of another kind implies
// nothing, because its numbers mean others.
func (s *Statement) Implies(other *Statement) bool {
	if s.Kind != other.Kind {
		return false
	}
	if s.Form == In {
		return len(s.Set) > 0 && !slices.ContainsFunc(s.Set, func(value jsontext.Value) bool {
			allowed, err := other.Allows(value)
			return err != nil || !allowed
		})
	}
	if other.Form == In || other.Form == NotIn {
		return s.leavesOut(other)
	}
	lo, hi, err := s.bounds()
	if s.Form == NotIn || err != nil {
		return false
	}
	from, to, err := other.bounds()
	return err == nil && other.CheckBounds() == nil && from <= lo && hi <= to
}

// leavesOut reports whether a statement that is no set's allows none of the entries of other, which is of the form not_in. That a range has
// only values of a set is not looked for.
func (s *Statement) leavesOut(other *Statement) bool {
	if other.Form == In {
		return false
	}
	return !slices.ContainsFunc(other.Set, func(value jsontext.Value) bool {
		allowed, err := s.Allows(value)
		return err != nil || allowed
	})
}

func (s *Statement) entries() ([]scalar, error) {
	all := make([]scalar, len(s.Set))
	for i, value := range s.Set {
		var err error
		if all[i], err = s.Kind.scalar(value); err != nil {
			return nil, err
		}
	}
	return all, nil
}

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
		return 0, fmt.Errorf("it is a JSON %s, and a value of the kind %s is a number", kindNames[value.Kind()], k)
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

// kindNames are what people call the kinds of JSON values.
var kindNames = map[jsontext.Kind]string{'n': "null", 't': "boolean", 'f': "boolean", '"': "string", '{': "object", '[': "array", '0': "number"}

func stringOf(value jsontext.Value, k Kind) (string, error) {
	var text string
	if value.Kind() != '"' {
		return "", fmt.Errorf("it is a JSON %s, and a value of the kind %s is a string", kindNames[value.Kind()], k)
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
func (k Kind) scalar(value jsontext.Value) (scalar, error) {
	if k != Text {
		n, err := k.Number(value)
		return scalarOf(n), err
	}
	hash := sha512.Sum512(append([]byte("jurat/property/v1/text\x00"), value...))
	return reduceScalar([48]byte(hash[:48])), nil
}

func scalarOf(n int64) scalar {
	if n < 0 {
		return smallScalar(uint64(-n)).Negate()
	}
	return smallScalar(uint64(n))
}
