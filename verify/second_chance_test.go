package verify_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/verify"
	"jurat/verify/trust"
)

// TestSecondVerifierOnChains compares the two verifiers on random chains.
func TestSecondVerifierOnChains(t *testing.T) {
	compareVerifiers(t, 200, 10_000, func(t *testing.T, c *chance, i int) given {
		proved := i%20 == 0
		b := c.bundle(t.Context(), proved)
		o := verify.Options{}
		if proved {
			o = c.house.Options(t)
		}
		return givenBundle(t, fmt.Sprintf("chain-%d", i), b, o)
	})
}

// TestSecondVerifierOnTrials compares them on trials in which a clerk changed something.
func TestSecondVerifierOnTrials(t *testing.T) {
	var honest [][]*evidence.Record
	for _, name := range slices.Sorted(maps.Keys(trialPlans())) {
		honest = append(honest, committedTrial(t, name))
	}
	compareVerifiers(t, 60, 3_000, func(t *testing.T, c *chance, i int) given {
		return givenBundle(t, fmt.Sprintf("trial-%d", i), c.trial(t.Context(), honest), verify.Options{})
	})
}

// TestSecondVerifierTogether compares them on random chains in several files.
func TestSecondVerifierTogether(t *testing.T) {
	compareVerifiers(t, 30, 1_000, func(t *testing.T, c *chance, i int) given {
		for {
			parts := c.parts(t.Context())
			o := c.house.Options(t)
			g := givenBundle(t, fmt.Sprintf("parts-%d", i), parts[0], o)
			files := [][]byte{g.file}
			for _, b := range parts[1:] {
				g.with = append(g.with, givenBundle(t, g.name, b, o).file)
			}
			if jointReport(t, append(files, g.with...), o) != nil {
				return g
			}
		}
	})
}

// compareVerifiers makes random files and lets both verifiers judge them: few in a short run, many in a long one.
// JURAT_TEST_SEED sets the start.
func compareVerifiers(t *testing.T, few, many int, next func(t *testing.T, c *chance, i int) given) {
	t.Helper()
	n, seed, _ := chanceOfTest(t, few, many)
	const lot = 250 // files with keys of one house
	for first := 0; first < n; first += lot {
		t.Run(strconv.Itoa(first), func(t *testing.T) {
			c := newChance(t, seed+uint64(first))
			var files []given
			for i := first; i < min(n, first+lot); i++ {
				files = append(files, next(t, c, i))
			}
			compareOver(t, files)
		})
	}
}

// compareOver lets the second verifier judge files, and compares every finding, in order.
func compareOver(t *testing.T, files []given) {
	t.Helper()
	folder := t.TempDir()
	m := vectorManifest{Format: "jurat/vectors/v1"}
	for _, g := range files {
		v := verificationVector{Name: g.name, File: g.name + ".jurat"}
		write(t, folder, v.File, g.file)
		if g.trust != nil {
			v.Trust = g.name + ".trust"
			write(t, folder, v.Trust, g.trust)
			var err error
			if g.o.Trust, err = trust.Parse(g.trust); err != nil { // with its keys in the order in the file
				t.Fatal(err)
			}
		}
		for i, file := range g.with {
			v.With = append(v.With, fmt.Sprintf("%s.with-%d", g.name, i+1))
			write(t, folder, v.With[i], file)
		}
		var r *verify.Report
		var err error
		if len(g.with) > 0 {
			r = jointReport(t, append([][]byte{g.file}, g.with...), g.o)
		} else if r, err = verify.File(g.file, g.o); err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		v.Report = inDetail(r)
		m.Verifications = append(m.Verifications, v)
	}
	doc := must.Get(json.Marshal(m))(t)
	write(t, folder, "manifest.json", doc)
	if kept := os.Getenv("JURAT_TEST_KEEP"); kept != "" {
		defer func() {
			if t.Failed() {
				if err := os.CopyFS(filepath.Join(kept, strings.ReplaceAll(t.Name(), "/", "-")), os.DirFS(folder)); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	var complaints bytes.Buffer
	run := exec.Command(python(t), filepath.Join("..", "testdata", "second-verifier", "vectors.py"), filepath.Join(folder, "manifest.json"))
	run.Stderr = &complaints
	out, err := run.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, complaints.String())
	}
	if found := bytes.Count(out, []byte("\n")); found != len(files) {
		t.Errorf("it judged %d files of %d", found, len(files))
	}
	if bytes.Contains(out, []byte(`"found": {"unsupported"`)) {
		t.Error("the second verifier does not support this input")
	}
}

func write(t *testing.T, folder, name string, content []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
}

// python finds what the second verifier needs. It fails the test if that is missing and nothing may be skipped.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err == nil {
		_, err = exec.LookPath("openssl")
	}
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("the second verifier cannot run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadDir(filepath.Join("..", "testdata", "second-verifier")); err != nil { // so that results of tests are kept only while its files stay the same
		t.Fatal(err)
	}
	return path
}

// TestSecondVerifierOnDeepFiles: a file that is nested very deep is one that cannot be read, and Python does not break down on it.
func TestSecondVerifierOnDeepFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep.jurat")
	write(t, filepath.Dir(file), filepath.Base(file), []byte(`{"format":"jurat/bundle/v1","more":`+strings.Repeat("[", 300_000)+strings.Repeat("]", 300_000)+"}"))
	run := exec.Command(python(t), filepath.Join("..", "testdata", "second-verifier", "verify.py"), file)
	said, err := run.CombinedOutput()
	if run.ProcessState == nil || run.ProcessState.ExitCode() != 2 || !strings.Contains(string(said), "nested too deep") {
		t.Errorf("%v: %s", err, said)
	}
}
