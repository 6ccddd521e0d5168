package evidence

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
)

// Steady gives an error of the JSON library words that are the same in every process. The library says what it refuses in one of
// two ways, which it chooses anew each time that a program starts; a report has to be the same whoever makes it, and when.
func Steady(err error) error {
	var refused *json.SemanticError
	if !errors.As(err, &refused) {
		return err
	}
	return steadyError{err}
}

type steadyError struct{ error }

func (e steadyError) Error() string {
	return strings.ReplaceAll(e.error.Error(), "json: unable to ", "json: cannot ")
}

func (e steadyError) Unwrap() error { return e.error }
