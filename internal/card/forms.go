package card

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// withoutDefaults makes the form Defaults. Within a required list nothing is left out but its elements' own defaults.
func withoutDefaults(card map[string]any, name, at string) (map[string]any, error) {
	return walk(card, name, at, func(f *field, value any) (any, bool) {
		if f == nil {
			return value, true
		}
		return value, value != nil && (f.required || f.optional || !empty(value))
	})
}

// onlyKnown leaves out what the schema does not know, and booleans that have their default.
func onlyKnown(card map[string]any, name, at string) (map[string]any, error) {
	return walk(card, name, at, func(f *field, value any) (any, bool) {
		return value, f != nil && value != nil && (f.optional || value != any(false))
	})
}

// empty reports whether a value is its type's default.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// emptied leaves out every null and every empty text, list and object, from the inside out; nil if nothing is left.
func emptied(value any) any {
	switch v := value.(type) {
	case string:
		if v == "" {
			return nil
		}
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			if left := emptied(one); left != nil {
				out = append(out, left)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for member, one := range v {
			if left := emptied(one); left != nil {
				out[member] = left
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return value
}

// uncovered collects what onlyKnown and emptied leave out and a reader could miss.
func uncovered(message map[string]any, name, at string, found *[]string) {
	for member, value := range message {
		here := at + "/" + pointer(member)
		f, known := schema[name][member]
		switch {
		case !known, emptied(value) == nil:
			*found = append(*found, here)
		case f.kind == one:
			if inner, ok := value.(map[string]any); ok {
				uncovered(inner, f.of, here, found)
			}
		case f.kind == list, f.kind == table:
			for key, inner := range children(value) {
				if inner, ok := inner.(map[string]any); ok {
					uncovered(inner, f.of, here+"/"+key, found)
				}
			}
		}
	}
}

// children are the elements of a list or the members of an object, by their place in a JSON pointer.
func children(value any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		switch v := value.(type) {
		case []any:
			for i, one := range v {
				if !yield(strconv.Itoa(i), one) {
					return
				}
			}
		case map[string]any:
			for _, member := range slices.Sorted(maps.Keys(v)) {
				if !yield(pointer(member), v[member]) {
					return
				}
			}
		}
	}
}

// firstDifference is the place of the first member of a card that two of its forms do not have alike, or "".
func firstDifference(card, a, b any, at string) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	if a == nil || b == nil {
		return at
	}
	inA, inB := maps.Collect(children(a)), maps.Collect(children(b))
	for key, inner := range children(card) {
		if place := firstDifference(inner, inA[key], inB[key], at+"/"+key); place != "" {
			return place
		}
	}
	return at
}

func allTexts(values iter.Seq[any], wrong error) error {
	for value := range values {
		if _, ok := value.(string); !ok {
			return fmt.Errorf("%w: want texts", wrong)
		}
	}
	return nil
}

// pointer escapes a member's name for a JSON pointer (RFC 6901).
func pointer(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }
