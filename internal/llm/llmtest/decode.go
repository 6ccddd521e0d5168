package llmtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// A decoding makes a Call of a request, and keeps the first thing in it that is not the vendor's protocol.
type decoding struct {
	Call
	err error
}

// decode reads a request. It refuses unknown and repeated members.
func decode(body []byte, into any) *decoding {
	return &decoding{err: json.Unmarshal(body, into, json.RejectUnknownMembers(true))}
}

func (d *decoding) demand(so bool, format string, args ...any) {
	if !so && d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// turn adds a message.
func (d *decoding) turn(role, model, text string) {
	d.demand(role == "user" || role == model, "messages/%d: role %q", len(d.Messages), role)
	d.demand(text != "", "messages/%d: empty", len(d.Messages))
	d.Messages = append(d.Messages, llm.Message{ByModel: role == model, Text: text})
}

func (d *decoding) limit(tokens *int, least int) {
	if tokens != nil {
		d.demand(*tokens >= least, "a limit of %d tokens", *tokens)
		d.Settings.MaxTokens = *tokens
	}
}

// schema takes a schema that the vendor's dialect has.
func (d *decoding) schema(name string, schema jsontext.Value, of dialect) {
	d.err = cmp.Or(d.err, of.check(schema))
	d.Schema = llm.Schema{Name: name, JSON: schema}
}

// call returns the call, unless it lacks what all vendors require.
func (d *decoding) call() (Call, error) {
	d.demand(d.Settings.Model != "", "there is no model")
	last := len(d.Messages) - 1
	d.demand(last >= 0 && !d.Messages[last].ByModel, "there is no last message by the user")
	if d.err != nil {
		return Call{}, d.err
	}
	return d.Call, nil
}

// A dialect is the part of JSON Schema that a vendor accepts.
type dialect struct {
	keywords    []string
	closed      bool // every object must forbid further members
	allRequired bool // every object must require all of its members
}

// A panel of several vendors can use only the keywords that every vendor accepts.
var everywhere = []string{"type", "title", "description", "enum", "items", "properties", "required", "additionalProperties", "anyOf", "$ref", "$defs"}

var (
	openAIDialect = dialect{append([]string{"const", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}, everywhere...), true, true}

	anthropicDialect = dialect{append([]string{"const", "default", "allOf", "pattern", "format", "definitions"}, everywhere...), true, false}

	geminiDialect = dialect{append([]string{"$id", "$anchor", "format", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "oneOf", "propertyOrdering"}, everywhere...), false, false}
)

// check refuses a schema that the vendor would refuse or would not follow.
func (d dialect) check(schema jsontext.Value) error {
	var root object
	if json.Unmarshal(schema, &root) != nil || root["type"] != "object" {
		return errors.New("schema: the root is not an object of type object")
	}
	return d.walk(root, "schema")
}

func (d dialect) walk(schema any, at string) error {
	s, is := schema.(object)
	if !is {
		return fmt.Errorf("%s: not an object", at)
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(d.keywords, keyword) {
			return fmt.Errorf("%s: the vendor does not support %s", at, keyword)
		}
	}
	if s["type"] == "object" {
		if err := d.object(s); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	inside, err := below(s)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	for _, name := range slices.Sorted(maps.Keys(inside)) {
		if err := d.walk(inside[name], at+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

func (d dialect) object(s object) error {
	if d.closed && s["additionalProperties"] != false {
		return errors.New("additionalProperties is not false")
	}
	properties, _ := s["properties"].(object)
	list, is := s["required"].([]any)
	if s["required"] != nil && !is || d.allRequired && len(list) != len(properties) {
		return errors.New("required: not every member is required")
	}
	seen := map[any]bool{}
	for _, name := range list {
		text, is := name.(string)
		if !is || properties[text] == nil || seen[name] {
			return fmt.Errorf("required: there is no member %v, or it is required twice", name)
		}
		seen[name] = true
	}
	return nil
}

// below lists the schemas inside a schema by their places.
func below(s object) (object, error) {
	inside := object{}
	for _, of := range []string{"properties", "$defs"} {
		members, is := s[of].(object)
		if s[of] != nil && !is {
			return nil, fmt.Errorf("%s is not an object", of)
		}
		for name, schema := range members {
			inside[of+"/"+name] = schema
		}
	}
	choices, is := s["anyOf"].([]any)
	if s["anyOf"] != nil && !is {
		return nil, errors.New("anyOf is not an array")
	}
	for i, schema := range choices {
		inside[fmt.Sprintf("anyOf/%d", i)] = schema
	}
	if items, there := s["items"]; there {
		inside["items"] = items
	}
	return inside, nil
}
