package jury

import (
	"errors"
	"fmt"
)

var (
	// A juror or judge returns ErrBlocked when its provider's safety filter kept it from answering.
	ErrBlocked = errors.New("blocked by the provider's safety filter")
	// A juror or judge returns ErrCeiling when it was not asked because the trial had reached its cost ceiling.
	ErrCeiling = errors.New("the ceiling on the trial's cost is reached")
	// ErrInvalid is in the chain of every error about an answer that does not count.
	ErrInvalid = errors.New("invalid answer")
)

// A FieldError names the wrong field of an answer or of settings, as a path like seats[1].jurorId.
type FieldError struct {
	Field  string
	Reason string

	rule string // which the field breaks in an answer; "": RuleAnswer
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// wrong returns a FieldError. Like all constructors of errors here, its result type is error, so that nil stays nil.
func wrong(field, format string, args ...any) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// within prefixes the field of an error with another field.
func within(field string, err error) error {
	if err == nil {
		return nil
	}
	var inner *FieldError
	if errors.As(err, &inner) {
		return &FieldError{Field: field + "." + inner.Field, Reason: inner.Reason, rule: inner.rule}
	}
	return wrong(field, "%v", err)
}

// ruleOf returns the rule that an invalid answer breaks.
func ruleOf(err error) string {
	var field *FieldError
	if errors.As(err, &field) && field.rule != "" {
		return field.rule
	}
	return RuleAnswer
}

// invalid marks an error as one about an answer.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}
