package trustlist

import (
	"cmp"
	"slices"
	"strings"
)

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
