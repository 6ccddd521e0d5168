package panel

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"jurat/evidence"
	"jurat/internal/log/names"
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

// Parse reads a configuration file: the YAML as JSON, strictly. Its errors are *PlaceError for everything that has a place in the file.
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

// explain finds the place in the file for an error about the JSON document. It does not repeat the value, which may be a key, put there by mistake.
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
			return at(node, "%s: unknown key: use webhook: it is told when a case needs a person; 'jurat trial --recorded CHAIN' tries records on your schedule", path)
		}
		return at(node, "%s: unknown key", path)
	}
	node, path := d.find(wrong.JSONPointer, false)
	return at(node, "%s: want %s", path, inWords(wrong.GoType))
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
	path = cmp.Or(path, "the file")
	if key {
		return name, path
	}
	return n, path
}

func inWords(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case nil:
		return "another value"
	case reflect.TypeFor[Duration]():
		return "a duration like 90s or 5m"
	}
	return cmp.Or(map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Int64: "a whole number",
		reflect.Float64: "a number", reflect.String: "text (put it into quotes)", reflect.Slice: "a list"}[t.Kind()], "keys and values")
}

const (
	minSeats, maxSeats = 2, 12
	maxDollars         = 1_000_000
	maxAttempts        = 20
	maxTokensOfAnswer  = 1 << 20
	maxText            = 2000 // bytes of a role or a focus
)

func wrong(pointer jsontext.Pointer, format string, args ...any) error {
	return &fieldError{pointer, fmt.Sprintf(format, args...)}
}

// check refuses configurations by which no trial can be held, as far as the file shows. The jury checks the rest, such as the sum of a rubric.
func (f *File) check() error {
	err := cmp.Or(demand("", []rule{
		{f.Jurors == "" || f.Jurors == Offline || f.Jurors == LLM, "/jurors", fmt.Sprintf("want %s or %s", Offline, LLM)},
		{f.Panel.Care == "" || f.Panel.Care.Check() == nil, "/panel", fmt.Sprintf("want %s, %s or a list of seats", Thorough, Quick)},
		{f.Panel.Seats == nil || f.Seats == nil, "/seats", "the panel is a list of seats, too: leave one of them out"},
		{f.CostCeiling == nil || *f.CostCeiling > 0 && *f.CostCeiling <= maxDollars, "/cost_ceiling", fmt.Sprintf("want US dollars above 0, up to %d", maxDollars)},
	}), checkSeats("/panel", f.Panel.Seats), checkSeats("/seats", f.Seats), f.Judge.check("/judge"), f.Webhook.check("/webhook"))
	for i, p := range f.Prices {
		here := jsontext.Pointer(fmt.Sprintf("/prices/%d", i))
		err = cmp.Or(err, demand(here, []rule{{p.Model != "", "", "this price has no model"}}), checkPrice(here, &Price{p.Input, p.Cached, p.Output}))
	}
	return err
}

// A rule says what is wanted at a place below another, and whether it is so.
type rule struct {
	kept bool
	at   jsontext.Pointer
	want string
}

func demand(here jsontext.Pointer, rules []rule) error {
	for _, r := range rules {
		if !r.kept {
			return wrong(here+r.at, "%s", r.want)
		}
	}
	return nil
}

// Check returns an error for an unknown word.
func (c Care) Check() error {
	if c != Thorough && c != Quick {
		return fmt.Errorf("%q is neither %s nor %s", string(c), Thorough, Quick)
	}
	return nil
}

func checkSeats(here jsontext.Pointer, seats []Seat) error {
	if seats != nil && (len(seats) < minSeats || len(seats) > maxSeats) {
		return wrong(here, "%d seats: want %d to %d", len(seats), minSeats, maxSeats)
	}
	ids := map[string]bool{}
	for i := range seats {
		here := jsontext.Pointer(fmt.Sprintf("%s/%d", here, i))
		seat := &seats[i]
		err := demand(here, []rule{{seat.ID != "", "", "this seat has no id"}, {!ids[seat.ID], "/id", fmt.Sprintf("%q is the id of an earlier seat, too", seat.ID)}})
		if err = cmp.Or(err, seat.check(here)); err != nil {
			return err
		}
		ids[seat.ID] = true
	}
	return nil
}

func (s *Seat) check(here jsontext.Pointer) error {
	if s == nil {
		return nil
	}
	if s.ID != "" {
		if err := names.Check(s.ID); err != nil {
			return wrong(here+"/id", "%v", err)
		}
	}
	tooLong := fmt.Sprintf("longer than %d bytes", maxText)
	err := demand(here, []rule{{len(s.Role) <= maxText, "/role", tooLong}, {len(s.Focus) <= maxText, "/focus", tooLong}})
	return cmp.Or(err, s.Member.check(here), s.Substitute.check(here+"/substitute"))
}

func (m *Member) check(here jsontext.Pointer) error {
	if m == nil {
		return nil
	}
	switch m.Provider {
	case OpenAI, Anthropic, Gemini, Compatible:
		if m.Model == "" {
			return wrong(here, "want the name of a model")
		}
	case Rules:
		return demand(here, []rule{{*m == Member{Provider: Rules}, "", fmt.Sprintf("the provider %s takes no model, key, parameters or price", Rules)}})
	case "":
		return wrong(here, "want a provider: %s, %s, %s, %s or %s", OpenAI, Anthropic, Gemini, Compatible, Rules)
	default:
		return wrong(here+"/provider", "want %s, %s, %s, %s or %s", OpenAI, Anthropic, Gemini, Compatible, Rules)
	}
	return cmp.Or(demand(here, []rule{
		{m.Provider != Compatible || m.BaseURL != "", "", "the provider compatible needs a base_url"},
		{m.Temperature == nil || *m.Temperature >= 0 && *m.Temperature <= 2, "/temperature", "want 0 to 2"},
		{m.TopP == nil || *m.TopP > 0 && *m.TopP <= 1, "/top_p", "want more than 0 and at most 1"},
		{m.MaxTokens >= 0 && m.MaxTokens <= maxTokensOfAnswer, "/max_tokens", fmt.Sprintf("want 1 to %d", maxTokensOfAnswer)},
		{m.Attempts >= 0 && m.Attempts <= maxAttempts, "/attempts", fmt.Sprintf("want 1 to %d", maxAttempts)},
		{m.PerMinute == 0 || m.PerMinute > 0 && !math.IsInf(60/m.PerMinute, 0), "/requests_per_minute", "want more than 0"},
	}), checkURL(here+"/base_url", m.BaseURL, m.Key != nil || m.Provider != Compatible), checkPrice(here+"/price", m.Price), m.Key.check(here+"/key"))
}

func checkURL(here jsontext.Pointer, text string, withKey bool) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil {
		u = new(url.URL)
	}
	ip, noIP := netip.ParseAddr(u.Hostname())
	return demand(here, []rule{
		{u.Host != "" && (u.Scheme == "https" || u.Scheme == "http"), "", "want an http or https URL"},
		{u.User == nil && u.RawQuery == "" && u.Fragment == "", "", "want a URL without user, password, query or fragment, because records hold it"},
		{u.Scheme != "http" || !withKey || u.Hostname() == "localhost" || noIP == nil && ip.IsLoopback(), "", "want https: http would send the key unencrypted"},
	})
}

func checkPrice(here jsontext.Pointer, p *Price) error {
	if p == nil {
		return nil
	}
	fine := func(value float64) bool { return value >= 0 && value <= maxDollars }
	return demand(here, []rule{{fine(p.Input) && fine(p.Cached) && fine(p.Output), "", "want US dollars per million tokens"}})
}

var variable = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,99}$`)

func (k *Key) check(here jsontext.Pointer) error {
	if k == nil {
		return nil
	}
	return demand(here, []rule{
		{(k.Env == "") != (k.File == ""), "", "want either env or file"},
		{k.Env == "" || variable.MatchString(k.Env), "/env", "want the name of an environment variable in capitals, and never the key itself"},
		{!strings.ContainsRune(k.File, 0), "/file", "not a valid file name"},
	})
}
