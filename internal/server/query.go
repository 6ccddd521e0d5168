package server

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"jurat/api"
)

// checkQuery refuses unknown and repeated parameters of a query. Otherwise the caller of a mistyped one would take the
// answer to another question for theirs.
func checkQuery(raw string, known []string) error {
	if raw == "" {
		return nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("%w: the query: %w", api.ErrMalformed, err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return fmt.Errorf("%w: query parameter %q: this path has no parameters", api.ErrMalformed, name)
		case !slices.Contains(known, name):
			return fmt.Errorf("%w: query parameter %q: this path has only %s", api.ErrMalformed, name, strings.Join(known, ", "))
		case len(values[name]) > 1:
			return fmt.Errorf("%w: query parameter %q is given %d times", api.ErrMalformed, name, len(values[name]))
		}
	}
	return nil
}
