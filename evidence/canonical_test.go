package evidence

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"

	"jurat/internal/must"
)

// accepted are documents with their canonical form, by the rules of RFC 8785.
var accepted = []struct{ name, doc, form string }{
	{"white space", " \t\r\n{ \"a\" : [ 1 , 2 ] }\n ", `{"a":[1,2]}`},
	{"empty object", "{}", "{}"},
	{"empty array", " [ ] ", "[]"},
	{"empty name", `{"":1}`, `{"":1}`},
	{"scalar", "true", "true"},
	{"literals", `[null,true,false]`, `[null,true,false]`},
	{"nested order", `{"b":{"d":1,"c":2},"a":[{"z":1,"y":2}]}`, `{"a":[{"y":2,"z":1}],"b":{"c":2,"d":1}}`},

	// RFC 8785, section 3.2.3: names sort by UTF-16 code units, so U+1F600 (D83D DE00) before U+FB33.
	{"order of the RFC", `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",` +
		`"1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
		"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\"," +
			"\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"},
	{"order where UTF-8 and UTF-16 differ", "{\"\uffff\":1,\"\U00010000\":2,\"\ue000\":3}", "{\"\U00010000\":2,\"\ue000\":3,\"\uffff\":1}"},
	{"order of prefixes", `{"aa":1,"a":2,"":3}`, `{"":3,"a":2,"aa":1}`},
	{"order of digits", `{"10":1,"2":2,"1":3}`, `{"1":3,"10":1,"2":2}`},

	// Section 3.2.2.2: the two-letter escapes, lower-case \u00xx for the other control characters, nothing else.
	{"string of the RFC", `"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`, `"€$\u000f\nA'B\"\\\\\"/"`},
	{"short escapes", `"\u0008\u0009\u000a\u000c\u000d"`, `"\b\t\n\f\r"`},
	{"long escapes", `"\u0000\u000B\u001F"`, `"\u0000\u000b\u001f"`},
	{"not escaped", `"\u007f\u2028\u2029<>&\u0080"`, "\"\u007f\u2028\u2029<>&\u0080\""},
	{"pair of surrogates", `"\ud83d\ude00\uD834\uDD1E"`, `"😀𝄞"`},
	{"noncharacters", `"\uffff\ufffe\ufffd"`, "\"\uffff\ufffe\ufffd\""},
	{"a BOM inside", `"\ufeff"`, "\"\ufeff\""},

	// Unicode is not normalised.
	{"composed", `"caf\u00e9"`, "\"caf\u00e9\""},
	{"decomposed", `"cafe\u0301"`, "\"cafe\u0301\""},
	{"both as names", `{"e\u0301":1,"\u00e9":2}`, "{\"e\u0301\":1,\"\u00e9\":2}"},
	{"Angstrom and A with ring", `["\u212b","\u00c5"]`, "[\"\u212b\",\"\u00c5\"]"},

	// Section 3.2.2.3: numbers as ECMAScript writes them.
	{"zero", "[0,0.0,0e0,0e5,0E-5,0.000e+99]", "[0,0,0,0,0,0]"},
	{"numbers of the RFC", "[1E30,4.50,2e-3,0.000000000000000000000000001]", "[1e+30,4.5,0.002,1e-27]"},
	{"fraction and exponent", "[1.0,1e0,10e-1,-1.50,0.1e1,100E-2]", "[1,1,1,-1.5,1,1]"},
	{"to the exponent above", "[1e20,1e21,123456789e13]", "[100000000000000000000,1e+21,1.23456789e+21]"},
	{"to the exponent below", "[0.000001,0.0000001,1e-6,1e-7]", "[0.000001,1e-7,0.000001,1e-7]"},
	{"extremes", "[5e-324,1.7976931348623157e308,2.2250738585072014e-308,-5e-324]",
		"[5e-324,1.7976931348623157e+308,2.2250738585072014e-308,-5e-324]"},
	{"large whole numbers", "[9007199254740991,9007199254740992,9007199254740994,-9007199254740991]",
		"[9007199254740991,9007199254740992,9007199254740994,-9007199254740991]"},
	{"many digits that say nothing", "[1." + strings.Repeat("0", 1000) + ",0.5" + strings.Repeat("0", 1000) + "]", "[1,0.5]"},
	{"zeros before the exponent's digits", "1e" + strings.Repeat("0", 1000) + "1", "10"},
	{"zero to a great power", "0e" + strings.Repeat("9", 1000), "0"},
	{"fifteen digits", "[999999999999999,0.999999999999999]", "[999999999999999,0.999999999999999]"},
	{"deepest", strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)},
}

func TestCanonical(t *testing.T) {
	for _, test := range accepted {
		t.Run(test.name, func(t *testing.T) {
			form := must.Get(Canonical([]byte(test.doc)))(t)
			if string(form) != test.form {
				t.Errorf("form is %s\nwant    %s", form, test.form)
			}
			if again, err := Canonical(form); err != nil || !bytes.Equal(again, form) {
				t.Errorf("form of the form is %s, %v", again, err)
			}
		})
	}
}

// TestCanonicalOfRFC compares the example of RFC 8785, sections 3.2.2 to 3.2.4, with the bytes that the RFC prints. A
// double cannot hold the example's first number, so Canonical refuses it. With the nearest double in its place, the
// bytes are the RFC's.
func TestCanonicalOfRFC(t *testing.T) {
	const doc = `{
  "numbers": [NUMBER, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`
	const form = "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b3333333333333333332e33333333333333" +
		"2c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c75303030665c6e41274" +
		"25c225c5c5c5c5c222f227d"
	got, err := Canonical([]byte(strings.Replace(doc, "NUMBER", "333333333.3333333", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := hex.DecodeString(form); !bytes.Equal(got, want) {
		t.Errorf("form is %s\nwant    %s", got, want)
	}
	_, err = Canonical([]byte(strings.Replace(doc, "NUMBER", "333333333.33333329", 1)))
	wantSyntax(t, err, "/numbers/0", 16, "cannot hold exactly: 333333333.33333329 would become 333333333.3333333")
}

// refused are documents, each with the place of the error and the reason.
var refused = []struct {
	name, doc, pointer string
	offset             int64
	reason             string
}{
	{"duplicate key", `{"a":1,"b":{"c":1,"c":2}}`, "/b/c", 18, "twice"},
	{"duplicate key in escapes", `{"a":1,"\u0061":2}`, "/a", 7, "twice"},
	{"duplicate key at the top", `{"a":1,"a":1}`, "/a", 7, "twice"},
	{"2^53+1", `{"a":[0,9007199254740993]}`, "/a/1", 8, "9007199254740993 would become 9007199254740992"},
	{"2^53+1 below zero", `-9007199254740993`, "", 0, "cannot hold exactly"},
	{"2^60", `[1152921504606846976]`, "/0", 1, "would become 1152921504606847000"},
	{"1e400", `{"x":{"y":1e400}}`, "/x/y", 10, "outside the range"},
	{"-1e400", `[-1e400]`, "/0", 1, "outside the range"},
	{"1e-400", `[1e-400]`, "/0", 1, "would become 0"},
	{"half the least double", `[2e-324]`, "/0", 1, "cannot hold exactly"},
	{"just above the greatest", `[1.7976931348623159e308]`, "/0", 1, "outside the range"},
	{"-0", `{"a":-0}`, "/a", 5, "negative zero"},
	{"-0.0", `{"a":[-0.0]}`, "/a/0", 6, "negative zero"},
	{"-0e5", `-0e5`, "", 0, "negative zero"},
	{"a tenth with a long tail", `0.1000000000000000055511151231257827`, "", 0, "would become 0.1"},
	{"exponent beyond 64 bits", "[1e" + strings.Repeat("9", 1000) + "]", "/0", 1, "outside the range"},
	{"exponent beyond 64 bits below", "[1e-" + strings.Repeat("9", 1000) + "]", "/0", 1, "outside the range"},
	{"high surrogate alone", `{"a":"x\ud83dy"}`, "/a", 7, "surrogate"},
	{"low surrogate alone", `{"a":"\ude00"}`, "/a", 6, "surrogate"},
	{"surrogates the wrong way round", `["\ude00\ud83d"]`, "/0", 2, "surrogate"},
	{"surrogate in a name", `{"\ud800":1}`, "", 2, "surrogate"},
	{"surrogate in bytes", "[\"\xed\xa0\x80\"]", "/0", 2, "UTF-8"},
	{"invalid UTF-8", "{\"a\":\"b\xff\"}", "/a", 7, "UTF-8"},
	{"overlong UTF-8", "[\"\xc0\xaf\"]", "/0", 2, "UTF-8"},
	{"UTF-8 cut off", "[\"\xe2\x82\"]", "/0", 2, "UTF-8"},
	{"text after the value", "{} {}", "", 3, "text after the end"},
	{"comma after the value", "1,", "", 1, "text after the end"},
	{"a second number", "1 2", "", 2, "text after the end"},
	{"zero byte after the value", "{}\x00", "", 2, "text after the end"},
	{"no-break space after the value", "{}\u00a0", "", 2, "text after the end"},
	{"BOM", "\ufeff{}", "", 0, "invalid character"},
	{"empty", "", "", 0, "ends too early"},
	{"white space alone", " \n", "", 2, "ends too early"},
	{"cut off", `{"a":[1,`, "/a", 8, "ends too early"},
	{"cut off in a string", `{"a":"b`, "/a", 7, "ends too early"},
	{"comment", "{/**/}", "", 1, "invalid character"},
	{"comma too many", "[1,]", "", 2, "invalid character"},
	{"single quotes", "{'a':1}", "", 1, "invalid character"},
	{"plus", "[+1]", "/0", 1, "invalid character"},
	{"leading zero", "[01]", "", 2, "invalid character"},
	{"bare point", "[.5]", "/0", 1, "invalid character"},
	{"NaN", "[NaN]", "/0", 1, "invalid character"},
	{"raw line feed in a string", "[\"\n\"]", "/0", 2, "invalid character"},
	{"wrong escape", `["\x41"]`, "/0", 2, "escape"},
	{"name that is no string", `{1:2}`, "", 1, "name"},
	{"too deep", strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), strings.Repeat("/0", MaxDepth), MaxDepth, "nested deeper than 128"},
}

func TestCanonicalRefused(t *testing.T) {
	for _, test := range refused {
		t.Run(test.name, func(t *testing.T) {
			_, err := Canonical([]byte(test.doc))
			wantSyntax(t, err, test.pointer, test.offset, test.reason)
			if len(err.Error()) > 1200 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
		})
	}
}

func wantSyntax(t testing.TB, err error, pointer string, offset int64, reason string) {
	t.Helper()
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("error is %v, want a SyntaxError", err)
	}
	if syntax.Pointer != pointer || syntax.Offset != offset || !strings.Contains(syntax.Reason, reason) {
		t.Errorf("refused at %q, byte %d: %s\nwant       at %q, byte %d: … %s …",
			syntax.Pointer, syntax.Offset, syntax.Reason, pointer, offset, reason)
	}
}

// TestCanonicalHuge gives documents on which a careless parser works for minutes or runs out of stack or memory.
func TestCanonicalHuge(t *testing.T) {
	const million = 1_000_000
	zeros := strings.Repeat("0", million)
	for name, doc := range map[string]string{
		"digits":             "1" + strings.Repeat("1", million),
		"fraction":           "0." + zeros + "1",
		"exponent":           "1e1" + zeros,
		"fraction, exponent": "0." + zeros + "1e1000001",
		"arrays":             strings.Repeat("[", million),
		"objects":            strings.Repeat(`{"a":`, million),
		"unclosed string":    `"` + strings.Repeat(`\`, million),
		"many numbers":       "[" + strings.Repeat("1e400,", million/6),
		"too long":           `"` + strings.Repeat("a", MaxDocument) + `"`,
		"grows too long":     "[" + strings.Repeat("1e20,", MaxDocument/6) + "1]",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			form, err := Canonical([]byte(doc))
			if err == nil {
				t.Fatalf("accepted, with a form of %d bytes", len(form))
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
			t.Log(time.Since(start), err)
		})
	}
	longest := `"` + strings.Repeat("a", MaxDocument-2) + `"`
	if form, err := Canonical([]byte(longest)); err != nil || len(form) != MaxDocument {
		t.Errorf("a document of exactly MaxDocument: %d bytes, %v", len(form), err)
	}
}

// TestCanonicalAgrees compares Canonical with another implementation of RFC 8785 on random documents.
func TestCanonicalAgrees(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		doc := randomValue(random, 4)
		got, err := Canonical([]byte(doc))
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		want, err := jcs.Transform([]byte("[" + doc + "]")) // Transform accepts no scalar
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		if string(want) != "["+string(got)+"]" {
			t.Fatalf("%s\nform is %s\nwant    %s", doc, got, want)
		}
	}
}

// randomValue writes a JSON value with random white space, escapes and member order.
func randomValue(random *rand.Rand, depth int) string {
	space := []string{"", "", " ", "\n", "\t "}[random.IntN(5)]
	kind := random.IntN(7)
	if depth == 0 {
		kind %= 5
	}
	switch kind {
	case 0:
		return space + []string{"null", "true", "false"}[random.IntN(3)]
	case 1:
		return space + strconv.Itoa(random.IntN(1<<30)-1<<29) + space
	case 2:
		return space + strconv.FormatFloat(random.NormFloat64(), 'g', -1, 64)
	case 5:
		var parts []string
		for range random.IntN(5) {
			parts = append(parts, randomValue(random, depth-1))
		}
		return "[" + strings.Join(parts, ",") + space + "]"
	case 6:
		var parts []string
		for i := range random.IntN(6) {
			name := randomString(random)
			name = name[:len(name)-1] + strconv.Itoa(i) + `"` // no name twice
			parts = append(parts, name+space+":"+randomValue(random, depth-1))
		}
		return space + "{" + strings.Join(parts, ",") + "}"
	}
	return randomString(random) + space
}

func randomString(random *rand.Rand) string {
	pieces := []string{"a", "Z", "/", `\/`, `\\`, `\"`, `\n`, `\u000b`, `\u00e9`, "é", "e\u0301", "€", "😀", `\ud83d\ude00`,
		"\uffff", "\ue000", "<", "&", "\u2028", `\u007f`, "\u007f", "я"}
	var b strings.Builder
	b.WriteByte('"')
	for range random.IntN(6) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String() + `"`
}
