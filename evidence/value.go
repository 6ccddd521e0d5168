package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxName is the longest identifier in bytes. It becomes a file name, a table key and a line on a screen.
const maxName = 200

// maxSigners bounds how many signatures a verifier must check.
const maxSigners = 16

// maxExact is the greatest whole number up to which a double holds every whole number.
const maxExact = 1<<53 - 1

func kindName(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 'n':
		return "null"
	}
	return "a boolean"
}

// text reads a string of a document that was checked.
func text(v jsontext.Value) (string, error) {
	if v.Kind() == '"' && bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), nil // most strings are short and have no escapes
	}
	s, err := textBytes(v)
	return string(s), err
}

// textBytes decodes a canonical string into bytes of its own.
func textBytes(v jsontext.Value) ([]byte, error) {
	if v.Kind() != '"' {
		return nil, fmt.Errorf("want a string, found %s", kindName(v))
	}
	return jsontext.AppendUnquote(make([]byte, 0, len(v)), v)
}

// readKind accepts values of the named kinds; an error says that it wants the first.
func readKind(kinds ...string) func(jsontext.Value) (jsontext.Value, error) {
	return func(v jsontext.Value) (jsontext.Value, error) {
		if kind := kindName(v); !slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("want %s, found %s", kinds[0], kind)
		}
		return v, nil
	}
}

// readContent accepts what people and models say: text, or parts and messages as arrays and objects.
func readContent(v jsontext.Value) (jsontext.Value, error) {
	switch v.Kind() {
	case '"', '{', '[':
		return v, nil
	}
	return nil, fmt.Errorf("want a string, an object or an array, found %s", kindName(v))
}

func readOneOf[S ~string](allowed ...S) func(jsontext.Value) (S, error) {
	return func(v jsontext.Value) (S, error) {
		s, err := text(v)
		if err != nil {
			return "", err
		}
		if err := oneOf(S(s), allowed...); err != nil {
			return "", err
		}
		return S(s), nil
	}
}

// readChecked reads a string that a check accepts.
func readChecked(check func(string) error) func(jsontext.Value) (string, error) {
	return func(v jsontext.Value) (string, error) {
		s, err := text(v)
		if err != nil {
			return "", err
		}
		return s, check(s)
	}
}

func readAction(v jsontext.Value) (ActionType, error) {
	s, err := text(v)
	return ActionType(s), err // check finds whether it is one
}

func list[S ~string](names []S) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

var readName = readChecked(CheckName)

// CheckName refuses texts that cannot be an identifier in a payload, such as agent_id, model or chain_id.
func CheckName(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("empty; leave it out if there is none")
	}
	if len(s) > maxName {
		return fmt.Errorf("longer than %d bytes", maxName)
	}
	if !utf8.ValidString(s) {
		return errors.New("not valid UTF-8")
	}
	for _, c := range s {
		// Control characters, and characters that change the direction of a line, would show a reader another name.
		if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) {
			return fmt.Errorf("has the control character U+%04X", c)
		}
	}
	return nil
}

func checkTime(text string) error {
	_, err := ParseTime(text)
	return err
}

func readPosition(v jsontext.Value) (int64, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 1 || n > maxExact {
		return 0, fmt.Errorf("want a whole number from 1 to %d", int64(maxExact))
	}
	return n, nil
}

func readDigest(v jsontext.Value) (Digest, error) {
	s, err := text(v)
	if err != nil {
		return Digest{}, err
	}
	d, err := ParseDigest(s)
	if err == nil && d.IsZero() {
		err = errors.New("all zero: a digest of nothing")
	}
	return d, err
}

func readDigests(v jsontext.Value) ([]Digest, error) {
	list, err := readList(readDigest)(v)
	seen := map[Digest]bool{}
	for _, d := range list {
		if seen[d] {
			return nil, fmt.Errorf("names %s twice", d)
		}
		seen[d] = true
	}
	return list, err
}

// readList reads an array that must not be empty, element by element.
func readList[T any](read func(jsontext.Value) (T, error)) func(jsontext.Value) ([]T, error) {
	return func(v jsontext.Value) ([]T, error) {
		values, err := elements(v)
		if err != nil {
			return nil, err
		}
		list := make([]T, len(values))
		for i, value := range values {
			if list[i], err = read(value); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
		}
		return list, nil
	}
}

// elements decodes an array that must not be empty. An empty array must be left out instead.
func elements(v jsontext.Value) ([]jsontext.Value, error) {
	if _, err := readKind("an array")(v); err != nil {
		return nil, err
	}
	var values []jsontext.Value
	if err := json.Unmarshal(v, &values); err != nil {
		return nil, Steady(err)
	}
	if len(values) == 0 {
		return nil, errors.New("empty; leave it out if there is none")
	}
	return values, nil
}

func readSigners(v jsontext.Value) ([]SignerInfo, error) {
	if _, err := readKind("an array")(v); err != nil {
		return nil, err
	}
	var signers []SignerInfo
	if err := json.Unmarshal(v, &signers, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("want a list of {alg, key_id}: %w", Steady(err))
	}
	if len(signers) == 0 || len(signers) > maxSigners {
		return nil, fmt.Errorf("names %d signers: want 1 to %d", len(signers), maxSigners)
	}
	seen := map[KeyID]bool{}
	for _, s := range signers {
		if !slices.Contains(Algorithms(), s.Algorithm) {
			return nil, fmt.Errorf("unknown algorithm %q: expected one of %s", Abbreviate(string(s.Algorithm)), list(Algorithms()))
		}
		if s.KeyID.IsZero() || seen[s.KeyID] {
			return nil, errors.New("a key id is missing or there twice")
		}
		seen[s.KeyID] = true
	}
	return signers, nil
}

const digestPrefix = "sha256:"

// Digest is a SHA-256 hash, written "sha256:" and 64 lower-case hexadecimal digits. The zero Digest means "none".
type Digest [sha256.Size]byte

// DigestOf hashes data.
func DigestOf(data []byte) Digest { return sha256.Sum256(data) }

// ParseDigest reads the written form. It accepts no other spelling of the same hash.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	hexadecimal, ok := strings.CutPrefix(text, digestPrefix)
	if !ok || len(hexadecimal) != hex.EncodedLen(len(d)) || strings.ToLower(hexadecimal) != hexadecimal {
		return d, fmt.Errorf("%q is not a digest: want %s and 64 lower-case hexadecimal digits", Abbreviate(text), digestPrefix)
	}
	if _, err := hex.Decode(d[:], []byte(hexadecimal)); err != nil {
		return Digest{}, fmt.Errorf("%q is not a digest: %w", text, err)
	}
	return d, nil
}

func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// Short is the start of the digest, for people. It does not identify anything.
func (d Digest) Short() string { return hex.EncodeToString(d[:6]) }

// IsZero reports whether d is "none".
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText implements encoding.TextMarshaler. Its error is nil.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Its errors are those of ParseDigest.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDigest(string(text))
	return err
}

// RecordIDFor makes a record id from words that identify what is recorded. The same words give the same id, so it is
// recorded once. The id has the time of the UUIDv7 in like, or the beginning of 1970 if like is not a UUIDv7.
func RecordIDFor(like string, words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	id := sum[:16]
	copy(id, make([]byte, 6))
	if CheckRecordID(like) == nil {
		if time, err := hex.DecodeString(like[:8] + like[9:13]); err == nil {
			copy(id, time)
		}
	}
	return formatID(id)
}

// formatID formats 16 bytes as a UUIDv7.
func formatID(id []byte) string {
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	h := hex.EncodeToString(id)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// idForm is the shape of a UUIDv7: x is a hexadecimal digit in lower case, v that of the variant.
const idForm = "xxxxxxxx-xxxx-7xxx-vxxx-xxxxxxxxxxxx"

// CheckRecordID returns an error if id is not a UUIDv7 in lower case.
func CheckRecordID(id string) error {
	wrong := len(id) != len(idForm)
	for i := 0; i < len(id) && !wrong; i++ {
		digits := idForm[i : i+1]
		switch digits {
		case "x":
			digits = "0123456789abcdef"
		case "v":
			digits = "89ab"
		}
		wrong = strings.IndexByte(digits, id[i]) < 0
	}
	if wrong {
		return fmt.Errorf("%q is not a UUIDv7 in lower case", Abbreviate(id))
	}
	return nil
}
