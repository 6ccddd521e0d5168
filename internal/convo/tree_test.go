package convo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"jurat/internal/must"
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
		if got := c.n.Errorf("bad").Error(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
		if at := root.At(c.n.Offset); at != c.n {
			t.Errorf("at byte %d stands %s", c.n.Offset, at.Pointer())
		}
	}
	if from, to := list.Lines(); from != 2 || to != 3 {
		t.Errorf("lines %d to %d", from, to)
	}
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
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// Values of a file that are put together read as one, and errors about them name their places in the file.
func TestPutTogether(t *testing.T) {
	d := NewDocument("f.jsonl", []byte("{\"a\":1}\n[true]"))
	one := must.Get(d.Parse(0, 7, "/0"))(t)
	two, err := d.Parse(8, 14, "/1")
	if err != nil {
		t.Fatal(err)
	}
	whole := d.Object(d.Whole(), Member{"one", one}, Member{"two", two})
	if got := string(whole.Raw()); got != `{"one":{"a":1},"two":[true]}` {
		t.Error(got)
	}
	if got := two.Members[0].Errorf("bad").Error(); got != "f.jsonl:2:2: at /two/0 (byte 9): bad" {
		t.Error(got)
	}
	if got := string(d.List([]*Node{one, two}).Raw()); got != `[{"a":1},[true]]` {
		t.Error(got)
	}
	if _, err := d.Parse(8, 13, "/1"); err == nil || !strings.HasPrefix(err.Error(), "f.jsonl:2:") {
		t.Errorf("a value that does not end: %v", err)
	}
}

// TestLookIsBounded: an object with many more members than a file of conversations has is not looked through to its end.
func TestLookIsBounded(t *testing.T) {
	for members, refused := range map[int]bool{900: false, 1100: true} {
		var object strings.Builder
		for n := range members {
			fmt.Fprintf(&object, `"%d":1,`, n)
		}
		text := "{" + object.String() + `"last":2}`
		if _, err := NewDocument("f.json", []byte(text)).Look(0, int64(len(text)), "", 10); (err != nil) != refused {
			t.Errorf("%d members: %v", members, err)
		}
	}
}
