package importing

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"jurat/evidence/observed"
	"jurat/internal/must"
)

// TestLong: a file is read in a bounded memory, however many entries it has: one at a time is held.
func TestLong(t *testing.T) {
	const entries, size = 1_500, 20_000
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
	most, seen := uint64(0), 0
	o.Each = func(Entry) {
		var m runtime.MemStats
		if seen++; seen%100 > 0 {
			return
		}
		if runtime.ReadMemStats(&m); m.HeapAlloc > most {
			most = m.HeapAlloc
		}
	}
	tally, err := Seal(context.Background(), f, o)
	if err != nil || tally.New != entries {
		t.Fatalf("%+v, %v", tally, err)
	}
	if most > entries*size/2 {
		t.Errorf("%d MiB were in use for a file of %d MiB", most>>20, f.Size>>20)
	}
}
