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
)

var secondVerifier = filepath.Join("testdata", "second-verifier")

// python finds what the second verifier needs. Where nothing may be skipped, it must be there.
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
	return path
}

// TestSecondVerifier runs a verifier that was written from docs/format.md alone over all vectors. It must find what the
// manifests say, which is what package verify finds.
func TestSecondVerifier(t *testing.T) {
	manifests, err := filepath.Glob(filepath.Join("testdata", "vectors", "*", "manifest.json"))
	if err != nil || len(manifests) != 2 {
		t.Fatalf("manifests: %v, %v", manifests, err)
	}
	var output, complaints bytes.Buffer
	run := exec.Command(python(t), append([]string{filepath.Join(secondVerifier, "vectors.py")}, manifests...)...)
	run.Stdout, run.Stderr = &output, &complaints
	if err := run.Run(); err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	compared := map[string]bool{}
	for lines := bufio.NewScanner(&output); lines.Scan(); {
		var answer struct {
			Name   string
			Agrees bool
			Found  struct{ Unsupported string }
		}
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		if !answer.Agrees || (answer.Found.Unsupported != "") != isUnsupported(answer.Name) {
			t.Errorf("%s: %+v", answer.Name, answer)
		}
		compared[answer.Name] = true
	}
	for _, manifest := range manifests {
		for _, name := range vectorNames(t, manifest) {
			if !compared[name] {
				t.Errorf("%s: %s was not looked at", manifest, name)
			}
		}
	}
}

// isUnsupported reports whether a vector is about what the second verifier does not know, as docs/format.md says.
func isUnsupported(name string) bool {
	switch name {
	case "certificate-no-certificates": // whose signer is then an unknown key, as without CAs
		return false
	case "record: action-ml-dsa-65", "record: action-second-signature":
		return true
	}
	return slices.ContainsFunc([]string{"signature-mldsa65-", "certificate-", "revoked-authority-", "package-", "envelope-"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// vectorNames are the names by which the second verifier must answer.
func vectorNames(t *testing.T, manifest string) (names []string) {
	t.Helper()
	doc, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Records, Bundles, Acts, Verifications []struct{ Name string }
		Commitments                           []struct{ Pointer string }
		TrustFiles                            []struct{ File string } `json:"trust_files"`
	}
	if err := json.Unmarshal(doc, &m); err != nil {
		t.Fatal(err)
	}
	for _, v := range m.Records {
		names = append(names, "record: "+v.Name)
	}
	for _, v := range m.Bundles {
		names = append(names, "bundle: "+v.Name)
	}
	for _, v := range m.Acts {
		names = append(names, "act: "+v.Name)
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
	if len(names) < 10 {
		t.Fatalf("%s names only %d vectors", manifest, len(names))
	}
	return names
}

// TestSecondVerifierFindsFaults: a manifest that says something else is not agreed with.
func TestSecondVerifierFindsFaults(t *testing.T) {
	dir := filepath.Join("testdata", "vectors", "verification")
	doc, err := os.ReadFile(filepath.Join(dir, "record-no-token.json"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	manifest := `{"verifications":[{"name":"x","file":"x.json","report":{"kind":"record","records":1,"outcome":"proved","guarantees":[],"times":[]}}]}`
	for name, content := range map[string][]byte{"x.json": doc, "manifest.json": []byte(manifest)} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command(python(t), filepath.Join(secondVerifier, "vectors.py"), filepath.Join(folder, "manifest.json"))
	out, err := run.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `"agrees": false`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSecondVerifierCommand runs it as docs/format.md says, and holds its exit codes against the page.
func TestSecondVerifierCommand(t *testing.T) {
	dir := filepath.Join("testdata", "vectors", "verification")
	for _, tt := range []struct {
		trust, file string
		exit        int
		outcome     string
	}{
		{"trust-record-a-signature-that-was-changed.json", "record-the-operators-key.json", 0, `"outcome": "proved"`},
		{"trust-record-a-signature-that-was-changed.json", "record-no-token.json", 3, `"outcome": "not proved"`},
		{"trust-record-a-signature-that-was-changed.json", "record-a-signature-that-was-changed.json", 1, `"outcome": "refuted"`},
		{"trust-record-a-signature-that-was-changed.json", "file-that-is-something-else.json", 2, ""},
		{"trust-of-another-format.json", "record-no-token.json", 2, ""},
	} {
		run := exec.Command(python(t), filepath.Join(secondVerifier, "verify.py"), "--trust", filepath.Join(dir, tt.trust), filepath.Join(dir, tt.file))
		out, err := run.Output()
		if run.ProcessState == nil {
			t.Fatal(err)
		}
		if got := run.ProcessState.ExitCode(); got != tt.exit || !strings.Contains(string(out), tt.outcome) {
			t.Errorf("%s: exit code %d, want %d\n%s", tt.file, got, tt.exit, out)
		}
	}
}
