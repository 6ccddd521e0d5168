package eulist

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
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

// A parser builds the tree of a document. Package xml splits the text into tokens and resolves references; what it lets pass and trusted lists do not use is
// refused here, so that a document has one meaning: document types, processing instructions, names beyond ASCII. After its first failure the parser reads
// nothing more.
type parser struct {
	in              []byte
	tokens          *xml.Decoder
	err             error
	elements, depth int
	inForce         int // namespaces that the elements around declare
	ids             map[string]bool
}

// parseXML reads a document and returns its root.
func parseXML(raw []byte) (*element, error) {
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrMalformed, MaxSize)
	}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	p := &parser{in: raw, tokens: xml.NewDecoder(bytes.NewReader(raw)), ids: map[string]bool{}}
	if !utf8.Valid(raw) || bytes.ContainsFunc(raw, isForbidden) { // in comments, too, which package xml does not read
		p.fail("a character that XML does not allow")
	}
	root := p.document()
	return root, p.err
}

// isForbidden reports whether a character of UTF-8 is no Char of XML 1.0, 2.2.
func isForbidden(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff
}

func (p *parser) fail(what string) {
	if p.err == nil {
		line, _ := p.tokens.InputPos()
		p.err = fmt.Errorf("%w in line %d: %s", ErrMalformed, line, what)
	}
}

// document reads all tokens.
func (p *parser) document() (root *element) {
	var at *element // whose content is next; nil: what may be beside the root
	for p.err == nil {
		from := p.tokens.InputOffset()
		token, err := p.tokens.RawToken()
		raw := p.in[from:p.tokens.InputOffset()]
		switch token := token.(type) {
		case xml.StartElement:
			if at == nil && root != nil {
				p.fail("something after the root element")
			}
			at = p.start(at, token, string(raw))
			root = cmp.Or(root, at)
		case xml.EndElement:
			at = p.end(at, token.Name)
		case xml.CharData:
			p.text(at, string(token), raw)
		case xml.ProcInst:
			if from > 0 || !declaration.Match(raw) {
				p.fail("a processing instruction, or a declaration that is not of XML 1.0 in UTF-8")
			}
		case xml.Directive:
			p.fail("a document type")
		case nil:
			if syntax, is := errors.AsType[*xml.SyntaxError](err); is {
				p.fail(syntax.Msg)
			} else if err != io.EOF {
				p.fail(err.Error())
			} else if root == nil || at != nil {
				p.fail("an element is missing, or does not end")
			}
			return root
		}
	}
	return root
}

// declaration is that of XML 1.0 in UTF-8.
var declaration = regexp.MustCompile(`^<\?xml\s+version\s*=\s*(?:"1\.0"|'1\.0')` +
	`(?:\s+encoding\s*=\s*(?:"(?i:UTF-8)"|'(?i:UTF-8)'))?(?:\s+standalone\s*=\s*(?:"(?:yes|no)"|'(?:yes|no)'))?\s*\?>$`)

// text adds a text to an element. raw is how it is written.
func (p *parser) text(e *element, text string, raw []byte) {
	switch {
	case e == nil && len(bytes.Trim(raw, " \t\r\n")) > 0:
		p.fail("a text beside the root element")
	case e != nil:
		p.check(strings.Count(text, replacement), raw)
		e.children = append(e.children, node{text: text})
	}
}

const replacement = "\ufffd"

// check refuses references to surrogates, for which package xml puts the replacement character. read is how many of these it returned.
func (p *parser) check(read int, raw []byte) {
	if read != bytes.Count(raw, []byte(replacement)) {
		p.fail("a reference to a character that XML does not allow")
	}
}

// start reads a start tag.
func (p *parser) start(parent *element, token xml.StartElement, tag string) *element {
	p.elements++
	p.depth++
	switch {
	case p.elements > maxElements || p.depth > maxDepth:
		p.fail("too many elements, or nested too deep")
	case len(token.Attr) > maxAttributes:
		p.fail("too many attributes")
	case !spaced(tag):
		p.fail("an attribute without a space before it")
	}
	if p.err != nil {
		return nil // comparing a million attributes would take hours
	}
	e := &element{parent: parent}
	replaced := 0
	for _, a := range p.withSpaces(token, tag).Attr {
		replaced += strings.Count(a.Value, replacement)
		switch n := p.name(a.Name); {
		case n.prefix == "" && n.local == "xmlns":
			p.declare(e, namespace{"", a.Value})
		case n.prefix == "xmlns":
			p.declare(e, namespace{n.local, a.Value})
		default:
			e.attributes = append(e.attributes, attribute{n, a.Value})
		}
	}
	p.check(replaced, []byte(tag))
	e.name = p.resolve(e, p.name(token.Name), true)
	p.resolveAttributes(e)
	if parent != nil {
		parent.children = append(parent.children, node{element: e})
	}
	return e
}

// spaced reports whether white space separates the attributes of a start tag.
func spaced(tag string) bool {
	for {
		i := strings.IndexAny(tag, `"'`)
		if i < 0 {
			return true
		}
		_, tag, _ = strings.Cut(tag[i+1:], tag[i:i+1])
		if !strings.ContainsAny(tag[:1], " \t\r\n/>") {
			return false
		}
	}
}

var spaces = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ", "\t", " ")

// withSpaces turns literal white space in the values of attributes into spaces, as XML 1.0, 3.3.3 demands. White space that is a reference stays.
func (p *parser) withSpaces(token xml.StartElement, tag string) xml.StartElement {
	if !strings.ContainsAny(tag, "\t\r\n") {
		return token
	}
	again, err := xml.NewDecoder(strings.NewReader(spaces.Replace(tag))).RawToken()
	if err != nil {
		p.fail(err.Error())
		return token
	}
	return again.(xml.StartElement)
}

// end ends an element, and returns the one around it.
func (p *parser) end(e *element, n xml.Name) *element {
	if e == nil || n.Space != e.prefix || n.Local != e.local {
		p.fail("an end tag that is not of its element")
		return nil
	}
	p.depth--
	p.inForce -= len(e.declared)
	return e.parent
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
	case p.inForce == maxNamespaces:
		p.fail("too many namespaces")
	}
	p.inForce++
	e.declared = append(e.declared, n)
}

// resolveAttributes gives attributes their namespaces. It refuses repeated attributes in an element and repeated
// identifiers in the document.
func (p *parser) resolveAttributes(e *element) {
	for i, a := range e.attributes {
		a.name = p.resolve(e, a.name, false)
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
func (p *parser) resolve(e *element, n name, isElement bool) name {
	if n.prefix == "xml" {
		n.space = xmlNamespace
		return n
	}
	if n.prefix == "" && !isElement {
		return n
	}
	for ; e != nil; e = e.parent {
		if i := slices.IndexFunc(e.declared, func(d namespace) bool { return d.prefix == n.prefix }); i >= 0 {
			n.space = e.declared[i].uri
			return n
		}
	}
	if n.prefix != "" {
		p.fail("the prefix " + n.prefix + " is not declared")
	}
	return n
}

var inASCII = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func (p *parser) name(n xml.Name) name {
	if !inASCII.MatchString(n.Local) || n.Space != "" && !inASCII.MatchString(n.Space) {
		p.fail("a name that is not in ASCII")
	}
	return name{prefix: n.Space, local: n.Local}
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
