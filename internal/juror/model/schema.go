package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
	"jurat/jury"
)

// nobody stands for "no other juror" in a finding's origin. Some vendors refuse an empty string among the values of a
// schema.
const nobody = "none"

// A member is one member of an object that an answer must have.
type member struct {
	name   string
	schema jsontext.Value
	parts  []member // of an object, or of each object in a list
	list   bool
	values []string // the only ones allowed; nil: any
}

// The schema uses only what every vendor's structured output supports: it states ranges in words, and read checks
// them. It has no null: a passage that the record does not have is message 0 with an empty quotation. Members stand in
// the order in which a model should think of them: the tables and the reasons before the levels, and these before the
// position.
func (s *sitting) schema() llm.Schema {
	name := map[jury.Phase]string{jury.Discussion: "statement", jury.Judging: "judgment"}[s.brief.Phase]
	name = cmp.Or(name, "evaluation")
	return llm.Schema{Name: name, JSON: objectOf(s.members)}
}

// membersOf lists the members of an answer, with the names of the other jurors for the origin of findings.
func (o *order) membersOf(b *jury.Brief, peers []string) []member {
	var list []member
	for _, table := range o.tables {
		list = append(list, listOf(table, tableMembers[table]))
	}
	list = append(list, listOf("findings", o.findingMembers(b, peers)))
	if b.Phase == jury.Discussion {
		list = append(list, textMember("statement"), textMember("reasoning"))
	}
	list = append(list, textMember("rationale"))
	levels, points := o.scoreMembers()
	if levels != nil {
		list = append(list, member{name: "levels", schema: objectOf(levels), parts: levels})
	}
	if points != nil {
		list = append(list, member{name: "axisScores", schema: objectOf(points), parts: points})
	}
	return append(list,
		choice("position", o.positions...),
		member{name: "confidence", schema: typed("number", "0 to 1")},
		member{name: "evidenceCode", schema: typed("string", "the code in the task")})
}

// tableMembers are the members of a row of each table. What shows a state stands before the state.
var tableMembers = map[string][]member{
	requestsTable: append(passageMembers("", "shown"),
		choice("state", jury.RequestDone, jury.RequestPartly, jury.RequestNotDone, jury.RequestDeclined, jury.RequestOpen)),
	actsTable: append(passageMembers("", "clause", "fact"),
		choice("holds", jury.AnsweredYes, jury.AnsweredNo, jury.Unclear)),
	amountsTable: append(passageMembers("announced", "charged"),
		choice("agrees", jury.AnsweredYes, jury.AnsweredNo, jury.Unclear)),
}

// passageMembers are the members of a row's passages: message and quote, or with a name before them, such as
// shownMessage and shownQuote.
func passageMembers(names ...string) []member {
	var list []member
	for _, name := range names {
		message, quote := passageNames(name)
		list = append(list, member{name: message, schema: typed("integer", "")}, textMember(quote))
	}
	return list
}

func passageNames(name string) (message, quote string) {
	if name == "" {
		return "message", "quote"
	}
	return name + "Message", name + "Quote"
}

func (o *order) findingMembers(b *jury.Brief, peers []string) []member {
	axes := make([]string, len(o.axes))
	for i, axis := range o.axes {
		axes[i] = axis.ID
	}
	list := append(passageMembers(""),
		textMember("rule"),
		choice("axis", axes...),
		choice("severity", jury.Minor, jury.Major, jury.Critical),
		textMember("explanation"))
	if heardJury(b) {
		list = append(list, choice("from", append([]string{nobody}, peers...)...))
	}
	return list
}

// heardJury reports whether a seat is shown what jurors said.
func heardJury(b *jury.Brief) bool { return b.Phase == jury.Discussion || b.Phase == jury.Judging }

// scoreMembers are the levels of the axes that have some, and the points of the others.
func (o *order) scoreMembers() (levels, points []member) {
	for _, axis := range o.axes {
		if n := len(axis.Levels); n > 0 {
			levels = append(levels, member{name: axis.ID, schema: typed("integer", fmt.Sprintf("0 to %d", n-1))})
		} else {
			points = append(points, member{name: axis.ID, schema: typed("integer", fmt.Sprintf("0 to %d", axis.Max))})
		}
	}
	return levels, points
}

func textMember(name string) member { return member{name: name, schema: typed("string", "")} }

func listOf(name string, parts []member) member {
	return member{name: name, schema: fields("type", "array", "items", objectOf(parts)), parts: parts, list: true}
}

func objectOf(members []member) jsontext.Value {
	var properties []any
	names := make([]string, len(members))
	for i, m := range members {
		properties = append(properties, m.name, m.schema)
		names[i] = m.name
	}
	return fields("type", "object", "properties", fields(properties...), "required", names, "additionalProperties", false)
}

func typed(kind, description string) jsontext.Value {
	if description == "" {
		return fields("type", kind)
	}
	return fields("type", kind, "description", description)
}

func choice[T ~string](name string, values ...T) member {
	m := member{name: name, schema: fields("type", "string", "enum", values)}
	for _, v := range values {
		m.values = append(m.values, string(v))
	}
	return m
}

// fields writes an object from names and values in turn, in this order. It copies values that are JSON already:
// schemas are nested, and each would otherwise be parsed again at every level above it.
func fields(list ...any) jsontext.Value {
	doc := []byte("{")
	for i, v := range list {
		switch {
		case i%2 == 1:
			doc = append(doc, ':')
		case i > 0:
			doc = append(doc, ',')
		}
		doc = appendValue(doc, v)
	}
	return append(doc, '}')
}

func appendValue(doc []byte, v any) []byte {
	var err error
	switch v := v.(type) {
	case jsontext.Value:
		doc = append(doc, v...)
	case string:
		doc, err = jsontext.AppendQuote(doc, v)
	default:
		var value []byte
		value, err = json.Marshal(v)
		doc = append(doc, value...)
	}
	if err != nil {
		panic(fmt.Sprintf("writing a schema: %v", err)) // a brief's names are valid UTF-8: its request has a digest
	}
	return doc
}

// The tables of an answer, by the members that hold them.
const (
	requestsTable = "requests"
	actsTable     = "acts"
	amountsTable  = "amounts"
)

// An order is the order in which one seat reads, writes and scores. Each seat of a panel has its own, so that the
// jurors do not share what an order does to a reader. A seat that is asked again gets another one: an answer that
// depends on it is no judgment.
type order struct {
	reading   jury.Reading
	tables    []string // in the order in which they are filled in; nil: the answer has none
	axes      jury.Rubric
	positions []jury.Position
	sections  []string // of the system text, after the rules about evidence
	best      bool     // the levels of an axis are listed from the best one down
}

func orderOf(b *jury.Brief) order {
	o := order{reading: b.Seat.Reading, positions: []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail},
		sections: []string{"axes", "positions", "quoting"}}
	if b.Phase == jury.Repetition {
		o.reading, o.best = another(o.reading), true
		slices.Reverse(o.positions)
		slices.Reverse(o.sections)
	}
	o.tables, o.axes = []string{requestsTable, amountsTable, actsTable}, slices.Clone(b.Rubric)
	switch o.reading {
	case jury.PolicyFirst:
		o.tables = []string{actsTable, requestsTable, amountsTable}
		slices.Reverse(o.axes)
	case jury.ActsFirst:
		o.tables = []string{actsTable, amountsTable, requestsTable}
		o.axes = append(o.axes[1:], o.axes[0])
	case jury.ClaimsFirst:
	default:
		o.tables = []string{requestsTable, actsTable, amountsTable}
	}
	if !b.Tables {
		o.tables = nil
	}
	return o
}

// another returns the reading of a seat that is asked again. It is never the seat's own.
func another(r jury.Reading) jury.Reading {
	switch r {
	case jury.PolicyFirst:
		return jury.ActsFirst
	case jury.ActsFirst:
		return jury.ClaimsFirst
	}
	return jury.PolicyFirst
}

// A shownAxis is an axis as the system text shows it.
type shownAxis struct {
	jury.Axis
	Least  string // the least level or points that allow a pass; "": any do
	Levels []shownLevel
}

type shownLevel struct {
	Number      int
	Description string
}

func (o *order) shownAxes() []shownAxis {
	var list []shownAxis
	for _, axis := range o.axes {
		a := shownAxis{Axis: axis, Least: leastOf(axis)}
		for i, level := range axis.Levels {
			a.Levels = append(a.Levels, shownLevel{i, level.Description})
		}
		if o.best {
			slices.Reverse(a.Levels)
		}
		list = append(list, a)
	}
	return list
}
