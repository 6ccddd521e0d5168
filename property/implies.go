package property

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/sigma"
)

// Allows reports whether a value, which is canonical JSON, is one that a statement allows. It
// returns an error if the value, or a number of the statement, is not of the statement's kind. It asks nothing of the statement's
// members, and a set may have a single entry.
func (s *Statement) Allows(value jsontext.Value) (bool, error) {
	if s.Form == In || s.Form == NotIn {
		entries, err := s.entries()
		if err != nil {
			return false, err
		}
		v, err := s.Kind.scalar(value)
		return slices.Contains(entries, v) == (s.Form == In), err
	}
	if err := s.CheckBounds(); err != nil {
		return false, err
	}
	lo, hi, err := s.bounds()
	if err != nil {
		return false, err
	}
	v, err := s.Kind.Number(value)
	return err == nil && lo <= v && v <= hi, err
}

// Implies reports whether each value that s allows is one that the other statement allows. A statement of another kind implies
// nothing, because its numbers mean others.
func (s *Statement) Implies(other *Statement) bool {
	if s.Kind != other.Kind {
		return false
	}
	if s.Form == In {
		return len(s.Set) > 0 && !slices.ContainsFunc(s.Set, func(value jsontext.Value) bool {
			allowed, err := other.Allows(value)
			return err != nil || !allowed
		})
	}
	if other.Form == In || other.Form == NotIn {
		return s.leavesOut(other)
	}
	lo, hi, err := s.bounds()
	if s.Form == NotIn || err != nil {
		return false
	}
	from, to, err := other.bounds()
	return err == nil && other.CheckBounds() == nil && from <= lo && hi <= to
}

// leavesOut reports whether a statement that is no set's allows none of the entries of other, which is of the form not_in. That a range has
// only values of a set is not looked for.
func (s *Statement) leavesOut(other *Statement) bool {
	if other.Form == In {
		return false
	}
	return !slices.ContainsFunc(other.Set, func(value jsontext.Value) bool {
		allowed, err := s.Allows(value)
		return err != nil || allowed
	})
}

func (s *Statement) entries() ([]sigma.Scalar, error) {
	all := make([]sigma.Scalar, len(s.Set))
	for i, value := range s.Set {
		var err error
		if all[i], err = s.Kind.scalar(value); err != nil {
			return nil, err
		}
	}
	return all, nil
}
