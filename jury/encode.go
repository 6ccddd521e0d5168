package jury

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// EncodeBody returns the body of an act, or any other value of this package, as canonical JSON. It refuses text that
// is not valid UTF-8, and returns the *evidence.SyntaxError of a value without a canonical form.
func EncodeBody(body any) ([]byte, error) {
	doc, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", body, err)
	}
	return evidence.Canonical(doc)
}

// DecodeBody reads the body of an act of a trial. It is strict: a missing or additional member is an error, and what
// it decodes encodes to the same document. The submission has no body here.
func DecodeBody(action evidence.ActionType, doc []byte) (any, error) {
	form, err := evidence.Canonical(doc)
	if err != nil {
		return nil, fmt.Errorf("reading body of %s: %w", action, err)
	}
	var body any // nil for another action: nothing can be read into it
	if of := bodies[action]; of != nil {
		body = reflect.New(of).Interface()
	}
	if err := json.Unmarshal(form, body, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading body of %s: %w", action, evidence.Steady(err))
	}
	again, err := EncodeBody(body)
	if err != nil {
		return nil, fmt.Errorf("reading body of %s: %w", action, err)
	}
	if !bytes.Equal(again, form) {
		_, how := compare("", form, again).words()
		return nil, fmt.Errorf("reading body of %s: %s", action, how)
	}
	if opening, is := body.(*Opening); is {
		for _, seat := range opening.Settings.Everyone() { // the one member that any JSON could be decoded into
			if seat.Parameters.Kind() != '{' {
				return nil, fmt.Errorf("reading body of %s: parameters of seat %q: want an object", action, seat.JurorID)
			}
		}
	}
	return body, nil
}

// bodies are the types of the acts' bodies.
var bodies = map[evidence.ActionType]reflect.Type{evidence.PhaseOpening: reflect.TypeFor[Opening](), evidence.Evaluation: reflect.TypeFor[Evaluation](),
	evidence.Statement: reflect.TypeFor[Statement](), evidence.Absence: reflect.TypeFor[Absent](), evidence.ConsensusCheck: reflect.TypeFor[Check](),
	evidence.JudgeOpinion: reflect.TypeFor[Opinion](), evidence.FinalJudgment: reflect.TypeFor[Judgment](), evidence.TrialClosing: reflect.TypeFor[Closing]()}

// difference returns the path of the first member in which a sealed value differs from the right one, and how it
// differs. Both are "" if the values are equal.
func difference(sealed, right any) (path, how string) {
	if reflect.DeepEqual(sealed, right) { // the usual case; different values can still give one document
		return "", ""
	}
	a, err := EncodeBody(sealed)
	if err != nil {
		return "body", err.Error()
	}
	b, err := EncodeBody(right)
	if err != nil {
		return "body", err.Error()
	}
	if bytes.Equal(a, b) {
		return "", ""
	}
	return compare("", a, b).words()
}

// A contrast is the first place in which two documents differ.
type contrast struct {
	path        string
	left, right jsontext.Value // nil: absent
}

func (c contrast) words() (path, how string) {
	return c.path, fmt.Sprintf("%s is %s, but must be %s", c.path, shown(c.left), shown(c.right))
}

func compare(path string, a, b jsontext.Value) contrast {
	if a.Kind() == b.Kind() && a.Kind() == '{' {
		left, right := parts[map[string]jsontext.Value](a), parts[map[string]jsontext.Value](b)
		names := slices.Sorted(maps.Keys(left))
		for name := range right {
			if _, there := left[name]; !there {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			if !bytes.Equal(left[name], right[name]) {
				return compare(strings.TrimPrefix(path+"."+name, "."), left[name], right[name])
			}
		}
	}
	if a.Kind() == b.Kind() && a.Kind() == '[' {
		left, right := parts[[]jsontext.Value](a), parts[[]jsontext.Value](b)
		for i := range min(len(left), len(right)) {
			if !bytes.Equal(left[i], right[i]) {
				return compare(fmt.Sprintf("%s[%d]", path, i), left[i], right[i])
			}
		}
	}
	return contrast{path, a, b}
}

// parts decodes a document that is known to be canonical JSON of that kind.
func parts[T any](v jsontext.Value) (out T) {
	if err := json.Unmarshal(v, &out); err != nil {
		panic(fmt.Sprintf("jury: taking apart canonical JSON: %v", err))
	}
	return out
}

func shown(v jsontext.Value) string {
	if v == nil {
		return "missing"
	}
	return abbreviate(string(v))
}

func abbreviate(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for len(s) > 0 && !utf8.ValidString(s) && len(s) > most-utf8.UTFMax {
		s = s[:len(s)-1]
	}
	return s + "…"
}

func strangers(scores Scores, rubric Rubric) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(scores)), rubric.has)
	for i := range names {
		names[i] = abbreviate(names[i])
	}
	return abbreviate(strings.Join(names, ", "))
}

// clone copies a value deeply, so that a juror cannot change what another juror or the record holds. A nil list or map that JSON always
// writes becomes an empty one, as it is when it is read again.
func clone[T any](v T) T {
	deepen(reflect.ValueOf(&v).Elem())
	return v
}

func deepen(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Tag.Get("json"))
			deepen(v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			copied := reflect.New(v.Type().Elem())
			copied.Elem().Set(v.Elem())
			deepen(copied.Elem())
			v.Set(copied)
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(copied, v)
		v.Set(copied)
		if kind := v.Type().Elem().Kind(); kind == reflect.Struct || kind == reflect.Pointer {
			for i := range v.Len() {
				deepen(v.Index(i))
			}
		}
	case reflect.Map: // of names to numbers
		if !v.IsNil() {
			copied := reflect.MakeMapWithSize(v.Type(), v.Len())
			for _, key := range v.MapKeys() {
				copied.SetMapIndex(key, v.MapIndex(key))
			}
			v.Set(copied)
		}
	}
}

// fill makes a nil member empty if its tag does not leave it out. A nil document stays nil: it is no list of bytes.
func fill(v reflect.Value, tag string) {
	switch {
	case tag == "" || strings.Contains(tag, ",omit"):
	case v.Kind() == reflect.Slice && v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case v.Kind() == reflect.Map && v.IsNil():
		v.Set(reflect.MakeMap(v.Type()))
	}
}

// Clone returns a copy of tables that shares nothing with them; nil of nil.
func (w *Work) Clone() *Work { return clone(w) }
