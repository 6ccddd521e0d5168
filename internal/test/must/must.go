// Package must ends a test when a step that the test needs fails, and reports errors that a test does not want.
package must

import (
	"errors"
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

// Want reports an error that is not the wanted one, which may be nil, and goes on.
func Want(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// Fail is Want for a function that returns more: must.Fail(t, fs.ErrNotExist)(os.ReadFile(file)).
func Fail(t testing.TB, want error) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		Want(t, err, want)
	}
}

// Equal reports a value that is not the wanted one, and goes on.
func Equal[V comparable](t testing.TB, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Len ends the test unless a list has n elements, which the test goes on to read.
func Len[S ~[]E, E any](t testing.TB, list S, n int) {
	t.Helper()
	if len(list) != n {
		t.Fatalf("%d elements, want %d: %v", len(list), n, list)
	}
}

// Give is Equal for what a function returns without an error: must.Give(l.Size(ctx))(t, 3).
func Give[V comparable](got V, err error) func(t testing.TB, want V) {
	return func(t testing.TB, want V) {
		t.Helper()
		Want(t, err, nil)
		Equal(t, got, want)
	}
}

// Contain reports each part that a text does not have, and goes on.
func Contain(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in %.2000s", part, text)
		}
	}
}
