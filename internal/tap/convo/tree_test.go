package convo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/test/must"
)

// An error names the place of a value as an editor and a JSON pointer do, whatever stands before it.
func TestErrorNamesThePlace(t *testing.T) {
	root := must.Get(Parse("f.json", []byte("{\n  \"a/b~c\": [1, \"q\\\\\\\"\" ,\n    {\"x\": null}]}")))(t)
	list := root.Get("a/b~c")
	for _, c := range []struct {
		n    *Node
		want string
	}{
		{root, "f.json:1:1: at the document (byte 0): bad"},
		{list.Members[0], "f.json:2:13: at /a~1b~0c/0 (byte 14): bad"},
		{list.Members[1], "f.json:2:16: at /a~1b~0c/1 (byte 17): bad"},
		{list.Members[2].Members[0], "f.json:3:11: at /a~1b~0c/2/x (byte 37): bad"},
	} {
		got := c.n.Errorf("bad").Error()
		must.Hold(t, got == c.want, "%s, want %s", got, c.want)
		at := root.At(c.n.Offset)
		must.Hold(t, at == c.n, "at byte %d stands %s", c.n.Offset, at.Pointer())
	}
	from, to := list.Lines()
	must.Hold(t, from == 2 && to == 3, "lines %d to %d", from, to)
}

func TestWithoutACanonicalFormIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		" \n":                        "f.json: empty",
		"{\"a\":1,\n\"a\":2}":        "f.json:2:1: at /a",
		strings.Repeat("[", 100_000): "f.json:1:",
		"\"" + strings.Repeat("x", MaxDocument) + "\"": "f.json: longer than 16 MiB",
	} {
		_, err := Parse("f.json", []byte(text))
		var at *Error
		must.Hold(t, errors.As(err, &at) && strings.HasPrefix(err.Error(), want), "%.20q: %v, want %s", text, err, want)
	}
}

// Values of a file that are put together read as one, and errors about them name their places in the file.
func TestPutTogether(t *testing.T) {
	d := NewDocument("f.jsonl", []byte("{\"a\":1}\n[true]"))
	one := must.Get(d.Parse(0, 7, "/0"))(t)
	two := must.Get(d.Parse(8, 14, "/1"))(t)
	whole := d.Object(d.Whole(), Member{"one", one}, Member{"two", two})
	must.Equal(t, string(whole.Raw()), `{"one":{"a":1},"two":[true]}`)
	must.Equal(t, two.Members[0].Errorf("bad").Error(), "f.jsonl:2:2: at /two/0 (byte 9): bad")
	must.Equal(t, string(d.List([]*Node{one, two}).Raw()), `[{"a":1},[true]]`)
	_, err := d.Parse(8, 13, "/1")
	must.Hold(t, err != nil && strings.HasPrefix(err.Error(), "f.jsonl:2:"), "a value that does not end: %v", err)
}

// TestLookIsBounded: an object with many more members than a file of conversations has is not looked through to its end.
func TestLookIsBounded(t *testing.T) {
	for members, refused := range map[int]bool{900: false, 1100: true} {
		var object strings.Builder
		for n := range members {
			fmt.Fprintf(&object, `"%d":1,`, n)
		}
		text := "{" + object.String() + `"last":2}`
		_, err := NewDocument("f.json", []byte(text)).Look(0, int64(len(text)), "", 10)
		must.Hold(t, (err != nil) == refused, "%d members: %v", members, err)
	}
}

func TestReadUsage(t *testing.T) {
	for _, test := range []struct {
		name, reported string
		want           Usage
		known          bool
	}{
		{"chat", `{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":4}}`, Usage{Input: 10, Cached: 4, Output: 3}, true},
		{"chat, reasoning apart", `{"prompt_tokens":10,"completion_tokens":3,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":5}}`, Usage{Input: 10, Output: 8, Reasoning: 5}, true},
		{"responses", `{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":3}`, Usage{Input: 10, Cached: 4, Output: 3}, true},
		{"messages", `{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":3}`, Usage{Input: 16, Cached: 4, Output: 3, OtherPrice: true}, true},
		{"gemini", `{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2}`, Usage{Input: 10, Output: 5, Reasoning: 2}, true},
		{"Codex CLI", `{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2,"reasoning_output_tokens":1,"total_tokens":12}`, Usage{Input: 10, Cached: 4, Output: 2, Reasoning: 1}, true},
		{"promptfoo", `{"total":12,"prompt":10,"completion":2}`, Usage{Input: 10, Output: 2}, true},
		{"unknown words", `{"words":10}`, Usage{}, false},
		{"no numbers", `{"prompt_tokens":"many"}`, Usage{}, false},
		{"fewer than none", `{"prompt_tokens":-1,"completion_tokens":3}`, Usage{}, false},
		{"more from the cache than there were", `{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}`, Usage{}, false},
		{"more than any call has", `{"input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807}`, Usage{}, false},
		{"no object", `[{"prompt_tokens":1}]`, Usage{}, false},
		{"nothing", ``, Usage{}, false},
	} {
		got, known := ReadUsage([]byte(test.reported))
		must.Hold(t, got == test.want && known == test.known, "%s: %+v, %v; want %+v, %v", test.name, got, known, test.want, test.known)
	}
}

// TestOtherPrices: what providers count beside text at the standard tier is told, and what cannot be told apart is, too.
func TestOtherPrices(t *testing.T) {
	for reported, want := range map[string]Usage{
		`{"input_tokens":10,"cache_creation_input_tokens":1000,"cache_read_input_tokens":2000,"output_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":600,"ephemeral_1h_input_tokens":400}}`: {Input: 3010, Cached: 2000, Output: 50, Written: 600, WrittenHour: 400},
		`{"input_tokens":3,"cache_creation_input_tokens":100,"cache_read_input_tokens":200,"output_tokens":50}`:                                                                                       {Input: 303, Cached: 200, Output: 50, OtherPrice: true},
		`{"input_tokens":3,"cache_creation_input_tokens":100,"output_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":99}}`:                                                                    {Input: 103, Output: 5, Written: 99, OtherPrice: true},
		`{"input_tokens":3,"cache_read_input_tokens":0,"output_tokens":5,"cache_creation":"none"}`:                                                                                                    {Input: 3, Output: 5, OtherPrice: true},
		`{"input_tokens":3,"cache_read_input_tokens":0,"output_tokens":5,"service_tier":"batch"}`:                                                                                                     {Input: 3, Output: 5, OtherPrice: true},
		`{"input_tokens":3,"cache_read_input_tokens":0,"output_tokens":5,"service_tier":"standard"}`:                                                                                                  {Input: 3, Output: 5},
		`{"input_tokens":90,"input_tokens_details":{"cached_tokens":10,"cache_write_tokens":70},"output_tokens":5}`:                                                                                   {Input: 90, Cached: 10, Output: 5, Written: 70},
		`{"prompt_tokens":90,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":7},"completion_tokens":5}`:                                                                                     {Input: 90, Output: 5, OtherPrice: true},
		`{"prompt_tokens":90,"completion_tokens":5,"completion_tokens_details":{"audio_tokens":7}}`:                                                                                                   {Input: 90, Output: 5, OtherPrice: true},
		`{"prompt_tokens":90,"prompt_tokens_details":{"audio_tokens":0},"completion_tokens":5,"completion_tokens_details":{"audio_tokens":0}}`:                                                        {Input: 90, Output: 5},
		`{"promptTokenCount":9,"candidatesTokenCount":5,"promptTokensDetails":[{"modality":"TEXT","tokenCount":4},{"modality":"AUDIO","tokenCount":5}]}`:                                              {Input: 9, Output: 5, OtherPrice: true},
		`{"promptTokenCount":9,"candidatesTokenCount":5,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]}`:                                                                                  {Input: 9, Output: 5},
	} {
		got, known := ReadUsage(jsontext.Value(reported))
		must.Hold(t, known && got == want, "%s: %+v", reported, got)
	}
}

// TestLenientErrors: a mistake in what was recorded has its place, and no line, for which all before it would be read again for each of many mistakes.
func TestLenientErrors(t *testing.T) {
	n := must.Get(ReadLenient([]byte("[\n\n\"ten million letters\", 0]")))(t)
	var mistake *Error
	err := n.Members[1].Errorf("no part")
	must.Hold(t, errors.As(err, &mistake) && mistake.Line == 0 && mistake.Column == 0 && mistake.Pointer == "/1", "%+v", err)
}
