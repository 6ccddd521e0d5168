//go:build race

package browsertest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func skipUnderRace(t testing.TB) {
	t.Helper()
	if err := importsThis(t.Name()); err != nil {
		t.Fatalf("%v: so scripts/test does not run it without the race detector", err)
	}
	t.Skip("page tests run without the race detector")
}

// importsThis returns an error unless the test that called it, whose name is given, is in a file that imports this package.
func importsThis(test string) error {
	test, _, _ = strings.Cut(test, "/")
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if !slices.Contains(strings.Split(frame.Function, "."), test) {
			continue
		}
		file := filepath.Base(frame.File) // tests run in the folder of their package
		source, err := os.ReadFile(file)
		if err == nil && !bytes.Contains(source, []byte(`"jurat/internal/test/browsertest"`)) {
			err = fmt.Errorf("%s, which has %s, does not import browsertest", file, test)
		}
		return err
	}
	return fmt.Errorf("%s opens a page in a goroutine of its own", test)
}
