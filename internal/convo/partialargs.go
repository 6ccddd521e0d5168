package convo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A partialCall is a call whose arguments come in pieces.
type partialCall struct {
	part int // of the candidate's content
	open bool
	args argument
}

// take takes a part. A function call without a name is the next piece of the one before. It counts the values in all that comes in pieces.
func (c *candidateSum) take(part GeneratePart, values *int) error {
	call := part.FunctionCall
	if call == nil {
		c.Content.Parts = append(c.Content.Parts, part)
		return nil
	}
	var known *partialCall
	if n := len(c.calls); n > 0 && c.calls[n-1].open && call.Name == "" {
		known = c.calls[n-1]
	} else if call.Name == "" && call.ID == "" && call.PartialArgs == nil && !present(call.Args) { // the end of a call that has ended
		return nil
	} else {
		c.Content.Parts = append(c.Content.Parts, part)
		if !call.WillContinue && call.PartialArgs == nil {
			return nil
		}
		known = &partialCall{part: len(c.Content.Parts) - 1}
		if len(call.Args) > len("{}") {
			known.args.whole = call.Args
		}
		c.calls = append(c.calls, known)
	}
	known.open = call.WillContinue
	for _, piece := range call.PartialArgs {
		if err := known.args.set(piece, values); err != nil {
			return err
		}
	}
	return nil
}

// An argument is a value that grows: an object, an array, a text, or another value. Of an element of which no piece came, there is none.
type argument struct {
	members  map[string]*argument
	elements []*argument
	text     []byte
	isText   bool
	whole    jsontext.Value
}

const (
	mostSteps   = 64      // how deep a value can be
	longestPath = 4096    // in bytes
	mostEmpty   = 8       // elements of which no piece came before the next
	mostValues  = 1 << 16 // in the arguments of all calls of a stream: short paths can ask for many
)

// set puts a value, or the next piece of a text, where its path says. It counts the values that are new.
func (a *argument) set(piece GeneratePartialArg, values *int) error {
	path, found := strings.CutPrefix(piece.Path, "$")
	if !found {
		return errors.New("a path does not begin with $")
	}
	if len(path) > longestPath {
		return fmt.Errorf("a path is longer than %d bytes", longestPath)
	}
	at := a
	for steps := 0; path != ""; steps++ {
		if steps == mostSteps {
			return fmt.Errorf("a path has more than %d steps", mostSteps)
		}
		name, number, rest, err := step(path)
		if err != nil {
			return err
		}
		if at, err = at.under(name, number, values); err != nil {
			return err
		}
		path = rest
	}
	switch {
	case piece.String != nil:
		at.text, at.isText = append(at.text, *piece.String...), true
	case present(piece.Number):
		at.whole = piece.Number
	case piece.Bool != nil:
		at.whole = jsontext.Value(strconv.FormatBool(*piece.Bool))
	default:
		at.whole = jsontext.Value("null")
	}
	return nil
}

// aStep is the first step of a path: .name, ['name'], ["name"] or [0].
var aStep = regexp.MustCompile(`^(?s:\.([^.\[]*)|\['(.*?)'\]|\["(.*?)"\]|\[(\d+)\])`)

// step splits the first step off a path. number is -1 for a name.
func step(path string) (name string, number int, rest string, err error) {
	at := aStep.FindStringSubmatch(path)
	number = -1
	if at != nil && at[4] != "" {
		number, err = strconv.Atoi(at[4])
	}
	if at == nil || err != nil || number > maxIndex {
		return "", 0, "", errors.New("a path has a step that is neither a name nor a number in range")
	}
	return at[1] + at[2] + at[3], number, path[len(at[0]):], nil
}

// under returns a member or an element, and adds it if it is new.
func (a *argument) under(name string, number int, values *int) (*argument, error) {
	if a.whole != nil || a.isText || number < 0 && a.elements != nil || number >= 0 && a.members != nil {
		return nil, errors.New("a path leads into a value of another kind")
	}
	if number < 0 {
		if known := a.members[name]; known != nil {
			return known, nil
		}
		if a.members == nil {
			a.members = map[string]*argument{}
		}
		next, err := another(values, 1)
		if err == nil {
			a.members[name] = next
		}
		return next, err
	}
	if number > len(a.elements)+mostEmpty {
		return nil, fmt.Errorf("element %d comes before element %d", number, len(a.elements))
	}
	if number < len(a.elements) && a.elements[number] != nil {
		return a.elements[number], nil
	}
	next, err := another(values, max(1, number+1-len(a.elements)))
	if err != nil {
		return nil, err
	}
	for number >= len(a.elements) {
		a.elements = append(a.elements, nil)
	}
	a.elements[number] = next
	return next, nil
}

// another returns a new value, after it has counted it and those that it brings with it.
func another(values *int, n int) (*argument, error) {
	if *values += n; *values > mostValues {
		return nil, fmt.Errorf("more than %d values: the others are left out", mostValues)
	}
	return new(argument), nil
}

// value returns what arrived. Without a piece, it is an empty object.
func (a *argument) value() jsontext.Value {
	if !a.isText && a.whole != nil {
		return a.whole
	}
	var b bytes.Buffer
	if a.write(jsontext.NewEncoder(&b, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))) != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// write writes the value. Its errors are those of e.
func (a *argument) write(e *jsontext.Encoder) error {
	switch {
	case a == nil:
		return e.WriteValue(jsontext.Value("{}"))
	case a.isText:
		return e.WriteToken(jsontext.String(string(a.text)))
	case a.whole != nil:
		return e.WriteValue(a.whole)
	case a.elements != nil:
		err := e.WriteToken(jsontext.BeginArray)
		for _, element := range a.elements {
			err = cmp.Or(err, element.write(e))
		}
		return cmp.Or(err, e.WriteToken(jsontext.EndArray))
	}
	err := e.WriteToken(jsontext.BeginObject)
	for _, name := range slices.Sorted(maps.Keys(a.members)) {
		err = cmp.Or(err, e.WriteToken(jsontext.String(name)), a.members[name].write(e))
	}
	return cmp.Or(err, e.WriteToken(jsontext.EndObject))
}
