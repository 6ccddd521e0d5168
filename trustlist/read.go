package trustlist

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A reader takes values out of a tree. After its first failure it returns nothing, so a structure can be read as a
// list of its members, and the caller checks the error once.
type reader struct{ err error }

func (r *reader) fail(e *element, format string, args ...any) {
	if r.err == nil {
		where := ""
		for ; e != nil; e = e.parent {
			where = "/" + e.local + where
		}
		r.err = fmt.Errorf("%w: %s: %s", ErrMalformed, where, fmt.Sprintf(format, args...))
	}
}

// elements returns the child elements of e. It fails if there is text between them.
func (r *reader) elements(e *element) (list []*element) {
	if e == nil || r.err != nil {
		return nil
	}
	for _, child := range e.children {
		if child.element != nil {
			list = append(list, child.element)
		} else if strings.Trim(child.text, " \t\r\n") != "" {
			r.fail(e, "a text between elements")
		}
	}
	return list
}

// all returns the elements of one name within e.
func (r *reader) all(e *element, space, local string) (list []*element) {
	for _, child := range r.elements(e) {
		if child.is(space, local) {
			list = append(list, child)
		}
	}
	return list
}

// maybe returns the only element of a name within e, or nil.
func (r *reader) maybe(e *element, space, local string) *element {
	list := r.all(e, space, local)
	if len(list) > 1 {
		r.fail(e, "%s is there %d times", local, len(list))
	}
	if len(list) != 1 {
		return nil
	}
	return list[0]
}

// only returns the only element of a name within e. With several names, each is looked up within the one before.
func (r *reader) only(e *element, space string, path ...string) *element {
	for _, local := range path {
		found := r.maybe(e, space, local)
		if found == nil {
			r.fail(e, "%s is missing", local)
		}
		e = found
	}
	return e
}

// exactly returns the elements of e, which must have these names in this order.
func (r *reader) exactly(e *element, space string, locals ...string) []*element {
	list := r.elements(e)
	if r.err == nil && len(list) != len(locals) {
		r.fail(e, "it holds %d elements, want %s", len(list), strings.Join(locals, ", "))
	}
	for i := 0; r.err == nil && i < len(list); i++ {
		if !list[i].is(space, locals[i]) {
			r.fail(e, "it holds %s, want %s", list[i].local, locals[i])
		}
	}
	if r.err != nil {
		return make([]*element, len(locals))
	}
	return list
}

// value returns the text of an element without child elements, without white space around it.
func (r *reader) value(e *element) string {
	if e == nil || r.err != nil {
		return ""
	}
	var text strings.Builder
	for _, child := range e.children {
		if child.element != nil {
			r.fail(e, "it holds an element, want a text")
		}
		text.WriteString(child.text)
	}
	return strings.Trim(text.String(), " \t\r\n")
}

// values returns the values of all elements of one name within e.
func (r *reader) values(e *element, space, local string) (list []string) {
	for _, child := range r.all(e, space, local) {
		list = append(list, r.value(child))
	}
	return list
}

func (r *reader) number(e *element) int {
	n, err := strconv.ParseUint(r.value(e), 10, 31)
	if err != nil {
		r.fail(e, "it is not a whole number")
	}
	return int(n)
}

func (r *reader) time(e *element) time.Time {
	t, err := time.Parse(time.RFC3339, r.value(e))
	if err != nil {
		r.fail(e, "it is not a time with its zone")
	}
	return t.UTC()
}

func (r *reader) bytes(e *element) []byte {
	data, err := decode(r.value(e))
	if err != nil || len(data) == 0 {
		r.fail(e, "it is not base64")
	}
	return data
}

// decode reads base64 with white space anywhere.
func decode(text string) ([]byte, error) {
	return base64.StdEncoding.Strict().DecodeString(strings.Join(strings.Fields(text), ""))
}

// attributeOf returns the value of an attribute without a namespace.
func (r *reader) attributeOf(e *element, local string) string {
	if e == nil || r.err != nil {
		return ""
	}
	for _, a := range e.attributes {
		if a.is("", local) {
			return a.value
		}
	}
	r.fail(e, "the attribute %s is missing", local)
	return ""
}
