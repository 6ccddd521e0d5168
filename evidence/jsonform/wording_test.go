package jsonform_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/evidence/jsonform"
	"jurat/internal/test/must"
)

var within = jsonform.Bounds{Size: 1 << 10, Depth: 4}

// TestSteady: an error of the JSON library is worded without Go types, has the same text in every process, and still
// wraps the library's error.
func TestSteady(t *testing.T) {
	type inner struct {
		N int8 `json:"n"`
	}
	type form struct {
		A []string         `json:"a"`
		B map[string]inner `json:"b"`
		C string           `json:"c"`
		D bool             `json:"d"`
		E float64          `json:"e"`
		F []byte           `json:"f"`
	}
	for doc, want := range map[string]string{
		`7`:                   "the document: want an object, found a number",
		`{"x":1}`:             "/x: unknown member",
		`{"a":"x"}`:           "/a: want an array, found a string",
		`{"b":{"y":{"z":1}}}`: "/b/y/z: unknown member",
		`{"b":{"y":[]}}`:      "/b/y: want an object, found an array",
		`{"c":false}`:         "/c: want a string, found a boolean",
		`{"d":0}`:             "/d: want a boolean, found a number",
		`{"e":{}}`:            "/e: want a number, found an object",
		`{"f":[]}`:            "/f: want a string, found an array",
	} {
		refused := json.Unmarshal([]byte(doc), new(form), json.RejectUnknownMembers(true))
		said := jsonform.Steady(fmt.Errorf("reading it: %w", refused))
		must.Hold(t, said.Error() == "reading it: "+want && errors.Is(said, refused), "%s: %s, want %s", doc, said, want)
	}
	for _, doc := range []string{`{"b":{"y":{"n":1000}}}`, `{"f":"%"}`, `{"a":["x"`, `{"c":"x"} 7`} {
		refused := json.Unmarshal([]byte(doc), new(form))
		said := jsonform.Steady(refused).Error()
		must.Hold(t, !strings.Contains(said, "json") && !strings.Contains(said, "Go ") && !strings.Contains(said, "int8"), "%s: %s", doc, said)
	}
	for doc, want := range map[string]string{
		`{"a":["x",]}`:     `byte 9, at /a: invalid character ',': a value is missing beside a comma`,
		`{"c":x}`:          `byte 5, at /c: invalid character 'x': want a value; names and texts must be in double quotes, not single ones`,
		`{"c" "x"}`:        `byte 5, at /c: invalid character '"': want a colon after the name`,
		`{"d":trve}`:       `byte 7, at /d: invalid character 'v': want true`,
		`{"c":"x"`:         `byte 8, at the document: the document ends too early`,
		`{"c":"x"} 7`:      `byte 10, at the document: invalid character '7': want nothing after the end of the JSON value`,
		"{\"c\":\"\n\"}":   `byte 6, at /c: invalid character '\n': in a string, write a control character as an escape sequence`,
		"{\"c\":\"\xff\"}": `byte 6, at /c: invalid UTF-8`,
		"\xff\xfe{":        `byte 0, at the document: invalid character '\xff': want a value`,
		`{"c":"\q"}`:       "byte 6, at /c: the string has `\\q`, which is not an escape sequence of JSON",
		`{"c":"\ud800"}`:   "byte 6, at /c: the string has a lone surrogate, which is not a character",
		`{"c":"x","c":1}`:  `byte 9, at /c: the object has this member twice`,
		`{"a":["x" "y"]}`:  `byte 10, at /a: invalid character '"': want a comma or ']' after the element`,
		`{"c":"x" "d"}`:    `byte 9, at the document: invalid character '"': want a comma or '}' after the member`,
		`{"e":1.x}`:        `byte 7, at /e: invalid character 'x': want a digit of the number`,
		`{7:1}`:            `byte 1, at the document: want the name of a member, in double quotes`,
	} {
		said := jsonform.Steady(fmt.Errorf("reading it: %w", json.Unmarshal([]byte(doc), new(form)))).Error()
		must.Hold(t, said == "reading it: "+want, "%s: %s, want %s", doc, said, want)
		_, err := within.Canonical([]byte(doc))
		must.Hold(t, err != nil && !strings.Contains(err.Error(), "json") && !strings.Contains(err.Error(), "expecting"), "%s: %v", doc, err)
	}
	other := errors.New("json: unable to think")
	got := jsonform.Steady(other)
	must.Hold(t, got == other, "an error that is not of the JSON library became %v", got)
	err := jsonform.DecodeForm([]byte(`{"unknown":1}`), new(form))
	must.Hold(t, err != nil && !strings.Contains(err.Error(), "json:"), "%v", err)
}
