package model

import (
	"fmt"

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
}

// The schema uses only what every vendor's structured output supports: it states ranges in words, and read checks
// them. Members stand in the order in which a model should think of them: the reasons before the score.
func schemaOf(b *jury.Brief, peers []string) llm.Schema {
	return llm.Schema{Name: map[jury.Phase]string{jury.Initial: "evaluation", jury.Discussion: "statement", jury.Judging: "judgment"}[b.Phase],
		JSON: objectOf(answerMembers(b, peers))}
}

func answerMembers(b *jury.Brief, peers []string) []member {
	var list []member
	if b.Phase == jury.Discussion {
		list = append(list, member{"statement", typed("string", "")}, member{"reasoning", typed("string", "")})
	}
	return append(list,
		member{"findings", fields("type", "array", "items", objectOf(findingMembers(b, peers)))},
		member{"rationale", typed("string", "")},
		member{"axisScores", objectOf(scoreMembers(b.Rubric))},
		member{"totalScore", typed("integer", "the sum of the axis scores")},
		member{"position", oneOf(jury.SafePass, jury.NeedsReview, jury.UnsafeFail)},
		member{"confidence", typed("number", "0 to 1")},
		member{"evidenceCode", typed("string", "the code in the task")})
}

func findingMembers(b *jury.Brief, peers []string) []member {
	axes := make([]string, len(b.Rubric))
	for i, axis := range b.Rubric {
		axes[i] = axis.ID
	}
	list := []member{
		{"message", typed("integer", "number of the message")},
		{"quote", typed("string", "to the letter")},
		{"rule", typed("string", "")},
		{"axis", oneOf(axes...)},
		{"severity", oneOf(jury.Minor, jury.Major, jury.Critical)},
		{"explanation", typed("string", "")},
	}
	if b.Phase != jury.Initial {
		list = append(list, member{"from", oneOf(append([]string{nobody}, peers...)...)})
	}
	return list
}

func scoreMembers(rubric jury.Rubric) []member {
	list := make([]member, len(rubric))
	for i, axis := range rubric {
		list[i] = member{axis.ID, typed("integer", fmt.Sprintf("0 to %d", axis.Max))}
	}
	return list
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

func oneOf[T ~string](values ...T) jsontext.Value { return fields("type", "string", "enum", values) }

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
