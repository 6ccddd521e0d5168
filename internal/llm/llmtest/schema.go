package llmtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

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
	var root struct {
		Type jsontext.Value `json:"type"`
	}
	if json.Unmarshal(schema, &root) != nil || string(root.Type) != `"object"` {
		return errors.New("schema: the root is not of type object")
	}
	return d.walk(schema, "schema")
}

func (d dialect) walk(schema jsontext.Value, at string) error {
	members, err := membersOf(schema)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	for _, keyword := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(d.keywords, keyword) {
			return fmt.Errorf("%s: the vendor does not support %s", at, keyword)
		}
	}
	properties, err := membersOf(members["properties"])
	if err != nil {
		return fmt.Errorf("%s/properties: %w", at, err)
	}
	if string(members["type"]) == `"object"` {
		if err := d.object(members, properties); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return d.below(members, properties, at)
}

func (d dialect) object(members, properties map[string]jsontext.Value) error {
	if d.closed && string(members["additionalProperties"]) != "false" {
		return errors.New("additionalProperties is not false")
	}
	var required []string
	if v := members["required"]; v != nil {
		if err := json.Unmarshal(v, &required); err != nil {
			return fmt.Errorf("required: %w", err)
		}
	}
	slices.Sort(required)
	if d.allRequired && !slices.Equal(required, slices.Sorted(maps.Keys(properties))) {
		return errors.New("not every member is required")
	}
	for _, name := range required {
		if properties[name] == nil {
			return fmt.Errorf("required: there is no member %q", name)
		}
	}
	return nil
}

// below walks the schemas inside a schema.
func (d dialect) below(members, properties map[string]jsontext.Value, at string) error {
	within := map[string]jsontext.Value{}
	for name, schema := range properties {
		within["properties/"+name] = schema
	}
	definitions, err := membersOf(members["$defs"])
	if err != nil {
		return fmt.Errorf("%s/$defs: %w", at, err)
	}
	for name, schema := range definitions {
		within["$defs/"+name] = schema
	}
	if items := members["items"]; items != nil {
		within["items"] = items
	}
	if v := members["anyOf"]; v != nil {
		var choices []jsontext.Value
		if err := json.Unmarshal(v, &choices); err != nil {
			return fmt.Errorf("%s/anyOf: %w", at, err)
		}
		for i, schema := range choices {
			within[fmt.Sprintf("anyOf/%d", i)] = schema
		}
	}
	for _, name := range slices.Sorted(maps.Keys(within)) {
		if err := d.walk(within[name], at+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// membersOf returns the members of an object; none of a value that is not there.
func membersOf(v jsontext.Value) (members map[string]jsontext.Value, err error) {
	if v == nil {
		return nil, nil
	}
	if v.Kind() != jsontext.KindBeginObject {
		return nil, errors.New("not an object")
	}
	return members, json.Unmarshal(v, &members)
}
