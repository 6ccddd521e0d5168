// Package jsonform reads and writes JSON documents that have exactly one form: that of RFC 8785, restricted so that two
// documents of different content never share it. Its errors name the place and the reason.
//
// It knows documents and not what they say. Package evidence sets the bounds.
package jsonform

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds are the largest size and depth of a document. It has at most MaxValues.
type Bounds struct {
	Size  int // bytes, as given and in canonical form
	Depth int // of nested arrays and objects
}

// Error says where a document is wrong, and why.
type Error struct {
	Pointer string // RFC 6901 JSON pointer to the innermost value that was being read; "" is the whole document
	Offset  int64  // byte offset in the input
	Reason  string
}

func (e *Error) Error() string {
	where := e.Pointer
	where = cmp.Or(where, "the document")
	return fmt.Sprintf("byte %d, at %s: %s", e.Offset, where, e.Reason)
}

// Canonical returns the RFC 8785 form of a JSON document within these bounds.
//
// RFC 8785 alone maps many documents to one form: 9007199254740993 becomes 9007199254740992, 1e400 has no
// form at all, -0 becomes 0. Canonical refuses those, so that two documents with different content never
// share a form and so never share a digest. It also refuses what RFC 8785 takes from I-JSON: duplicate
// member names, lone surrogates, invalid UTF-8, text after the value. Every refusal is an *Error.
func (b Bounds) Canonical(doc []byte) ([]byte, error) {
	if b.IsCanonicalText(doc) {
		return bytes.Clone(doc), nil
	}
	if err := CheckEncoding(doc); err != nil {
		return nil, err
	}
	canonical, err := b.checkDocument(doc)
	if err != nil {
		return nil, err
	}
	form := jsontext.Value(bytes.Clone(doc))
	if canonical {
		return form, nil
	}
	if err := form.Canonicalize(); err != nil {
		return nil, Refusal(err, int64(len(doc)))
	}
	if err := b.CheckSize(form); err != nil { // 1e20 is longer in canonical form
		return nil, err
	}
	return form, nil
}

// CheckSize returns an *Error if the document is too long, or has too many values.
func (b Bounds) CheckSize(doc []byte) error {
	if err := b.CheckLength(len(doc)); err != nil {
		return err
	}
	return CheckValues(doc)
}

func (b Bounds) CheckLength(length int) error {
	if length > b.Size {
		return &Error{Offset: int64(b.Size), Reason: fmt.Sprintf("longer than %d bytes", b.Size)}
	}
	return nil
}

// checkDocument reads the document once and refuses what Canonical must refuse. It runs before jsontext's own
// canonicaliser, which rounds numbers silently and takes time proportional to size times depth. What is sealed is
// canonical already, so it reports that where it is sure.
func (b Bounds) checkDocument(doc []byte) (canonical bool, err error) {
	if err := b.CheckSize(doc); err != nil {
		return false, err
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc)) // a bytes.Buffer is read in place
	var last [][]byte
	for canonical = true; ; {
		begin := dec.InputOffset()
		if err := b.checkToken(dec); err != nil {
			return false, err
		}
		canonical = canonical && b.isCanonical(dec, doc[begin:dec.InputOffset()], &last)
		if dec.StackDepth() == 0 {
			return canonical && int(dec.InputOffset()) == len(doc), checkTrailing(doc, dec)
		}
	}
}

// isCanonical reports that a token, with what stands before it, is as Canonical would write it after the tokens before. last has the last name
// of each open object. Names are in the order of UTF-16, which is that of their bytes below U+E000.
func (b Bounds) isCanonical(dec *jsontext.Decoder, token []byte, last *[][]byte) bool {
	if token[0] == ',' || token[0] == ':' {
		token = token[1:]
	}
	switch token[0] {
	case '{':
		*last = append(*last, nil)
	case '}':
		*last = (*last)[:len(*last)-1]
	case '[', ']', 't', 'f', 'n':
	case '"':
		name, length := dec.StackIndex(dec.StackDepth())
		if name != '{' || length%2 == 0 {
			return b.IsCanonicalText(token)
		}
		before := &(*last)[len(*last)-1]
		rises := length == 1 || bytes.Compare(*before, token[1:len(token)-1]) < 0
		*before = token[1 : len(token)-1]
		return rises && b.IsCanonicalText(token) && !bytes.ContainsFunc(token, func(c rune) bool { return c == '\\' || c >= 0xe000 })
	case ' ', '\t', '\r', '\n':
		return false
	default:
		form := jsontext.Value(bytes.Clone(token))
		return isShortInteger(token) || form.Canonicalize() == nil && bytes.Equal(form, token)
	}
	return true
}

func (b Bounds) checkToken(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '0' {
		return checkNumber(dec)
	}
	if _, err := dec.ReadToken(); err != nil {
		return Refusal(err, dec.InputOffset()+int64(len(dec.UnreadBuffer())))
	}
	if dec.StackDepth() > b.Depth {
		return refuse(dec, 1, fmt.Sprintf("nested deeper than %d levels", b.Depth))
	}
	return nil
}

func checkNumber(dec *jsontext.Decoder) error {
	literal, err := dec.ReadValue()
	if err != nil {
		return Refusal(err, dec.InputOffset())
	}
	if isShortInteger(literal) {
		return nil
	}
	if reason := inexact(string(literal)); reason != "" {
		return refuse(dec, len(literal), reason)
	}
	return nil
}

// isShortInteger recognises quickly that most numbers are exact: whole ones of up to 15 digits.
func isShortInteger(literal []byte) bool {
	for _, c := range literal {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(literal) <= 15
}

// checkTrailing refuses anything but white space after the value that ends where dec stands.
func checkTrailing(doc []byte, dec *jsontext.Decoder) error {
	for i, c := range doc[dec.InputOffset():] {
		if strings.IndexByte(" \t\r\n", c) < 0 {
			return &Error{Offset: dec.InputOffset() + int64(i), Reason: "text after the end of the JSON value"}
		}
	}
	return nil
}

// refuse returns an error that points at the last token, which has this length.
func refuse(dec *jsontext.Decoder, length int, reason string) error {
	return &Error{Pointer: string(dec.StackPointer()), Offset: dec.InputOffset() - int64(length), Reason: reason}
}

// Refusal translates a parser's error into this package's words.
func Refusal(err error, offset int64) error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return &Error{Offset: offset, Reason: "the document ends too early"}
		}
		return &Error{Offset: offset, Reason: err.Error()}
	}
	return worded(syntactic)
}

// inexact says why a JSON number has no exact canonical form; "" if it has one.
func inexact(literal string) string {
	value := decimalOf(literal)
	if value.digits == "" {
		if value.negative {
			return "negative zero: " + literal + " would become 0"
		}
		return ""
	}
	float, err := strconv.ParseFloat(literal, 64)
	if err != nil || !value.exponentFits {
		return "number outside the range of an IEEE 754 double: " + Abbreviate(literal)
	}
	form := strconv.FormatFloat(float, 'e', -1, 64)
	if decimalOf(form) != value {
		return fmt.Sprintf("number that a double cannot hold exactly: %s would become %s",
			Abbreviate(literal), shortest(float))
	}
	return ""
}

// shortest formats a double as RFC 8785 (ECMAScript) does.
func shortest(f float64) string {
	form := jsontext.Value(strconv.FormatFloat(f, 'e', -1, 64))
	if err := form.Canonicalize(); err != nil {
		return string(form) // unreachable for a finite double; the plain form has the same value
	}
	return string(form)
}

// Abbreviate cuts a text to 40 bytes, so that an error about a hostile file stays readable.
func Abbreviate(literal string) string {
	const most = 40
	if len(literal) <= most {
		return literal
	}
	return literal[:most] + "…"
}

// decimal is the exact value of a JSON number: ±0.d₁d₂d₃… × 10^exponent, without leading or trailing zero digits.
type decimal struct {
	negative     bool
	digits       string // "" is zero
	exponent     int64
	exponentFits bool
}

// decimalOf reads a number that is already known to be valid JSON.
func decimalOf(literal string) decimal {
	d := decimal{exponentFits: true}
	literal, d.negative = strings.CutPrefix(literal, "-")
	mantissa, power := literal, "0"
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa, power = literal[:i], literal[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d.exponent = int64(len(digits)) - int64(len(fraction))
	d.digits = strings.TrimRight(digits, "0")
	shift, err := strconv.ParseInt(power, 10, 32)
	if err != nil {
		d.exponentFits = false
	}
	d.exponent += shift
	if d.digits == "" { // every zero is equal, whatever its exponent
		return decimal{negative: d.negative, exponentFits: true}
	}
	return d
}

// IsCanonicalText reports that a document is one text that Canonical would return as it is: texts may be long, and one pass finds that.
func (b Bounds) IsCanonicalText(doc []byte) bool {
	if len(doc) < len(`""`) || len(doc) > b.Size || doc[0] != '"' || !utf8.Valid(doc) {
		return false
	}
	for at := 1; ; at++ {
		at += literal(doc[at:])
		if at == len(doc) {
			return false
		}
		switch c := doc[at]; {
		case c == '"':
			return at+1 == len(doc)
		case c < ' ':
			return false
		case c == '\\':
			length := escapeLength(doc[at:])
			if length == 0 {
				return false
			}
			at += length - 1
		}
	}
}

// literal returns how many bytes at the beginning of a text, or fewer, stand for themselves. It looks at eight at once: most texts are long and plain.
func literal(text []byte) (n int) {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; n+8 <= len(text); n += 8 {
		word := binary.LittleEndian.Uint64(text[n:])
		quote, slash := word^each*'"', word^each*'\\'
		control := (word - each*' ') &^ word
		if (control|(quote-each)&^quote|(slash-each)&^slash)&high != 0 {
			return n
		}
	}
	return n
}

// escapeLength returns how long the escape is with which a text begins; 0: it is none, or a canonical text has another in its place.
func escapeLength(text []byte) int {
	const short, long = len(`\n`), len(`\u001f`)
	if len(text) >= short && strings.IndexByte(`"\bfnrt`, text[1]) >= 0 {
		return short
	}
	if len(text) < long || string(text[:len(`\u00`)]) != `\u00` || text[4] != '0' && text[4] != '1' {
		return 0
	}
	if low := text[5]; low >= '0' && low <= '9' || low >= 'a' && low <= 'f' {
		if text[4] == '1' || strings.IndexByte("89acd", low) < 0 { // those are \b, \t, \n, \f and \r
			return long
		}
	}
	return 0
}

// Decode reads the JSON of a file into a form and refuses unknown members. SameBytes later checks that it was canonical.
func Decode(doc []byte, form any) error {
	if err := CheckValues(doc); err != nil {
		return err
	}
	err := json.Unmarshal(doc, form, json.RejectUnknownMembers(true))
	if semantic, is := errors.AsType[*json.SemanticError](err); is {
		return &Error{Pointer: string(semantic.JSONPointer), Offset: semantic.ByteOffset, Reason: reason(semantic)}
	}
	if err != nil {
		return Refusal(err, int64(len(doc)))
	}
	return nil
}

// DecodeForm reads canonical JSON into a form, a pointer to a struct with its members in canonical order. It returns
// an *Error if the document has other members, or differs from what the form marshals to.
func DecodeForm(doc []byte, form any) error {
	if err := Decode(doc, form); err != nil {
		return err
	}
	return SameBytes(func() ([]byte, error) { return Encode(form) }, doc)
}

// Encode writes a form. Its members must be in canonical order and its values canonical.
func Encode(form any) ([]byte, error) {
	doc, err := json.Marshal(form)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return doc, nil
}

// SameBytes requires that marshalling what was read gives the same bytes.
func SameBytes(marshal func() ([]byte, error), doc []byte) error {
	again, err := marshal()
	if err != nil {
		return err
	}
	if !bytes.Equal(again, doc) {
		at := FirstDifference(again, doc)
		return &Error{Pointer: PointerAt(doc, at), Offset: at, Reason: "not in the one form that this content may have"}
	}
	return nil
}

func FirstDifference(a, b []byte) int64 {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int64(i)
		}
	}
	return int64(n)
}

// PointerAt finds the JSON pointer of the value at an offset of a valid document.
func PointerAt(doc []byte, offset int64) string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	for dec.InputOffset() <= offset {
		if _, err := dec.ReadToken(); err != nil {
			break
		}
	}
	return string(dec.StackPointer())
}

// Shift turns a position in a part of a document into a position in the document.
func Shift(err error, doc, part []byte, pointer string) error {
	return moved(err, func(e *Error) {
		e.Pointer, e.Offset = pointer+e.Pointer, e.Offset+int64(max(bytes.Index(doc, part), 0))
	})
}

func ShiftBy(err error, n int) error {
	if n == 0 {
		return err
	}
	return moved(err, func(e *Error) { e.Offset += int64(n) })
}

// moved changes the place that an *Error names.
func moved(err error, to func(*Error)) error {
	wrong, is := errors.AsType[*Error](err)
	if !is {
		return err
	}
	wrong = new(*wrong)
	to(wrong)
	return wrong
}

// ByteOrderMark is what some editors put before a text in UTF-8.
const ByteOrderMark = "\ufeff"

// CheckEncoding returns an *Error that says how to convert a text if the text begins as UTF-16: with its byte order mark or the first
// character of JSON in two bytes, and another character of ASCII after it. No UTF-8 text that jurat reads begins so, nor a damaged one.
func CheckEncoding(text []byte) error {
	if len(text) < 4 {
		return nil
	}
	big := (text[0] == 0xfe && text[1] == 0xff || text[0] == 0 && beginsJSON(text[1])) && text[2] == 0
	little := (text[0] == 0xff && text[1] == 0xfe || text[1] == 0 && beginsJSON(text[0])) && text[3] == 0
	if !big && !little {
		return nil
	}
	return &Error{Reason: "the text is in UTF-16, and only UTF-8 is read here; convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW, or in PowerShell: Get-Content FILE | Set-Content -Encoding utf8 NEW"}
}

func beginsJSON(c byte) bool { return strings.IndexByte("{[\" \t\r\n", c) >= 0 }

// CutMark removes the byte order mark before a text in UTF-8. It leaves several there, so that one who calls it twice reads no more than one who calls it once.
func CutMark(file []byte) []byte {
	if rest := bytes.TrimPrefix(file, []byte(ByteOrderMark)); !bytes.HasPrefix(rest, []byte(ByteOrderMark)) {
		return rest
	}
	return file
}

// Mend opens a document as it is. If that fails, Mend opens its canonical form.
func Mend[T any](b Bounds, doc []byte, open func([]byte) (T, error)) (opened T, mended bool, err error) {
	opened, err = open(doc)
	if err == nil {
		return opened, false, nil
	}
	form, refused := b.Canonical(doc)
	switch {
	case refused != nil:
		return opened, false, refused
	case bytes.Equal(form, doc):
		return opened, false, err
	}
	opened, err = open(form)
	return opened, true, placedIn(doc, err)
}

// placedIn converts the offset of an error in the canonical form into the offset in the document as given.
func placedIn(doc []byte, err error) error {
	return moved(err, func(e *Error) { e.Offset = offsetOf(doc, e.Pointer) })
}

// offsetOf finds the offset of the value with this pointer in a valid document.
func offsetOf(doc []byte, pointer string) int64 {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	for {
		before := dec.InputOffset()
		if _, err := dec.ReadToken(); err != nil {
			return 0
		}
		if string(dec.StackPointer()) == pointer {
			return before + int64(len(doc[before:])-len(bytes.TrimLeft(doc[before:], " \t\r\n:,")))
		}
	}
}

// A Scanner follows JSON far enough to know where an object ends. Opening the object checks whether it is JSON.
type Scanner struct {
	Depth    int // of objects
	InString bool
	escaped  bool
}

func (s *Scanner) Step(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.InString:
		s.escaped, s.InString = c == '\\', c != '"'
	case c == '"':
		s.InString = true
	case c == '{':
		s.Depth++
	case c == '}':
		s.Depth--
	}
}

// Skim scans a chunk until the object ends, and returns how many bytes it used.
func (s *Scanner) Skim(chunk []byte) int {
	for i := 0; i < len(chunk); i++ {
		if s.InString && !s.escaped {
			i += plain(chunk[i:])
			if i == len(chunk) {
				return i
			}
		}
		if s.Step(chunk[i]); s.Depth == 0 {
			return i + 1
		}
	}
	return len(chunk)
}

// plain counts the bytes up to the next quotation mark or backslash.
func plain(chunk []byte) int {
	end := bytes.IndexByte(chunk, '"')
	if end < 0 {
		end = len(chunk)
	}
	if escape := bytes.IndexByte(chunk[:end], '\\'); escape >= 0 {
		return escape
	}
	return end
}

// MaxValues bounds how many values one text of JSON that others wrote may have. An empty object takes two bytes there, and hundreds in memory.
const MaxValues = 1 << 18

// Values counts what a text of JSON has of commas and opening brackets outside of strings, so it has at most that many values and one more. A string ends at the
// end of a line, too: so the count is right for every part of a text that has several documents, such as a stream of events, whatever is broken before it.
func Values(text []byte) (n int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ',', '[', '{':
			n++
		case '"':
			i = endOfString(text, i+1)
		}
	}
	return n
}

// endOfString returns where a string ends that has begun.
func endOfString(text []byte, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case '"', '\n', '\r':
			return i
		case '\\':
			if i+1 < len(text) && text[i+1] != '\n' && text[i+1] != '\r' {
				i++
			}
		}
	}
	return i
}

// CheckValues returns an *Error if a text has more than MaxValues. It takes no memory: it comes before a text is read into values.
func CheckValues(text []byte) error {
	if len(text) <= MaxValues || Values(text) <= MaxValues {
		return nil
	}
	return &Error{Reason: fmt.Sprintf("more than %d values: commas and opening brackets outside of strings", MaxValues)}
}
