package jury

import (
	"errors"
	"fmt"
)

var (
	// ErrBlocked is what a juror or judge returns when its provider's safety filter kept it from answering.
	ErrBlocked = errors.New("blocked by the provider's safety filter")
	// ErrCeiling is what a juror or judge returns that was not asked, because the trial had cost what it may.
	ErrCeiling = errors.New("the ceiling on the trial's cost is reached")
	// ErrInvalid is in the chain of every error about an answer that does not count.
	ErrInvalid = errors.New("invalid answer")
)

// A FieldError names the field of an answer or of settings that is wrong, as a path like seats[1].jurorId.
type FieldError struct {
	Field  string
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// wrong makes a FieldError. Like all constructors of errors here it returns an error, so that nil stays nil.
func wrong(field, format string, args ...any) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// within puts the field of an error below another field.
func within(field string, err error) error {
	var inner *FieldError
	if errors.As(err, &inner) {
		return wrong(field+"."+inner.Field, "%s", inner.Reason)
	}
	return wrong(field, "%v", err)
}

// invalid marks an error as one about an answer.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}
