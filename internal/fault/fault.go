// Package fault makes a panic in a reader of foreign bytes an error: one file must not end the program, nor a server that reads it
// for somebody else.
package fault

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// ErrFault says that the program itself failed on what it read. That says nothing of what was read, neither good nor bad.
var ErrFault = errors.New("could not be read: the program failed on it")

// An Error is a panic that was caught. It has ErrFault in its chain.
type Error struct {
	Value any    // what the panic said
	Where string // the function that failed, and its line
}

func (e *Error) Error() string {
	return fmt.Sprintf("%v (%s in %s): nothing was found out about it; please report this, with the file", ErrFault, clip(fmt.Sprint(e.Value)), e.Where)
}

// Unwrap gives the error that the panic was about, if it was about one.
func (e *Error) Unwrap() []error {
	if err, ok := e.Value.(error); ok {
		return []error{ErrFault, err}
	}
	return []error{ErrFault}
}

// Guard returns what do returns, or an *Error if do panics. It guards the goroutine that calls it, and no other.
func Guard(do func() error) (err error) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case *Error: // that was caught in another goroutine, and passed on
			err = value
		default:
			err = &Error{Value: value, Where: where()}
		}
	}()
	return do()
}

// where finds the first function above the panic that is not the runtime's.
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

const maxValue = 200 // bytes of what a panic says: it may quote what was read

func clip(text string) string {
	if len(text) > maxValue {
		text = strings.ToValidUTF8(text[:maxValue], "") + "…"
	}
	return text
}
