package importing

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"jurat/evidence/observed"
	"jurat/internal/must"
)

// TestLong: a file is read in a bounded memory, however many entries it has: of one that is sealed nothing is held.
func TestLong(t *testing.T) {
	const entries, size, most = 400, 20_000, 40 // at most one with each sealer, one before it, and a few that are read
	path := filepath.Join(t.TempDir(), "s.json")
	file := must.Get(os.Create(path))(t)
	w := bufio.NewWriter(file)
	fmt.Fprint(w, `{"evalId":"e","results":{"results":[`)
	for i := range entries {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, `{"id":"r%d","prompt":{"raw":"q %d"},"response":{"output":%q}}`, i, i, strings.Repeat("x", size))
	}
	fmt.Fprint(w, `]}}`)
	must.Do(t, w.Flush())
	must.Do(t, file.Close())
	f := must.Get(Open(path, Unknown))(t)
	defer f.Close() //nolint:errcheck // a test
	o := newBook().options()
	o.Sealed = func(context.Context, string) (*Sealed, error) { return nil, nil }
	o.Seal = func(context.Context, string, observed.Act) error { return nil }
	o.Workers = 16
	s := newSealers(context.Background(), f, &o)
	var seen []weak.Pointer[byte]
	tally, err := f.walk(context.Background(), &o, func(e *Exchange, id string) error {
		if seen = append(seen, weak.Make(&e.units[0].raw[0])); len(seen)%100 == 0 {
			runtime.GC()
			if held := slices.DeleteFunc(slices.Clone(seen), func(p weak.Pointer[byte]) bool { return p.Value() == nil }); len(held) > most {
				t.Errorf("of %d entries %d are held", len(seen), len(held))
			}
		}
		return s.take(e, id)
	})
	sealed, failed := s.wait()
	if err != nil || failed != nil || sealed != entries {
		t.Fatalf("%+v, %v, %d sealed, %v", tally, err, sealed, failed)
	}
}
