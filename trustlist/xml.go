package trustlist

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The largest accepted document. The largest national lists have two megabytes and 40,000 elements.
const (
	MaxSize       = 8 << 20
	maxElements   = 200_000
	maxDepth      = 64
	maxAttributes = 64 // of one element, namespace declarations included
	maxNamespaces = 64 // in force at one place
)

const xmlNamespace = "http://www.w3.org/XML/1998/namespace"

// A name is a qualified name. Two names are equal if space and local are equal; the prefix does not matter.
type name struct{ prefix, local, space string }

func (n name) is(space, local string) bool { return n.space == space && n.local == local }

func (n name) String() string {
	if n.prefix == "" {
		return n.local
	}
	return n.prefix + ":" + n.local
}

type attribute struct {
	name
	value string
}

type namespace struct{ prefix, uri string }

// An element holds elements and texts. Comments are not part of the tree, and canonical forms have none.
type element struct {
	name
	declared   []namespace
	attributes []attribute
	children   []node
	parent     *element
}

// A node is an element or, without one, a text.
type node struct {
	element *element
	text    string
}

// A parser reads the part of XML 1.0 and its namespaces that trusted lists use. It refuses document types, processing
// instructions and names beyond ASCII, so that a document has one meaning. After its first failure it reads nothing
// more.
type parser struct {
	in       string
	at       int
	err      error
	elements int
	scope    []namespace
	ids      map[string]bool
}

// parseXML reads a document and returns its root.
func parseXML(raw []byte) (*element, error) {
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrMalformed, MaxSize)
	}
	p := &parser{in: lines(raw), ids: map[string]bool{}}
	if i := badCharacter(p.in); i >= 0 {
		p.at = i
		p.fail("a character that XML does not allow")
		return nil, p.err
	}
	p.in = p.in[declaration(p.in):]
	p.between()
	root := p.element(nil, 1)
	p.between()
	if p.err == nil && p.at < len(p.in) {
		p.fail("something after the root element")
	}
	return root, p.err
}

const space = " \t\n"

// declaration returns the length of the XML declaration that a text begins with, or 0 if there is none. UTF-8 is the
// only accepted encoding.
func declaration(text string) int {
	rest, is := strings.CutPrefix(text, "<?xml")
	version, rest, named := declared(rest, "version")
	if !is || !named || version != "1.0" {
		return 0
	}
	if encoding, after, named := declared(rest, "encoding"); named && strings.EqualFold(encoding, "UTF-8") {
		rest = after
	}
	if standalone, after, named := declared(rest, "standalone"); named && (standalone == "yes" || standalone == "no") {
		rest = after
	}
	rest, is = strings.CutPrefix(strings.TrimLeft(rest, space), "?>")
	if !is {
		return 0
	}
	return len(text) - len(rest)
}

// declared reads space and one name with its value, and returns the text after them.
func declared(text, name string) (value, rest string, is bool) {
	rest = strings.TrimLeft(text, space)
	if len(rest) == len(text) {
		return "", "", false
	}
	if rest, is = strings.CutPrefix(rest, name); !is {
		return "", "", false
	}
	if rest, is = strings.CutPrefix(strings.TrimLeft(rest, space), "="); !is {
		return "", "", false
	}
	rest = strings.TrimLeft(rest, space)
	if !strings.HasPrefix(rest, `"`) && !strings.HasPrefix(rest, "'") {
		return "", "", false
	}
	return strings.Cut(rest[1:], rest[:1])
}

// lines drops a byte order mark and turns every line end into a line feed (XML 1.0, 2.11).
func lines(raw []byte) string {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	if bytes.IndexByte(raw, '\r') >= 0 {
		raw = bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	}
	return string(raw)
}

// badCharacter returns the index of the first character that is not a Char of XML 1.0, 2.2; -1 if there is none.
func badCharacter(text string) int {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
		if !isCharacter(r) {
			return i
		}
	}
	return -1
}

func isCharacter(r rune) bool {
	switch {
	case r < 0x20:
		return r == '\t' || r == '\n' || r == '\r'
	case r <= 0xd7ff:
		return true
	}
	return r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= 0x10ffff
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = fmt.Errorf("%w in line %d: %s", ErrMalformed, 1+strings.Count(p.in[:min(p.at, len(p.in))], "\n"), what)
	}
}

func (p *parser) rest() string { return p.in[p.at:] }

// take skips text if it comes next.
func (p *parser) take(text string) bool {
	if p.err != nil || !strings.HasPrefix(p.rest(), text) {
		return false
	}
	p.at += len(text)
	return true
}

// until returns the text before end, and skips both.
func (p *parser) until(end, what string) string {
	if p.err != nil {
		return ""
	}
	text, _, found := strings.Cut(p.rest(), end)
	if !found {
		p.fail(what + " does not end")
		return ""
	}
	p.at += len(text) + len(end)
	return text
}

// space skips white space, and reports whether there was any.
func (p *parser) space() bool {
	from := p.at
	p.at = len(p.in) - len(strings.TrimLeft(p.rest(), space))
	return p.at > from
}

// between skips what may be beside the root element: white space and comments.
func (p *parser) between() {
	for p.space() || p.comment() {
	}
}

func (p *parser) comment() bool {
	if !p.take("<!--") {
		return false
	}
	if p.until("--", "a comment"); !p.take(">") {
		p.fail("two hyphens in a comment")
	}
	return p.err == nil
}

// element reads an element with its content.
func (p *parser) element(parent *element, depth int) *element {
	if p.elements++; p.elements > maxElements || depth > maxDepth {
		p.fail("too many elements, or nested too deep")
	}
	if !p.take("<") {
		p.fail("an element is missing, or something that trusted lists do not use is in its place")
		return nil
	}
	e, inForce := &element{parent: parent}, len(p.scope)
	start := p.qualified()
	empty := p.startTag(e)
	e.name = p.resolve(start, true)
	if !empty {
		p.content(e, depth)
		if p.take(start.String()); p.err == nil {
			p.space()
		}
		if !p.take(">") {
			p.fail("the end tag of " + start.String() + " is missing")
		}
	}
	p.scope = p.scope[:inForce]
	return e
}

// startTag reads attributes and namespace declarations, and reports whether the element is empty.
func (p *parser) startTag(e *element) (empty bool) {
	for p.err == nil {
		spaced := p.space()
		switch {
		case p.take(">"):
			p.resolveAttributes(e)
			return false
		case p.take("/>"):
			p.resolveAttributes(e)
			return true
		case !spaced:
			p.fail("an attribute without a space before it")
		case len(e.attributes)+len(e.declared) == maxAttributes:
			p.fail("too many attributes")
		}
		p.attribute(e)
	}
	return false
}

func (p *parser) attribute(e *element) {
	n := p.qualified()
	p.space()
	if !p.take("=") {
		p.fail("an attribute without a value")
	}
	p.space()
	quote := `"`
	if !p.take(quote) {
		if quote = "'"; !p.take(quote) {
			p.fail("an attribute whose value is not quoted")
		}
	}
	value := p.attributeValue(p.until(quote, "an attribute's value"))
	switch {
	case n.prefix == "" && n.local == "xmlns":
		p.declare(e, namespace{"", value})
	case n.prefix == "xmlns":
		p.declare(e, namespace{n.local, value})
	default:
		e.attributes = append(e.attributes, attribute{n, value})
	}
}

// attributeValue turns literal white space into spaces, as XML 1.0, 3.3.3 demands, and resolves references.
func (p *parser) attributeValue(raw string) string {
	if strings.Contains(raw, "<") {
		p.fail("< in an attribute's value")
	}
	return p.references(strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' {
			return ' '
		}
		return r
	}, raw))
}

// declare puts a namespace in force (Namespaces in XML 1.0, 3). A relative namespace has no canonical form.
func (p *parser) declare(e *element, n namespace) {
	switch {
	case n.prefix == "xmlns", n.uri == "http://www.w3.org/2000/xmlns/", (n.prefix == "xml") != (n.uri == xmlNamespace):
		p.fail("a namespace that is reserved is declared")
	case n.prefix != "" && n.uri == "", n.uri != "" && !strings.Contains(n.uri, ":"):
		p.fail("an invalid namespace is declared")
	case slices.ContainsFunc(e.declared, func(d namespace) bool { return d.prefix == n.prefix }):
		p.fail("a prefix is declared twice")
	case len(p.scope) == maxNamespaces:
		p.fail("too many namespaces")
	}
	e.declared, p.scope = append(e.declared, n), append(p.scope, n)
}

// resolveAttributes gives attributes their namespaces. It refuses repeated attributes in an element and repeated
// identifiers in the document.
func (p *parser) resolveAttributes(e *element) {
	for i, a := range e.attributes {
		a.name = p.resolve(a.name, false)
		if slices.ContainsFunc(e.attributes[:i], func(b attribute) bool { return b.is(a.space, a.local) }) {
			p.fail("an attribute is there twice")
		}
		if strings.EqualFold(a.local, "id") && (a.space == "" || a.space == xmlNamespace) {
			if p.ids[a.value] {
				p.fail("an identifier is there twice")
			}
			p.ids[a.value] = true
		}
		e.attributes[i] = a
	}
}

// resolve finds the namespace of a name: without a prefix, elements are in the default namespace and attributes in
// none.
func (p *parser) resolve(n name, element bool) name {
	if n.prefix == "xml" {
		n.space = xmlNamespace
		return n
	}
	if n.prefix == "" && !element {
		return n
	}
	for _, d := range slices.Backward(p.scope) {
		if d.prefix == n.prefix {
			n.space = d.uri
			return n
		}
	}
	if n.prefix != "" {
		p.fail("the prefix " + n.prefix + " is not declared")
	}
	return n
}

func (p *parser) qualified() (n name) {
	n.local = p.name()
	if p.take(":") {
		n.prefix, n.local = n.local, p.name()
	}
	return n
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	inNames = letters + "0123456789-."
)

func (p *parser) name() string {
	name := p.rest()
	name = name[:len(name)-len(strings.TrimLeft(name, inNames))]
	if p.err == nil && (name == "" || !strings.Contains(letters, name[:1])) {
		p.fail("a name is missing, or not in ASCII")
	}
	p.at += len(name)
	return name
}

// content reads the content of an element and the start of its end tag.
func (p *parser) content(e *element, depth int) {
	for p.err == nil {
		end := strings.IndexByte(p.rest(), '<')
		if end < 0 {
			p.fail("an element does not end")
			return
		}
		if end > 0 {
			e.add(p.characters(p.rest()[:end]))
			p.at += end
		}
		switch {
		case p.take("</"):
			return
		case p.comment():
		case p.take("<![CDATA["):
			e.add(p.until("]]>", "a CDATA section"))
		default:
			e.children = append(e.children, node{element: p.element(e, depth+1)})
		}
	}
}

func (e *element) add(text string) { e.children = append(e.children, node{text: text}) }

func (p *parser) characters(raw string) string {
	if strings.Contains(raw, "]]>") {
		p.fail("]]> in a text")
	}
	return p.references(raw)
}

// references replaces references by the characters that they stand for. Only XML's own five entities are allowed.
func (p *parser) references(raw string) string {
	if !strings.Contains(raw, "&") {
		return raw
	}
	var text strings.Builder
	for {
		before, after, found := strings.Cut(raw, "&")
		text.WriteString(before)
		if !found {
			return text.String()
		}
		reference, rest, found := strings.Cut(after, ";")
		if r, known := referred(reference); found && known {
			text.WriteRune(r)
		} else {
			p.fail("a reference to an entity that is not known")
			return ""
		}
		raw = rest
	}
}

// entities are XML's own.
var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

func referred(reference string) (r rune, known bool) {
	if r, known = entities[reference]; known {
		return r, true
	}
	digits, base := strings.TrimPrefix(reference, "#"), 10
	if hex, found := strings.CutPrefix(digits, "x"); found {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	return rune(n), err == nil && len(digits) < len(reference) && n <= utf8.MaxRune && isCharacter(rune(n))
}

// A method is a canonical form of XML, without comments.
type method bool

const (
	exclusive method = false // Exclusive XML Canonicalization 1.0, without a list of prefixes
	inclusive method = true  // Canonical XML 1.0
)

// canonical returns the canonical form of an element with its content, without omit, which may be nil.
func canonical(apex *element, m method, omit *element) []byte {
	w := &writer{method: m, apex: apex, omit: omit}
	w.element(apex, nil)
	return w.out
}

type writer struct {
	method
	apex, omit *element
	out        []byte
}

// element writes e. It declares those namespaces that no surrounding element has declared with the same value.
func (w *writer) element(e *element, around []namespace) {
	w.text("<", e.name.String())
	for _, n := range w.namespaces(e) {
		if n.prefix == "xml" || inForce(around, n.prefix) == n.uri {
			continue
		}
		around = append(around[:len(around):len(around)], n)
		w.namespace(n)
	}
	for _, a := range w.attributes(e) {
		w.text(" ", a.name.String(), `="`)
		w.escaped(a.value, attributeEscapes)
		w.text(`"`)
	}
	w.text(">")
	for _, child := range e.children {
		switch {
		case child.element == nil:
			w.escaped(child.text, textEscapes)
		case child.element != w.omit:
			w.element(child.element, around)
		}
	}
	w.text("</", e.name.String(), ">")
}

func inForce(declared []namespace, prefix string) string {
	for _, d := range slices.Backward(declared) {
		if d.prefix == prefix {
			return d.uri
		}
	}
	return ""
}

// namespaces returns the namespaces that may have to be declared at e, sorted by prefix. Exclusive: those used by its
// own name and its attributes' names. Inclusive: those that e declares and, for the apex, those in force there.
func (w *writer) namespaces(e *element) (list []namespace) {
	if w.method == exclusive {
		list = append(list, namespace{e.prefix, e.space})
		for _, a := range e.attributes {
			if a.prefix != "" {
				list = append(list, namespace{a.prefix, a.space})
			}
		}
	} else {
		list = slices.Clone(e.declared)
		for outer := e.parent; e == w.apex && outer != nil; outer = outer.parent {
			for _, n := range outer.declared {
				if !slices.ContainsFunc(list, func(m namespace) bool { return m.prefix == n.prefix }) {
					list = append(list, n)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b namespace) int { return cmp.Compare(a.prefix, b.prefix) })
	return slices.Compact(list)
}

func (w *writer) namespace(n namespace) {
	w.text(" xmlns")
	if n.prefix != "" {
		w.text(":", n.prefix)
	}
	w.text(`="`)
	w.escaped(n.uri, attributeEscapes)
	w.text(`"`)
}

// attributes returns the attributes of e, sorted by namespace and name. Inclusive: the apex also has the xml:
// attributes of the elements around it.
func (w *writer) attributes(e *element) []attribute {
	list := e.attributes
	if w.method == inclusive && e == w.apex {
		list = slices.Clone(list)
		for outer := e.parent; outer != nil; outer = outer.parent {
			for _, a := range outer.attributes {
				if a.space == xmlNamespace && !slices.ContainsFunc(list, func(b attribute) bool { return b.is(a.space, a.local) }) {
					list = append(list, a)
				}
			}
		}
	}
	order := func(a, b attribute) int { return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.local, b.local)) }
	if !slices.IsSortedFunc(list, order) {
		list = slices.Clone(list)
		slices.SortFunc(list, order)
	}
	return list
}

func (w *writer) text(parts ...string) {
	for _, part := range parts {
		w.out = append(w.out, part...)
	}
}

// Replacements for characters (Canonical XML 1.0, 1.1).
var (
	textEscapes      = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#xD;")
	attributeEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;", "\t", "&#x9;", "\n", "&#xA;", "\r", "&#xD;")
)

func (w *writer) escaped(text string, escapes *strings.Replacer) { w.text(escapes.Replace(text)) }
