package verify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/property"
)

// MaxDemands is how many demands a reader may have.
const MaxDemands = 16

// A Demand is what a reader wants to see proved of a member of records. Make one with [ParseDemand].
type Demand struct {
	Text     string // as it was given
	Audience string // for whom proofs must have been made; "": for everybody

	pointer string
	want    property.Statement // without kind and members
}

// A DemandError says which part of a demand is wrong.
type DemandError struct {
	Demand   string
	Position int // in bytes, from 0
	Field    string
	Reason   string
}

func (e *DemandError) Error() string {
	return fmt.Sprintf("demand %q: %s at byte %d: %s", evidence.Abbreviate(e.Demand), e.Field, e.Position, e.Reason)
}

// IsDemand reports whether a text is meant as a demand: it begins with a form of statements and a colon.
func IsDemand(text string) bool {
	form, _, is := strings.Cut(text, ":")
	return is && slices.Contains(forms, property.Form(form))
}

var forms = []property.Form{property.Range, property.In, property.NotIn, property.AgeAtLeast}

// ParseDemand reads a demand: form:/pointer=what. What is wanted is lo..hi for range, values with commas between them for in and
// not_in, and years@date for age_at_least. A value is JSON if it reads as that, and otherwise a string. The pointer ends at the first "=". Its error is a [*DemandError].
func ParseDemand(text string) (*Demand, error) {
	form, rest, _ := strings.Cut(text, ":")
	d := &Demand{Text: text, want: property.Statement{Format: property.Format, Form: property.Form(form)}}
	fail := func(position int, field, format string, args ...any) error {
		return &DemandError{text, position, field, fmt.Sprintf(format, args...)}
	}
	if !IsDemand(text) {
		return nil, fail(0, "form", "%q is unknown: want one of %q, and a colon", evidence.Abbreviate(form), forms)
	}
	pointer, what, is := strings.Cut(rest, "=")
	switch at := len(form) + 1; {
	case !isPointer(pointer):
		return nil, fail(at, "pointer", "%q is not a JSON pointer to a member, such as /metadata/action", evidence.Abbreviate(pointer))
	case !is:
		return nil, fail(len(text), "pointer", `want "=" and what is demanded after it`)
	}
	d.pointer = pointer
	if field, reason := d.read(what); reason != nil {
		return nil, fail(len(form)+len(pointer)+2, field, "%v", reason)
	}
	return d, nil
}

func isPointer(text string) bool { return len(text) > 1 && jsontext.Pointer(text).IsValid() }

// read reads what is demanded. If that is wrong, it returns the name of the field and the reason.
func (d *Demand) read(what string) (string, error) {
	var err error
	switch d.want.Form {
	case property.Range:
		lo, hi, is := strings.Cut(what, "..")
		if !is {
			return "range", errors.New(`want two values and ".." between them, such as 0..5000`)
		}
		d.want.Lo, d.want.Hi = single(lo), single(hi)
		return "range", d.fits()
	case property.AgeAtLeast:
		years, at, is := strings.Cut(what, "@")
		if !is {
			return "age", errors.New(`want years, "@" and a date, such as 18@2026-11-23`)
		}
		if d.want.Years, err = strconv.Atoi(years); err != nil {
			return "years", fmt.Errorf("%.20q is not a number", years)
		}
		d.want.At = at
		return "age", d.fits()
	}
	d.want.Set, err = list(what)
	return "set", err
}

// fits returns an error unless the numbers are of any kind.
func (d *Demand) fits() error {
	var first error
	for _, kind := range ordered {
		err := d.as(kind).CheckBounds()
		if err == nil {
			return nil
		}
		if first == nil || kind == property.Date && d.isText() {
			first = err
		}
	}
	return first
}

// isText reports whether what is demanded has no numbers, but dates or times.
func (d *Demand) isText() bool { return d.want.Form == property.AgeAtLeast || d.want.Hi.Kind() == '"' }

var ordered = []property.Kind{property.Integer, "decimal:1", "decimal:2", "decimal:3", "decimal:4", "decimal:5", "decimal:6", "decimal:7", "decimal:8", "decimal:9", property.Date, property.Time}

// as returns what is demanded, as a statement about values of a kind.
func (d *Demand) as(kind property.Kind) *property.Statement {
	s := d.want
	s.Kind = kind
	return &s
}

// single reads a value: JSON if it reads as that, and otherwise a string.
func single(text string) jsontext.Value {
	value := jsontext.Value(text)
	if canonical, err := evidence.Canonical(value); err == nil {
		return canonical
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return jsontext.Value("null") // no text: no value is equal to it, and no kind has it
	}
	return quoted
}

// list reads values with commas between them. A string in quotes may have commas of its own.
func list(text string) (values []jsontext.Value, err error) {
	seen := map[string]bool{}
	for {
		item, rest, more := strings.Cut(text, ",")
		if strings.HasPrefix(text, `"`) {
			quoted, err := jsontext.NewDecoder(strings.NewReader(text)).ReadValue()
			if err != nil {
				return nil, fmt.Errorf("entry %d: a string begins that does not end", len(values))
			}
			item = string(quoted)
			rest, more = strings.CutPrefix(text[len(item):], ",")
			if !more && rest != "" {
				return nil, fmt.Errorf("entry %d: want a comma after %s", len(values), evidence.Abbreviate(item))
			}
		}
		value := single(item)
		switch {
		case item == "":
			return nil, fmt.Errorf(`entry %d is empty: write "" in quotes for an empty string`, len(values))
		case seen[string(value)]:
			return nil, fmt.Errorf("entry %d is there twice", len(values))
		case len(values) == property.MaxSet:
			return nil, fmt.Errorf("more than %d entries", property.MaxSet)
		}
		seen[string(value)] = true
		values = append(values, value)
		if !more {
			return values, nil
		}
		text = rest
	}
}

// A known is what a record shows of the member that a demand is about.
type known struct {
	there bool           // the record has the member
	value jsontext.Value // in clear, or disclosed with a match for each commitment; nil: not known
}

// look looks for the members of a demand in a record. Disclosed values have been held against their commitments.
func (d *Demand) look(r *evidence.Record) (k known) {
	k.there, k.value = find(r, d.pointer)
	return k
}

// find finds a member of a payload, or of a disclosed value. there is true, too, if it is in what is sealed apart and not disclosed: then the value is nil.
func find(r *evidence.Record, pointer string) (there bool, value jsontext.Value) {
	value = r.Canonical()
	path := ""
	for name := range jsontext.Pointer(pointer).Tokens() {
		var members map[string]jsontext.Value
		if value.Kind() != '{' || json.Unmarshal(value, &members) != nil {
			return false, nil
		}
		inner, is := members[name]
		if !is {
			return false, nil
		}
		path = string(jsontext.Pointer(path).AppendToken(name))
		said, withheld := r.Said(path, inner)
		if withheld {
			return true, nil
		}
		value = said
	}
	return true, value
}

// meets reports whether a value that is known meets the demand.
func (d *Demand) meets(k known) bool {
	if d.want.Form == property.In || d.want.Form == property.NotIn {
		allowed, err := d.as(property.Text).Allows(k.value)
		return err == nil && allowed
	}
	for _, kind := range ordered {
		if allowed, err := d.as(kind).Allows(k.value); err == nil {
			return allowed
		}
	}
	return false
}

// implied reports whether a statement that holds shows the demand of a record's member.
func (d *Demand) implied(s *property.Statement, record string) bool {
	self := property.Member{Record: record, Pointer: d.pointer}
	if s.Audience != d.Audience || !slices.Contains(s.Members, self) {
		return false
	}
	return s.Implies(d.as(s.Kind))
}
