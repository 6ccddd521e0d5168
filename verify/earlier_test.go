package verify_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"jurat/verify"
)

// notProvedAnyMore names the vectors that earlier programs proved and this one deliberately does not, with the
// guarantee and the rule. What a refuted guarantee bears is not proved, by the same rule.
var notProvedAnyMore = map[string]struct {
	guarantee verify.Guarantee
	rule      string
	status    verify.Status
}{
	// A juror's answer is by another model than that of its seat, and the judgment says that nothing degrades the trial.
	"forged-another-model": {verify.Verdict, "verdict", verify.Refuted},
	// The key is not signed in a package, and only the signature is stamped. Under a trust file that does not say since when the key was
	// known, both can be chosen after the stamp.
}

// TestEarlierVectors: this program proves everything that earlier programs proved, except notProvedAnyMore.
func TestEarlierVectors(t *testing.T) {
	files := unpack(t, filepath.Join("..", "testdata", "earlier", "vectors.tar.gz"))
	var m vectorManifest
	if err := json.Unmarshal(files["manifest.json"], &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Verifications) == 0 {
		t.Fatal("there are no vectors")
	}
	met := map[string]bool{}
	for _, v := range m.Verifications {
		if strings.HasPrefix(v.Name, "package-") || strings.HasPrefix(v.Name, "envelope-") {
			continue // .aep and DSSE are out
		}
		report, refused := reportOnVector(t, files, v)
		if refused {
			t.Errorf("%s was proved, and is refused", v.Name)
			continue
		}
		but, excepted := notProvedAnyMore[v.Name]
		met[v.Name] = excepted
		want := verify.Proved
		if excepted {
			want = but.status
		}
		if report.Outcome != want {
			t.Errorf("%s was proved, and is %s: %+v", v.Name, report.Outcome, report)
		}
		for _, was := range v.Report.Guarantees {
			now := findingOf(report, was.Guarantee)
			switch {
			case was.Status != verify.Proved || now.Status == verify.Proved:
			case excepted && now.Guarantee == but.guarantee && now.Status == but.status && now.Rule == but.rule:
			case excepted && but.status == verify.Refuted && now.Status == verify.NotProved && now.Rule == but.rule:
			default:
				t.Errorf("%s: %s was proved, and is %+v", v.Name, was.Guarantee, now)
			}
		}
	}
	for name := range notProvedAnyMore {
		if !met[name] {
			t.Errorf("there is no vector %s", name)
		}
	}
}

func findingOf(r *expectedReport, g verify.Guarantee) expectedFinding {
	for _, f := range r.Guarantees {
		if f.Guarantee == g {
			return f
		}
	}
	return expectedFinding{}
}

// unpack returns the files of a .tar.gz by name.
func unpack(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[path.Clean(header.Name)], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
