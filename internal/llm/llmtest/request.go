package llmtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// A decoding makes a Call of a request, and keeps the first thing in it that is not the vendor's protocol.
type decoding struct {
	Call
	vendor     *Vendor
	seen       map[string]bool // places in the request
	role, text string          // of the turn that is being read
	err        error
}

// A take takes in what a request has at one place.
type take func(d *decoding, at string, v jsontext.Value)

// decode reads a request. It refuses unknown and repeated members, and a request without what the vendor requires.
func (v *Vendor) decode(path string, body []byte) (Call, error) {
	d := &decoding{vendor: v, seen: map[string]bool{}}
	before, after, named := strings.Cut(v.path, "%s")
	rest, from := strings.CutPrefix(path, before)
	name, to := strings.CutSuffix(rest, after)
	d.demand(from && to && (named || name == ""), "path %s", path)
	d.Settings.Model = name
	d.walk("", body)
	for _, at := range slices.Sorted(maps.Keys(v.needs)) {
		d.needed(at)
	}
	d.demand(d.Settings.Model != "", "there is no model")
	last := len(d.Messages) - 1
	d.demand(last >= 0 && !d.Messages[last].ByModel, "there is no last message by the user")
	if d.err != nil {
		return Call{}, d.err
	}
	return d.Call, nil
}

func (d *decoding) demand(so bool, format string, args ...any) {
	if !so && d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// needed demands what is needed where a place is.
func (d *decoding) needed(at string) {
	for _, needed := range d.vendor.needs[at] {
		d.demand(!d.seen[at] || d.seen[needed], "there is no %s", needed)
	}
}

// walk takes in everything at a place. A member that is null is as if it were not there.
func (d *decoding) walk(at string, v jsontext.Value) {
	if v.Kind() == jsontext.KindNull {
		return
	}
	d.seen[at] = true
	if taken := d.vendor.members[at]; taken != nil {
		taken(d, at, v)
		return
	}
	d.demand(d.vendor.leadsOn(at), "unknown member %s", at)
	switch v.Kind() {
	case jsontext.KindBeginArray:
		for _, item := range value[[]jsontext.Value](d, at, v) { // each has what is needed
			d.demand(item.Kind() != jsontext.KindNull, "%s/* is null", at)
			for _, needed := range d.vendor.needs[at+"/*"] {
				delete(d.seen, needed)
			}
			d.walk(at+"/*", item)
			d.needed(at + "/*")
		}
	case jsontext.KindBeginObject:
		members := value[map[string]jsontext.Value](d, at, v)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			d.walk(at+"/"+name, members[name])
		}
	default:
		d.demand(false, "%s is %s", at, v)
	}
	if at == d.vendor.turns+"/*" {
		d.turn()
	}
}

// leadsOn reports whether the vendor has members below a place.
func (v *Vendor) leadsOn(at string) bool {
	for place := range v.members {
		if strings.HasPrefix(place, at+"/") {
			return true
		}
	}
	return false
}

// turn ends a turn. A system's is the first, where the vendor has such a role.
func (d *decoding) turn() {
	n := len(d.Messages)
	d.demand(d.text != "", "messages/%d: empty", n)
	if d.role == "system" {
		d.demand(n == 0 && d.System == "", "messages/%d: role %q", n, d.role)
		d.System = d.text
	} else {
		d.demand(d.role != "", "messages/%d: no role", n)
		d.Messages = append(d.Messages, llm.Message{ByModel: d.role != "user", Text: d.text})
	}
	d.role, d.text = "", ""
}

func value[T any](d *decoding, at string, v jsontext.Value) (to T) {
	if err := json.Unmarshal(v, &to); err != nil {
		d.demand(false, "%s: %w", at, err)
	}
	return to
}

func is(values ...string) take {
	return func(d *decoding, at string, v jsontext.Value) {
		d.demand(slices.Contains(values, string(v)), "%s is %s", at, v)
	}
}

func role(names ...string) take {
	return func(d *decoding, at string, v jsontext.Value) {
		d.role = value[string](d, at, v)
		d.demand(slices.Contains(names, d.role), "%s is %s", at, v)
	}
}

func limit(least int) take {
	return func(d *decoding, at string, v jsontext.Value) {
		d.Settings.MaxTokens = value[int](d, at, v)
		d.demand(d.Settings.MaxTokens >= least, "a limit of %s tokens", v)
	}
}

func setting[T int64 | float64](most T, of func(*llm.Settings) **T) take {
	return func(d *decoding, at string, v jsontext.Value) {
		n := value[T](d, at, v)
		d.demand(n <= most && n >= -most-1, "%s is %s, above %v or below its negative", at, v, most)
		*of(&d.Settings) = &n
	}
}

func temperatureOf(s *llm.Settings) **float64 { return &s.Temperature }
func topPOf(s *llm.Settings) **float64        { return &s.TopP }
func seedOf(s *llm.Settings) **int64          { return &s.Seed }

var (
	temperature = setting(math.MaxFloat64, temperatureOf)
	topP        = setting(math.MaxFloat64, topPOf)
)

func anything(*decoding, string, jsontext.Value) {}

func model(d *decoding, at string, v jsontext.Value) { d.Settings.Model = value[string](d, at, v) }

func system(d *decoding, at string, v jsontext.Value) { d.System += block(d, at, v) }

func said(d *decoding, at string, v jsontext.Value) { d.text += block(d, at, v) }

func block(d *decoding, at string, v jsontext.Value) string {
	one := value[string](d, at, v)
	d.demand(one != "", "%s is an empty block of text", at)
	return one
}

func schemaName(d *decoding, at string, v jsontext.Value) {
	d.Schema.Name = value[string](d, at, v)
	d.demand(d.Schema.Name != "", "%s is empty", at)
}

// schema takes a schema that the vendor's dialect has; nil: any.
func schema(of *dialect) take {
	return func(d *decoding, at string, v jsontext.Value) {
		root := value[object](d, at, v)
		if of != nil {
			d.err = cmp.Or(d.err, of.check(root))
		}
		d.Schema.JSON = v
	}
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
	openAIDialect = &dialect{append([]string{"const", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems",
		"maxItems"}, everywhere...), true, true}
	anthropicDialect = &dialect{append([]string{"const", "default", "allOf", "pattern", "format", "definitions"}, everywhere...), true, false}
	geminiDialect    = &dialect{append([]string{"$id", "$anchor", "format", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "oneOf",
		"propertyOrdering"}, everywhere...), false, false}
)

// check refuses a schema that the vendor would refuse or would not follow.
func (d *dialect) check(root object) error {
	if root["type"] != "object" {
		return errors.New("schema: the root is not of type object")
	}
	return d.walk(root, "schema")
}

// walk refuses what is wrong with a schema at a place, or with those inside it.
func (d *dialect) walk(schema any, at string) error {
	s, is := schema.(object)
	if !is {
		return fmt.Errorf("%s: not an object", at)
	}
	var err error
	if s["type"] == "object" {
		err = d.object(s, at)
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(d.keywords, keyword) {
			err = cmp.Or(err, fmt.Errorf("%s: the vendor does not support %s", at, keyword))
		}
		switch inside := s[keyword].(type) {
		case object:
			if keyword == "items" {
				err = cmp.Or(err, d.walk(inside, at+"/items"))
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(inside)) {
				err = cmp.Or(err, d.walk(inside[name], at+"/"+keyword+"/"+name))
			}
		case []any:
			for i := range inside {
				if keyword == "anyOf" {
					err = cmp.Or(err, d.walk(inside[i], fmt.Sprintf("%s/anyOf/%d", at, i)))
				}
			}
		default:
			if slices.Contains([]string{"properties", "$defs", "anyOf", "items"}, keyword) {
				err = cmp.Or(err, fmt.Errorf("%s: %s is %v", at, keyword, inside))
			}
		}
	}
	return err
}

// object checks what an object requires and forbids.
func (d *dialect) object(s object, at string) error {
	if d.closed && s["additionalProperties"] != false {
		return fmt.Errorf("%s: additionalProperties is not false", at)
	}
	properties, _ := s["properties"].(object)
	list, is := s["required"].([]any)
	if s["required"] != nil && !is || d.allRequired && len(list) != len(properties) {
		return fmt.Errorf("%s: required: not every member is required", at)
	}
	seen := map[any]bool{}
	for _, name := range list {
		text, is := name.(string)
		if !is || properties[text] == nil || seen[name] {
			return fmt.Errorf("%s: required: there is no member %v, or it is required twice", at, name)
		}
		seen[name] = true
	}
	return nil
}
