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

	"jurat/evidence"
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

// FuzzImport: whatever is in a file, it is read or refused; what is sealed is what a record can hold, and of the same file nothing is sealed twice.
func FuzzImport(f *testing.F) {
	for _, seed := range []string{claudeSession + claudeMore, codexSession, `[{"mapping":{}}]`,
		`{"evalId":"ev","results":{"results":[` + promptfooResult + `,` + promptfooFailed + `,` + promptfooTurns + `]}}`, promptfooResult + "\n" + promptfooTurns,
		`{"eval":` + inspectEval + `,"samples":[` + inspectSample + `]}`,
		`[{"role":"user","content":"Hi"}]`, `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}`, "{}\n{}", string(packed(f, "samples/s1_epoch_1.json", inspectSample))} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "file")
		must.Do(t, os.WriteFile(path, data, 0o600))
		file, err := Open(path, Unknown)
		if err != nil {
			return
		}
		defer file.Close() //nolint:errcheck // a test
		b := newBook()
		o := b.options()
		if checked, err := Check(context.Background(), file, o); err != nil || checked.New == 0 {
			return
		}
		seal := o.Seal
		o.Seal = func(ctx context.Context, id string, act observed.Act) error {
			if evidence.DigestOf(act.Request.Kept) != act.Request.SHA256 || evidence.CheckName(act.ChainID) != nil {
				t.Errorf("%s: %q", id, act.ChainID)
			}
			return seal(ctx, id, act)
		}
		first, err := Seal(context.Background(), file, o)
		if err != nil || first.New != len(b.order) {
			t.Fatalf("%+v, %v, %d records", first, err, len(b.order))
		}
		again, err := Check(context.Background(), file, o)
		if err != nil || again.New != 0 || again.Known != first.New+first.Known || again.Changed != first.Changed {
			t.Fatalf("again: %+v, %v; first %+v", again, err, first)
		}
	})
}
