package evidence_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
)

// TestSteady: what the JSON library refuses is said in the words of JSON, the same in every process, and the error stays what it is.
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
		said := evidence.Steady(fmt.Errorf("reading it: %w", refused))
		if said.Error() != "reading it: "+want || !errors.Is(said, refused) {
			t.Errorf("%s: %s, want %s", doc, said, want)
		}
	}
	for _, doc := range []string{`{"b":{"y":{"n":1000}}}`, `{"f":"%"}`, `{"a":["x"`, `{"c":"x"} 7`} {
		refused := json.Unmarshal([]byte(doc), new(form))
		if said := evidence.Steady(refused).Error(); strings.Contains(said, "json") || strings.Contains(said, "Go ") || strings.Contains(said, "int8") {
			t.Errorf("%s: %s", doc, said)
		}
	}
	other := errors.New("json: unable to think")
	if got := evidence.Steady(other); got != other {
		t.Errorf("an error of somebody else is %v", got)
	}
	_, err := evidence.Open([]byte(`{"unknown":1}`))
	if err == nil || strings.Contains(err.Error(), "json:") {
		t.Error(err)
	}
}
