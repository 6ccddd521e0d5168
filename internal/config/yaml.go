package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"jurat/evidence"
)

const maxFile = 1 << 20 // bytes

// A PlaceError says what is wrong in a file, and where.
type PlaceError struct {
	Line, Column int
	Reason       string
}

func (e *PlaceError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

func at(n *yaml.Node, format string, args ...any) error {
	return &PlaceError{n.Line, n.Column, fmt.Sprintf(format, args...)}
}

// Parse reads a configuration file. It converts the YAML to JSON and decodes that strictly. Its errors are
// *PlaceError for everything that has a place in the file.
func Parse(doc []byte) (*File, error) {
	d, err := readYAML(doc)
	if err != nil {
		return nil, err
	}
	var f File
	if d.root == nil {
		return &f, nil // only comments
	}
	if err := evidence.CheckValues(d.json); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(d.json, &f, json.RejectUnknownMembers(true)); err != nil {
		return nil, d.explain(err)
	}
	if err := f.check(); err != nil {
		return nil, d.explain(err)
	}
	return &f, nil
}

// A document is a YAML document and the equivalent JSON document.
type document struct {
	root *yaml.Node
	json []byte
}

func readYAML(doc []byte) (*document, error) {
	if len(doc) > maxFile {
		return nil, fmt.Errorf("longer than %d bytes", maxFile)
	}
	from := yaml.NewDecoder(bytes.NewReader(doc))
	var node yaml.Node
	if err := from.Decode(&node); errors.Is(err, io.EOF) {
		return &document{}, nil
	} else if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: ")) // the text has the line
	}
	var second yaml.Node
	if err := from.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document in the file")
	}
	root := node.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return &document{}, nil
	}
	var out bytes.Buffer
	if err := writeJSON(jsontext.NewEncoder(&out), root); err != nil {
		return nil, err
	}
	return &document{root, out.Bytes()}, nil
}

// writeJSON writes a node as JSON. It refuses what JSON does not have, and what would have another meaning there.
func writeJSON(to *jsontext.Encoder, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		return writeMapping(to, n)
	case yaml.SequenceNode:
		return writeAll(to, n, jsontext.BeginArray, jsontext.EndArray)
	case yaml.ScalarNode:
		return writeScalar(to, n)
	}
	return at(n, "an alias is not understood here: write the value out")
}

func writeMapping(to *jsontext.Encoder, n *yaml.Node) error {
	names := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
			return at(key, "a key must be plain text")
		case names[key.Value]:
			return at(key, "the key %s is repeated", strconv.Quote(key.Value))
		}
		names[key.Value] = true
	}
	return writeAll(to, n, jsontext.BeginObject, jsontext.EndObject)
}

func writeAll(to *jsontext.Encoder, n *yaml.Node, begin, end jsontext.Token) error {
	if err := to.WriteToken(begin); err != nil {
		return at(n, "%v", err)
	}
	for _, part := range n.Content {
		if err := writeJSON(to, part); err != nil {
			return err
		}
	}
	return to.WriteToken(end)
}

func writeScalar(to *jsontext.Encoder, n *yaml.Node) error {
	var value jsontext.Token
	switch n.Tag {
	case "!!str":
		value = jsontext.String(n.Value)
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return at(n, "not true or false")
		}
		value = jsontext.Bool(b)
	case "!!int":
		var i int64
		if err := n.Decode(&i); err != nil {
			return at(n, "the number is out of range")
		}
		value = jsontext.Int(i)
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil || f-f != 0 { // infinite, or not a number
			return at(n, "not a finite number")
		}
		value = jsontext.Float(f)
	case "!!null":
		return at(n, "the value is missing")
	default:
		return at(n, "the type %s is not supported here; put text into quotes", n.Tag)
	}
	if err := to.WriteToken(value); err != nil {
		return at(n, "not valid UTF-8")
	}
	return nil
}

// A fieldError is about a value that JSON allows and a configuration does not.
type fieldError struct {
	pointer jsontext.Pointer
	reason  string
}

func (e *fieldError) Error() string { return e.reason }

// explain finds the place in the file for an error about the JSON document. It does not repeat the value, because
// that may be a key that the user put there by mistake.
func (d *document) explain(err error) error {
	var field *fieldError
	if errors.As(err, &field) {
		node, path := d.find(field.pointer, false)
		return at(node, "%s: %s", path, field.reason)
	}
	var wrong *json.SemanticError
	if !errors.As(err, &wrong) {
		return err
	}
	if errors.Is(err, json.ErrUnknownName) {
		node, path := d.find(wrong.JSONPointer, true)
		if path == "continuous" { // of earlier programs
			return at(node, "%s: unknown key: write webhook, which is told when a case needs a person; 'jurat trial --recorded CHAIN' tries records, on a schedule of your own", path)
		}
		return at(node, "%s: unknown key", path)
	}
	node, path := d.find(wrong.JSONPointer, false)
	reason := "want " + inWords(wrong.GoType)
	if wrong.GoType == reflect.TypeFor[Duration]() {
		reason = "want a duration like 90s or 5m"
	}
	return at(node, "%s: %s", path, reason)
}

// find returns the node at a pointer and the pointer in readable form. If the node does not exist, it returns the
// innermost one on the way to it. With key it returns the name's node if the last step is into a mapping.
func (d *document) find(pointer jsontext.Pointer, key bool) (n *yaml.Node, path string) {
	n = d.root
	name := n
	for token := range pointer.Tokens() {
		next := n
		switch n.Kind {
		case yaml.MappingNode:
			path = strings.TrimPrefix(path+"."+token, ".")
			for i := 0; i < len(n.Content); i += 2 {
				if n.Content[i].Value == token {
					name, next = n.Content[i], n.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			path += "[" + token + "]"
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Content) {
				next = n.Content[i]
			}
		}
		n = next
	}
	if path == "" {
		path = "the file"
	}
	if key {
		return name, path
	}
	return n, path
}

func inWords(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "another value"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "text (put it into quotes)"
	case reflect.Slice:
		return "a list"
	}
	return "keys and values"
}
