package fault_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"jurat/internal/kit/fault"
	"jurat/internal/test/must"
)

func TestGuard(t *testing.T) {
	var list []int
	for name, test := range map[string]struct {
		do   func() error
		is   error
		says string
	}{
		"an index":     {func() error { _ = list[len(name(t))]; return nil }, fault.ErrFault, "index out of range"},
		"an error":     {func() error { panic(io.ErrUnexpectedEOF) }, io.ErrUnexpectedEOF, "TestGuard"},
		"a long text":  {func() error { panic(strings.Repeat("é", 1000)) }, fault.ErrFault, "…"},
		"passed on":    {func() error { panic(&fault.Error{Value: "x", Where: "another goroutine"}) }, fault.ErrFault, "another goroutine"},
		"no panic":     {func() error { return io.EOF }, io.EOF, "EOF"},
		"in a library": {func() error { return fault.Guard(func() error { panic("deeper") }) }, fault.ErrFault, "deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fault.Guard(test.do)
			must.Hold(t, errors.Is(err, test.is) && strings.Contains(err.Error(), test.says) && len(err.Error()) <= 600, "%v", err)
		})
	}
	must.Want(t, fault.Guard(func() error { return nil }), nil)
}

func name(t *testing.T) string { return t.Name() }
