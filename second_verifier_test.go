package jurat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jurat/internal/test/must"
)

var secondVerifier = filepath.Join("testdata", "second-verifier")

// python finds Python with the modules of the second verifier. In CI it must be there; elsewhere the test is skipped.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err == nil {
		_, err = exec.LookPath("openssl")
	}
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("the second verifier cannot run: %v", err)
	}
	must.Do(t, err)
	_, err = os.ReadDir(secondVerifier)
	must.Need(t, err == nil, "%v", err) // so that results of tests are kept only while its files stay the same
	return path
}

// TestSecondVerifier runs a verifier that was written from docs/format.md alone, on all vectors. Its findings must be
// those of the manifests, which are those of package verify.
func TestSecondVerifier(t *testing.T) {
	manifests, err := filepath.Glob(filepath.Join("testdata", "vectors", "*", "manifest.json"))
	must.Need(t, err == nil && len(manifests) == 3, "manifests: %v, %v", manifests, err)
	var output, complaints bytes.Buffer
	run := exec.Command(python(t), append([]string{filepath.Join(secondVerifier, "vectors.py")}, manifests...)...)
	run.Stdout, run.Stderr = &output, &complaints
	err = run.Run()
	must.Need(t, err == nil, "%v\n%s", err, complaints.String())
	compared := map[string]bool{}
	for lines := bufio.NewScanner(&output); lines.Scan(); {
		var answer struct {
			Name   string
			Agrees bool
			Found  struct{ Unsupported string }
		}
		must.Do(t, json.Unmarshal(lines.Bytes(), &answer))
		must.Hold(t, answer.Agrees && (answer.Found.Unsupported != "") == isUnsupported(answer.Name), "%s: %+v", answer.Name, answer)
		compared[answer.Name] = true
	}
	for _, manifest := range manifests {
		for _, name := range vectorNames(t, manifest) {
			must.Hold(t, compared[name], "%s: %s was not looked at", manifest, name)
		}
	}
}

// isUnsupported reports whether a vector needs what the second verifier does not support, as docs/format.md says.
func isUnsupported(name string) bool {
	switch name {
	case "record: action-ml-dsa-65", "record: action-second-signature":
		return true
	}
	if strings.Contains(name, "-under-the-policy-strict-") {
		return true
	}
	if strings.HasSuffix(name, "-flipped-byte") { // its digest says enough
		return false
	}
	return slices.ContainsFunc([]string{"signature-mldsa65-", "revoked-authority-", "qualified-an-authority-that-disagrees-whose-certificates-must-stand", "counted-"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// vectorNames are the names under which the second verifier must answer.
func vectorNames(t *testing.T, manifest string) (names []string) {
	t.Helper()
	doc := must.Get(os.ReadFile(manifest))(t)
	var m struct {
		Records, Bundles, Acts, Observed, Verifications, Properties []struct{ Name string }
		Commitments                                                 []struct{ Pointer string }
		TrustFiles                                                  []struct{ File string } `json:"trust_files"`
	}
	must.Do(t, json.Unmarshal(doc, &m))
	for _, v := range m.Records {
		names = append(names, "record: "+v.Name)
	}
	for _, v := range m.Bundles {
		names = append(names, "bundle: "+v.Name)
	}
	for _, v := range m.Acts {
		names = append(names, "act: "+v.Name)
	}
	for _, v := range m.Observed {
		names = append(names, v.Name)
	}
	for _, v := range m.Properties {
		names = append(names, v.Name)
	}
	for _, v := range m.Commitments {
		names = append(names, "commitment: "+v.Pointer)
	}
	for _, v := range m.TrustFiles {
		names = append(names, v.File)
	}
	for _, v := range m.Verifications {
		names = append(names, v.Name)
	}
	must.Need(t, len(names) >= 10, "%s names only %d vectors", manifest, len(names))
	return names
}

// TestSecondVerifierFindsFaults: the second verifier must report a manifest with wrong findings.
func TestSecondVerifierFindsFaults(t *testing.T) {
	dir := filepath.Join("testdata", "vectors", "verification")
	doc := must.Get(os.ReadFile(filepath.Join(dir, "record-no-token.json")))(t)
	folder := t.TempDir()
	manifest := `{"verifications":[{"name":"x","file":"x.json","report":{"kind":"record","records":1,"outcome":"proved","guarantees":[],"times":[]}}]}`
	for name, content := range map[string][]byte{"x.json": doc, "manifest.json": []byte(manifest)} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	run := exec.Command(python(t), filepath.Join(secondVerifier, "vectors.py"), filepath.Join(folder, "manifest.json"))
	out, err := run.CombinedOutput()
	must.Hold(t, err != nil && strings.Contains(string(out), `"agrees": false`), "%v\n%s", err, out)
}

// TestSecondVerifierCommand runs it as docs/format.md says, and compares its exit codes with the page.
func TestSecondVerifierCommand(t *testing.T) {
	dir := filepath.Join("testdata", "vectors", "verification")
	old := []string{"--at", "2026-02-01T00:00:00Z", "--crl", filepath.Join(dir, "certificate-old-lists.1.crl"), "--crl", filepath.Join(dir, "certificate-old-lists.2.crl")}
	for _, tt := range []struct {
		trust, file string
		exit        int
		outcome     string
		more        []string
	}{
		{"trust-record-a-signature-that-was-changed.json", "record-the-operators-key.json", 0, `"outcome": "proved"`, nil},
		{"trust-record-a-signature-that-was-changed.json", "record-no-token.json", 3, `"outcome": "not proved"`, nil},
		{"trust-record-a-signature-that-was-changed.json", "record-a-signature-that-was-changed.json", 1, `"outcome": "refuted"`, nil},
		{"trust-record-a-signature-that-was-changed.json", "file-that-is-something-else.json", 2, "", nil},
		{"trust-of-another-format.json", "record-no-token.json", 2, "", nil},
		{"trust-certificate-as-it-should-be.json", "certificate-as-it-should-be.json", 0, `"outcome": "proved"`, []string{"--at", "2026-01-02T00:00:00Z",
			"--crl", filepath.Join(dir, "certificate-as-it-should-be.1.crl"), "--crl", filepath.Join(dir, "certificate-as-it-should-be.2.crl")}},
		{"trust-certificate-as-it-should-be.json", "certificate-as-it-should-be.json", 3, `"rule": "revocation"`, []string{"--at", "2026-01-02T00:00:00Z"}},
		{"trust-certificate-old-lists.json", "certificate-old-lists.json", 0, `"outcome": "proved"`, old},
		{"trust-certificate-old-lists.json", "certificate-old-lists.json", 3, `"rule": "revocation"`, append([]string{"--grace", "864000"}, old...)},
	} {
		arguments := append([]string{filepath.Join(secondVerifier, "verify.py"), "--trust", filepath.Join(dir, tt.trust)}, tt.more...)
		run := exec.Command(python(t), append(arguments, filepath.Join(dir, tt.file))...)
		out, err := run.Output()
		must.Need(t, run.ProcessState != nil, "%v", err)
		got := run.ProcessState.ExitCode()
		must.Hold(t, got == tt.exit && strings.Contains(string(out), tt.outcome), "%s: exit code %d, want %d\n%s", tt.file, got, tt.exit, out)
	}
}
