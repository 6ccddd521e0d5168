// Package must ends a test when a step that the test needs fails, and reports errors that a test does not want.
package must

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns what a function returned, unless that was an error: must.Get(os.ReadFile(file))(t).
func Get[V any](value V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		Do(t, err)
		return value
	}
}

// Hold reports what does not hold, and goes on.
func Hold(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// Need ends the test with what does not hold.
func Need(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// Want reports an error that is not the wanted one, which may be nil, and goes on. What it is about is told before it.
func Want(t testing.TB, err, want error, about ...any) {
	t.Helper()
	Hold(t, errors.Is(err, want), "%serror %v, want %v", told(about), err, want)
}

// told is what a report begins with.
func told(about []any) string {
	if len(about) == 0 {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintln(about...), "\n") + ": "
}

// Fail is Want for a function that returns more: must.Fail(t, fs.ErrNotExist)(os.ReadFile(file)).
func Fail(t testing.TB, want error, about ...any) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		Want(t, err, want, about...)
	}
}

// Say reports that there is no error, or one that does not say this, and goes on.
func Say(t testing.TB, err error, says string, about ...any) {
	t.Helper()
	Hold(t, err != nil && strings.Contains(err.Error(), says), "%serror %v, want one that says %q", told(about), err, says)
}

// Refuse is Say for a function that returns more.
func Refuse(t testing.TB, says string, about ...any) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		Say(t, err, says, about...)
	}
}

// Equal reports a value that is not the wanted one, and goes on.
func Equal[V comparable](t testing.TB, got, want V, about ...any) {
	t.Helper()
	Hold(t, got == want, "%sgot %v, want %v", told(about), got, want)
}

// Len ends the test unless a list has n elements, which the test goes on to read.
func Len[S ~[]E, E any](t testing.TB, list S, n int) {
	t.Helper()
	Need(t, len(list) == n, "%d elements, want %d: %v", len(list), n, list)
}

// Give is Equal for what a function returns without an error: must.Give(l.Size(ctx))(t, 3).
func Give[V comparable](got V, err error) func(t testing.TB, want V, about ...any) {
	return func(t testing.TB, want V, about ...any) {
		t.Helper()
		Want(t, err, nil, about...)
		Equal(t, got, want, about...)
	}
}

// Contain reports each part that a text does not have, and goes on.
func Contain(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		Hold(t, strings.Contains(text, part), "there is no %q in %.2000s", part, text)
	}
}
