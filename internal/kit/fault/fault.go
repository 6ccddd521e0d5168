// Package fault turns a panic in a reader of foreign bytes into an error, so that one file cannot end the program. It also says of an error what failed.
package fault

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// ErrFault says that the program itself failed on its input. The input may be good or bad.
var ErrFault = errors.New("the program failed while reading it")

// An Error is a panic that Guard caught. It has ErrFault in its chain.
type Error struct {
	Value any    // the panic's value
	Where string // the function that panicked, and its line
}

func (e *Error) Error() string {
	return fmt.Sprintf("%v (%s in %s), so it is unknown whether it is good or bad; please report this, with the file", ErrFault, clip(fmt.Sprint(e.Value)), e.Where)
}

// Unwrap returns ErrFault, and the panic's value if that is an error.
func (e *Error) Unwrap() []error {
	if err, ok := e.Value.(error); ok {
		return []error{ErrFault, err}
	}
	return []error{ErrFault}
}

// While adds to an error, if there is one, what failed. A function defers it first: defer fault.While(&err, "reading record %s", id).
func While(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// Guard returns do's error, or an *Error if do panics. It guards only the goroutine that calls it.
func Guard(do func() error) (err error) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case *Error: // a panic that Guard caught in another goroutine, and that was passed on
			err = value
		default:
			err = &Error{Value: value, Where: where()}
		}
	}()
	return do()
}

// where returns the first function above the panic that is not the runtime's.
func where() string {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	panicked := false
	for {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicked && !inRuntime {
			return fmt.Sprintf("%s, line %d", frame.Function, frame.Line)
		}
		panicked = panicked || inRuntime
		if !more {
			return "an unknown place"
		}
	}
}

const maxValue = 200 // the bytes of a panic's value that are shown: it may quote the input

func clip(text string) string {
	if len(text) > maxValue {
		text = strings.ToValidUTF8(text[:maxValue], "") + "…"
	}
	return text
}
