package evidence

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"jurat/evidence/jsonform"
	"jurat/internal/test/must"
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
			must.Equal(t, string(form), test.form)
			again, err := Canonical(form)
			must.Hold(t, err == nil && bytes.Equal(again, form), "form of the form is %s, %v", again, err)
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
	got := must.Get(Canonical([]byte(strings.Replace(doc, "NUMBER", "333333333.3333333", 1))))(t)
	want, _ := hex.DecodeString(form)
	must.Hold(t, bytes.Equal(got, want), "form is %s\nwant    %s", got, want)
	_, err := Canonical([]byte(strings.Replace(doc, "NUMBER", "333333333.33333329", 1)))
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
			must.Hold(t, len(err.Error()) <= 1200, "the error is %d bytes long", len(err.Error()))
		})
	}
}

func wantSyntax(t testing.TB, err error, pointer string, offset int64, reason string) {
	t.Helper()
	var syntax *SyntaxError
	must.Need(t, errors.As(err, &syntax), "error is %v, want a SyntaxError", err)
	must.Hold(t, syntax.Pointer == pointer && syntax.Offset == offset && strings.Contains(syntax.Reason, reason),
		"refused at %q, byte %d: %s\nwant       at %q, byte %d: … %s …", syntax.Pointer, syntax.Offset, syntax.Reason, pointer, offset, reason)
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
			must.Need(t, err != nil, "accepted, with a form of %d bytes", len(form))
			must.Hold(t, len(err.Error()) <= 1000, "the error is %d bytes long", len(err.Error()))
			t.Log(time.Since(start), err)
		})
	}
	longest := `"` + strings.Repeat("a", MaxDocument-2) + `"`
	form, err := Canonical([]byte(longest))
	must.Hold(t, err == nil && len(form) == MaxDocument, "a document of exactly MaxDocument: %d bytes, %v", len(form), err)
}

// TestCanonicalAgrees compares Canonical with another implementation of RFC 8785 on random documents.
func TestCanonicalAgrees(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		doc := randomValue(random, 4)
		got, err := Canonical([]byte(doc))
		must.Need(t, err == nil, "%s: %v", doc, err)
		want, err := jcs.Transform([]byte("[" + doc + "]")) // Transform accepts no scalar
		must.Need(t, err == nil, "%s: %v", doc, err)
		must.Need(t, string(want) == "["+string(got)+"]", "%s\nform is %s\nwant    %s", doc, got, want)
		again, err := Canonical(got)
		must.Need(t, err == nil && bytes.Equal(again, got), "%s: the form of the form is %s, %v", got, again, err)
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

// TestDroppedMembers removes every member of the record's own form. Only parts that may be withheld may be missing.
func TestDroppedMembers(t *testing.T) {
	r := richRecord(t)
	var whole any
	must.Do(t, json.Unmarshal(marshalRecord(t, r), &whole))
	var opens []string
	for _, pointer := range memberPointers(whole, "") {
		if strings.HasPrefix(pointer, "/disclosures/") && strings.Contains(pointer, "/value/") {
			continue // the value's own members: a changed value, which TestFlippedRecord covers
		}
		opened, err := Open(dropped(t, whole, pointer))
		if err != nil {
			continue
		}
		opens = append(opens, pointer)
		must.Want(t, check(t, opened), nil, "without", pointer)
	}
	slices.Sort(opens)
	want := []string{"/certificates", "/disclosures", "/log", "/log/checkpoint"}
	must.Equal(t, cmp.Diff(want, opens), "")
}

// memberPointers lists every object member under a value.
func memberPointers(value any, at string) []string {
	var pointers []string
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			pointer := at + "/" + escape.Replace(name)
			pointers = append(append(pointers, pointer), memberPointers(inner, pointer)...)
		}
	case []any:
		for i, inner := range v {
			pointers = append(pointers, memberPointers(inner, fmt.Sprint(at, "/", i))...)
		}
	}
	return pointers
}

// dropped returns the file without the member at the pointer, still canonical.
func dropped(t *testing.T, whole any, pointer string) []byte {
	t.Helper()
	doc := must.Get(json.Marshal(dropAt(whole, "", pointer)))(t)
	form := must.Get(Canonical(doc))(t)
	return append(form, '\n')
}

func dropAt(value any, at, drop string) any {
	switch v := value.(type) {
	case map[string]any:
		kept := maps.Clone(v)
		for name, inner := range v {
			pointer := at + "/" + escape.Replace(name)
			kept[name] = dropAt(inner, pointer, drop)
			if pointer == drop {
				delete(kept, name)
			}
		}
		return kept
	case []any:
		kept := slices.Clone(v)
		for i, inner := range v {
			kept[i] = dropAt(inner, fmt.Sprint(at, "/", i), drop)
		}
		return kept
	}
	return value
}

// TestSecondForms writes the same record in other forms. Open must refuse each of them.
func TestSecondForms(t *testing.T) {
	file := string(marshalRecord(t, richRecord(t)))
	for name, other := range map[string]string{
		"no line feed":           strings.TrimSuffix(file, "\n"),
		"two line feeds":         file + "\n",
		"carriage return":        strings.TrimSuffix(file, "\n") + "\r\n",
		"BOM":                    "\ufeff" + file,
		"space":                  strings.Replace(file, `"digest":`, `"digest": `, 1),
		"space in the payload":   strings.Replace(file, `"agent_id":`, `"agent_id": `, 1),
		"null certificates":      strings.Replace(file, `"certificates":["YSBjZXJ0aWZpY2F0ZQ=="]`, `"certificates":null`, 1),
		"empty certificates":     strings.Replace(file, `"certificates":["YSBjZXJ0aWZpY2F0ZQ=="]`, `"certificates":[]`, 1),
		"empty certificate":      strings.Replace(file, `"certificates":["YSBjZXJ0aWZpY2F0ZQ=="]`, `"certificates":[""]`, 1),
		"kind after the token":   strings.Replace(file, `{"kind":"rfc3161","token":"b25lIHRva2Vu"}`, `{"token":"b25lIHRva2Vu","kind":"rfc3161"}`, 1),
		"loose bits in base64":   strings.Replace(file, "YSBjZXJ0aWZpY2F0ZQ==", "YSBjZXJ0aWZpY2F0ZR==", 1),
		"base64 without padding": strings.Replace(file, "YSBjZXJ0aWZpY2F0ZQ==", "YSBjZXJ0aWZpY2F0ZQ", 1),
		"line feed in base64":    strings.Replace(file, "YSBjZXJ0aWZpY2F0ZQ==", `YSBj\nZXJ0aWZpY2F0ZQ==`, 1),
		"escape in base64":       strings.Replace(file, "YSBjZXJ0aWZpY2F0ZQ==", `\u0059SBjZXJ0aWZpY2F0ZQ==`, 1),
		"digest in upper case":   strings.Replace(file, `"digest":"sha256:`, `"digest":"SHA256:`, 1),
		"index with fraction":    strings.Replace(file, `"index":7`, `"index":7.0`, 1),
		"index with exponent":    strings.Replace(file, `"index":7`, `"index":7e0`, 1),
		"index in quotes":        strings.Replace(file, `"index":7`, `"index":"7"`, 1),
		"index below zero":       strings.Replace(file, `"index":7`, `"index":-7`, 1),
		"index beyond doubles":   strings.Replace(file, `"index":7`, `"index":9007199254740993`, 1),
		"empty checkpoint":       strings.Replace(file, `"index":7`, `"checkpoint":"","index":7`, 1),
		"checkpoint twice":       strings.Replace(file, `"index":7`, `"checkpoint":"x","index":7`, 1),
		"unknown member":         strings.Replace(file, `"digest":`, `"dig":1,"digest":`, 1),
		"unknown member at last": strings.TrimSuffix(file, "}\n") + `,"x":1}` + "\n",
		"name in another case":   strings.Replace(file, `"timestamps":`, `"Timestamps":`, 1),
		"null log":               strings.Replace(strings.Replace(file, `"log":{`, `"log":null,"x":{`, 1), `"x":{`, `"log":{`, 1),
		"payload as a string":    strings.Replace(file, `"payload":{`, `"payload":"x","payloa":{`, 1),
	} {
		must.Hold(t, other != file, "%s: the change does not apply to the file", name)
		must.Refuse(t, "", name)(Open([]byte(other)))
	}
}

// TestParts breaks each rule about the parts around the payload. Open must refuse the file, and Marshal must refuse the
// record.
func TestParts(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(*Record)
		want   string
	}{
		"signature missing":         {func(r *Record) { r.Signatures = r.Signatures[:2] }, "names 3 signers, the record has 2"},
		"signatures all gone":       {func(r *Record) { r.Signatures = nil }, "names 3 signers, the record has 0"},
		"signature too many":        {func(r *Record) { r.Signatures = append(r.Signatures, []byte{1}) }, "names 3 signers, the record has 4"},
		"signature empty":           {func(r *Record) { r.Signatures = [][]byte{{1}, {}, {1}} }, "signature 1 has 0 bytes"},
		"signature too long":        {func(r *Record) { r.Signatures[2] = make([]byte, maxSignature+1) }, "signature 2 has 8193 bytes"},
		"digest":                    {func(r *Record) { r.Digest[0] ^= 1 }, "digest: the payload's is"},
		"kind of time stamp":        {func(r *Record) { r.Timestamps[1].Kind = "rfc5544" }, `timestamp 1: unknown kind "rfc5544": expected rfc3161`},
		"token empty":               {func(r *Record) { r.Timestamps[0].Token = nil }, "timestamp 0: token of 0 bytes"},
		"token too long":            {func(r *Record) { r.Timestamps[0].Token = make([]byte, MaxToken+1) }, "timestamp 0: token of 65537 bytes"},
		"anchor without checkpoint": {func(r *Record) { r.Log.Checkpoint, r.Log.Anchors = "", []Anchor{anchorBy(1)} }, "stamped checkpoints, but no checkpoint"},
		"anchor without its own":    {func(r *Record) { r.Log.Anchors = []Anchor{{Timestamps: anchorBy(1).Timestamps}} }, "anchors: 0: the checkpoint or its time stamps are missing"},
		"anchor without stamps":     {func(r *Record) { r.Log.Anchors = []Anchor{{Checkpoint: "c"}} }, "its time stamps are missing"},
		"an empty generation":       {func(r *Record) { r.Log.Anchors = []Anchor{{Checkpoint: "c", Timestamps: [][][]byte{{{1}}, {}}}} }, "a generation without a token"},
		"a token twice":             {func(r *Record) { r.Log.Anchors = []Anchor{{Checkpoint: "c", Timestamps: [][][]byte{{{1}}, {{1}}}}} }, "the same token twice"},
		"a short node":              {func(r *Record) { a := anchorBy(1); a.Consistency = [][]byte{{1}}; r.Log.Anchors = []Anchor{a} }, "consistency: want at most"},
		"too many nodes": {func(r *Record) {
			a := anchorBy(1)
			a.Consistency = slices.Repeat([][]byte{make([]byte, 32)}, 65)
			r.Log.Anchors = []Anchor{a}
		}, "consistency: want at most"},
		"too many anchor tokens": {func(r *Record) { r.Log.Anchors = []Anchor{anchorBy(MaxAnchorTokens), anchorBy(1)} }, "anchors: 1025 tokens"},
		"too long anchors": {func(r *Record) {
			r.Log.Anchors = []Anchor{{Checkpoint: strings.Repeat("c", MaxAnchorBytes), Timestamps: anchorBy(1).Timestamps}}
		}, "want at most 1024 and 8388608"},
		"index":                 {func(r *Record) { r.Log.Index = -1 }, "log: index or proof out of range"},
		"counts":                {func(r *Record) { r.Log.ChainSeq = 0 }, "log: the counts are not those"},
		"index too great":       {func(r *Record) { r.Log.Index = 1 << 53 }, "log: index or proof out of range"},
		"no count":              {func(r *Record) { r.Log.ChainSeq = 0 }, "log: the counts are not those"},
		"a count of cases":      {func(r *Record) { r.Log.CaseSeq = 1 }, "log: the counts are not those"},
		"proof too long":        {func(r *Record) { r.Log.Proof = make([][]byte, 64) }, "log: index or proof out of range"},
		"node too short":        {func(r *Record) { r.Log.Proof[1] = make([]byte, 31) }, "log: proof node 1 has 31 bytes"},
		"salt too short":        {func(r *Record) { r.Disclosures[0].Salt = make([]byte, 31) }, "a salt does not have 32 bytes"},
		"disclosures unordered": {func(r *Record) { slices.Reverse(r.Disclosures) }, "not sorted by pointer"},
		"disclosure twice":      {func(r *Record) { r.Disclosures[1] = r.Disclosures[0] }, "not sorted by pointer"},
		"disclosure of nothing": {func(r *Record) { r.Disclosures[3].Pointer = "/zzz" }, `"/zzz" is not sealed apart`},
		"certificate empty":     {func(r *Record) { r.Certificates[0] = nil }, "certificate 0 has 0 bytes"},
		"certificate too long":  {func(r *Record) { r.Certificates[0] = make([]byte, maxCertificate+1) }, "certificate 0 has 65537 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := richRecord(t)
			test.damage(r)
			form := recordForm{Payload: r.canonical, Digest: r.Digest, Signatures: r.Signatures, Timestamps: r.Timestamps, Log: r.Log,
				Disclosures: r.Disclosures, Certificates: r.Certificates}
			file := must.Get(jsonform.Encode(&form))(t)
			must.Refuse(t, test.want, "opening: error is")(Open(append(file, '\n')))
			must.Refuse(t, test.want, "marshalling: error is")(r.Marshal())
		})
	}
	must.Refuse(t, "", "Marshal wrote an empty record")(new(Record).Marshal())
}

// anchorBy is an anchor of so many tokens.
func anchorBy(tokens int) Anchor {
	a := Anchor{Checkpoint: "c", Timestamps: [][][]byte{{}}}
	for n := range tokens {
		a.Timestamps[0] = append(a.Timestamps[0], []byte{byte(n), byte(n >> 8)})
	}
	return a
}
