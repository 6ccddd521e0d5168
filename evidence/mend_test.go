package evidence

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/test/must"
)

// respelled returns a canonical file in other spellings, as programs and mail systems write them.
func respelled(t testing.TB, file []byte) map[string][]byte {
	t.Helper()
	doc := bytes.TrimSuffix(file, []byte("\n"))
	var indented, decoded = new(bytes.Buffer), any(nil)
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	must.Do(t, errors.Join(json.Indent(indented, doc, "", "  "), dec.Decode(&decoded)))
	crlf := bytes.ReplaceAll(indented.Bytes(), []byte("\n"), []byte("\r\n"))
	return map[string][]byte{
		"without a line feed":  doc,
		"two line feeds":       append(bytes.Clone(file), '\n'),
		"a carriage return":    append(bytes.Clone(doc), "\r\n"...),
		"a byte order mark":    append([]byte("\ufeff"), file...),
		"white space before":   append([]byte(" \n\t"), file...),
		"indented":             append(bytes.Clone(indented.Bytes()), '\n'),
		"indented, with CRLF":  append(crlf, "\r\n"...),
		"with a mark and CRLF": append([]byte("\ufeff"), crlf...),
		"members in reverse":   spelled(decoded, slices.Reverse[[]string], `":"`, ""),
		"members in any order": spelled(decoded, shuffled, `": "`, "\n "),
		"every escape there is": bytes.ReplaceAll(spelled(decoded, slices.Reverse[[]string], `":"`, ""), []byte("a"),
			[]byte(`\u0061`)),
	}
}

func shuffled(names []string) {
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
}

// spelled writes a decoded document with its members in the given order.
func spelled(value any, order func([]string), colon, space string) []byte {
	colon = strings.Trim(colon, `"`)
	switch value := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(value))
		order(names)
		var parts []string
		for _, name := range names {
			parts = append(parts, string(quote(name))+colon+string(spelled(value[name], order, colon, space)))
		}
		return []byte("{" + space + strings.Join(parts, ","+space) + "}")
	case []any:
		var parts []string
		for _, item := range value {
			parts = append(parts, string(spelled(item, order, colon, space)))
		}
		return []byte("[" + strings.Join(parts, space+","+space) + "]")
	}
	if number, is := value.(json.Number); is {
		return []byte(number)
	}
	return marshal(value)
}

// TestRespelledRecord: Read accepts a record in another spelling, reports that it was mended, and returns the same
// record with the same digest.
func TestRespelledRecord(t *testing.T) {
	r := richRecord(t)
	file := marshalRecord(t, r)
	_, mended, err := Read(file)
	must.Hold(t, err == nil && !mended, "the file as it was written: mended %v, %v", mended, err)
	for name, spelling := range respelled(t, file) {
		t.Run(name, func(t *testing.T) {
			must.Refuse(t, "", "Open accepts it, but Open must be strict")(Open(spelling))
			got, mended, err := Read(spelling)
			must.Need(t, err == nil && mended, "mended %v, %v", mended, err)
			again := marshalRecord(t, got)
			must.Hold(t, bytes.Equal(again, file), "it is written as\n%s\nwant\n%s", again, file)
			must.Hold(t, BeginsAsRecord(spelling[:min(len(spelling), 64)]) && !BeginsAsBundle(spelling), "it is not recognised as a record by its first bytes")
			form, mended, err := Mend(spelling)
			must.Hold(t, err == nil && mended && bytes.Equal(form, file), "Mend: %v, %v", mended, err)
		})
	}
}

// TestRespelledBundle checks the same for bundles, read whole and one byte at a time.
func TestRespelledBundle(t *testing.T) {
	b := testBundle(t)
	for name, bundle := range map[string]*Bundle{"": b, "empty, ": {}, "without checkpoint, ": unlogged(t, b)} {
		file := marshalBundle(t, bundle)
		_, mended, err := ReadWholeBundle(file)
		must.Hold(t, err == nil && !mended, "%sthe file as it was written: mended %v, %v", name, mended, err)
		for spelling, doc := range respelled(t, file) {
			t.Run(name+spelling, func(t *testing.T) {
				must.Refuse(t, "", "ParseBundle accepts it, but ParseBundle must be strict")(ParseBundle(doc))
				must.Hold(t, BeginsAsBundle(doc) && !BeginsAsRecord(doc), "it is not recognised as a bundle by its first bytes")
				got, mended, err := ReadWholeBundle(doc)
				must.Need(t, err == nil && mended, "mended %v, %v", mended, err)
				again := marshalBundle(t, got)
				must.Hold(t, bytes.Equal(again, file), "it is written as\n%s\nwant\n%s", again, file)
				slow, err := ReadBundle(iotest.OneByteReader(bytes.NewReader(doc)))
				if err == nil {
					err = drain(slow)
				}
				behind := bytes.Index(doc, []byte("records")) < bytes.Index(doc, []byte("checkpoint\"")) || bytes.Contains(doc, []byte(`\u0061`))
				must.Hold(t, err == nil || (behind && errors.Is(err, ErrBehind)), "read once: %v", err)
			})
		}
	}
}

func unlogged(t *testing.T, b *Bundle) *Bundle {
	t.Helper()
	bare := new(Bundle)
	for _, r := range b.Records {
		r := *r
		r.Log = nil
		bare.Records = append(bare.Records, &r)
	}
	return bare
}

func drain(b *BundleReader) error {
	for {
		raw, err := b.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := raw.Open()
		if err == nil {
			err = b.Take(raw.Index, r)
		}
		if err != nil {
			return err
		}
	}
}

// TestNoOtherDocument: Read refuses ambiguous documents and documents that are not records. The error gives the place.
func TestNoOtherDocument(t *testing.T) {
	file := string(marshalRecord(t, richRecord(t)))
	indented := new(bytes.Buffer)
	must.Do(t, json.Indent(indented, []byte(file), "", " "))
	replace := func(old, with string) string {
		must.Need(t, strings.Contains(indented.String(), old), "the record has no %s", old)
		return strings.Replace(indented.String(), old, with, 1)
	}
	for name, test := range map[string]struct{ file, want string }{
		"a member twice":          {replace(`"timestamps":`, `"digest": 1, "timestamps":`), "twice"},
		"a member twice, escaped": {replace(`"schema":`, `"\u0073chema": "x", "schema":`), "twice"},
		"half a surrogate":        {replace(`"prompt": "`, `"prompt": "\ud800`), "at /payload/prompt"},
		"a rounded number":        {replace(`"parameters": {`, `"parameters": {"n": 9007199254740993,`), "at /payload/parameters/n: number that a double cannot hold exactly"},
		"negative zero":           {replace(`"parameters": {`, `"parameters": {"n": -0.0,`), "negative zero"},
		"another text after it":   {indented.String() + "{}", "text after the end"},
		"a mark in the middle":    {replace(`"payload":`, "\ufeff\"payload\":"), "invalid character"},
		"a comment":               {replace(`"payload":`, "/* x */ \"payload\":"), "invalid character"},
		"another payload":         {replace(`"agent_id": "`, `"agent_id": "x`), "digest"},
		"an unknown member":       {replace(`"payload":`, `"more": 1, "payload":`), "/more"},
		"null for nothing":        {replace(`"payload":`, `"payload": null, "x":`), ""},
		"cut off":                 {indented.String()[:indented.Len()/2], "ends too early"},
		"nothing":                 {"", "ends too early"},
	} {
		_, _, err := Read([]byte(test.file))
		must.Hold(t, err != nil && strings.Contains(err.Error(), test.want), "%s: error is %v, want … %s …", name, err, test.want)
	}
	_, _, err := Read([]byte("\ufeff" + replace(`"parameters": {`, `"parameters": {"n": 1e400,`)))
	var syntax *SyntaxError
	at := int64(strings.Index("\ufeff"+replace(`"parameters": {`, `"parameters": {"n": 1e400,`), "1e400"))
	must.Hold(t, errors.As(err, &syntax) && syntax.Offset == at, "%v, want byte %d", err, at)
	_, _, err = Read([]byte(replace(`"timestamp": "`, `"timestamp": "x`)))
	must.Hold(t, err != nil, "a record with an invalid time opens")
}

// TestFuzzySpelling: white space between the tokens of a bundle does not change the bundle.
func TestFuzzySpelling(t *testing.T) {
	file := marshalBundle(t, testBundle(t))
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var spaced bytes.Buffer
		inString, escaped := false, false
		for _, c := range file {
			if !inString && random.IntN(3) == 0 {
				spaced.WriteString([]string{" ", "\n", "\r\n", "\t \t"}[random.IntN(4)])
			}
			if outside := c == ':' || c == ',' || strings.IndexByte("{}[]", c) >= 0; inString || outside || c == '"' || c == '\n' {
				spaced.WriteByte(c)
			} else {
				spaced.Truncate(len(bytes.TrimRight(spaced.Bytes(), whiteSpace))) // in the middle of a number
				spaced.WriteByte(c)
			}
			switch {
			case escaped:
				escaped = false
			case inString && c == '\\':
				escaped = true
			case c == '"':
				inString = !inString
			}
		}
		got, _, err := ReadWholeBundle(spaced.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, spaced.Bytes())
		}
		diff := cmp.Diff(string(file), string(marshalBundle(t, got)))
		must.Need(t, diff == "", "%v", diff)
	}
}

// TestBundleChangedMeanwhile: the reader must find the part that it read ahead unchanged when it gets there.
func TestBundleChangedMeanwhile(t *testing.T) {
	file := marshalBundle(t, testBundle(t))
	b := must.Get(ReadBundle(bytes.NewReader(file)))(t)
	b.tail = []byte(`,"x":1}`)
	must.Say(t, drain(b), "changed")
}

// TestSpaceIsNotKept: the reader skips white space, also many MiB of it. Other text before and after the records is limited.
func TestSpaceIsNotKept(t *testing.T) {
	file := string(marshalBundle(t, testBundle(t)))
	many := func(text string) io.Reader { return io.LimitReader(repeated(text), MaxDocument+1<<20) }
	b := must.Get(ReadBundle(io.MultiReader(strings.NewReader(strings.Replace(file, "}]}\n", "}]", 1)), many(" "), strings.NewReader("}"), many("\n"))))(t)
	must.Say(t, drain(b), "after the records", "many MiB before the brace")
	b, err := ReadBundle(io.MultiReader(many(" "), strings.NewReader(strings.Replace(file, "}]}\n", "}", 1)), many("\n"), strings.NewReader("]}"), many("\n")))
	if err == nil {
		err = drain(b)
	}
	must.Hold(t, err == nil && b.Mended(), "many MiB of white space: %v", err)
}

// repeated returns an endless reader of text.
func repeated(text string) io.Reader {
	read, write := io.Pipe()
	go func() {
		w := bufio.NewWriterSize(write, 1<<20)
		for {
			if _, err := fmt.Fprint(w, strings.Repeat(text, 1<<16)); err != nil {
				return
			}
		}
	}()
	return read
}

// TestCheckEncoding: the error names UTF-16 for a text in UTF-16, and for nothing else.
func TestCheckEncoding(t *testing.T) {
	for _, wide := range []string{"\xff\xfe{\x00", "\xfe\xff\x00{", "{\x00\"\x00", "\x00{\x00\"", "\r\x00\n\x00", "\xff\xfe{\x00\"\x00"} {
		_, err := ParseDraft([]byte(wide))
		for _, err := range []error{CheckEncoding([]byte(wide)), err} {
			var syntax *SyntaxError
			must.Hold(t, errors.As(err, &syntax) && strings.Contains(err.Error(), "UTF-16"), "%q: %v", wide, err)
		}
	}
	for _, other := range []string{"", "{", "{}", "\ufeff{}", "\x00\x00", "PK\x03\x04", "0\x82", "\xff\xff", "jurat\n", "\x00\n\ufeff{", "\xfe\xff{\"record", "{\x00{\""} {
		must.Want(t, CheckEncoding([]byte(other)), nil, other)
	}
}
