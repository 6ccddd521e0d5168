package importing

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
)

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
