package portal

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestVerifierIsOfThisSource builds the verifier anew and compares it with the committed one, byte for byte.
func TestVerifierIsOfThisSource(t *testing.T) {
	recorded, err := os.ReadFile(filepath.Join("page", "verifier.go-version"))
	if err != nil {
		t.Fatal(err)
	}
	skip := func(why string) {
		t.Helper()
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s, and under CI=true nothing is skipped", why)
		}
		t.Skip(why)
	}
	if want := strings.TrimSpace(string(recorded)); want != runtime.Version() {
		skip("the committed verifier was built by " + want + ", and this is " + runtime.Version() + ": other versions make other bytes")
	}
	if _, err := exec.LookPath("xz"); err != nil {
		skip("there is no xz, by which the committed verifier is unpacked")
	}
	unpack := exec.Command("xz", "--format=lzma", "--decompress", "--stdout")
	unpack.Stdin = bytes.NewReader(packedVerifier)
	committed, err := unpack.Output()
	if err != nil {
		t.Fatalf("unpacking the committed verifier: %v", err)
	}
	raw := filepath.Join(t.TempDir(), "verifier.wasm")
	if out, err := exec.Command("go", "run", "./build", "-raw", raw).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	built, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(built, committed) {
		t.Error("the committed verifier is not of this source. If something that it is made of was changed (verify, evidence, timestamp, jury, aep, dsse, incident, inquiry, portal/visit, go.mod), run 'go generate ./internal/portal' and commit internal/portal/page")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	if of, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js")); err != nil || string(of) != goJS {
		t.Errorf("wasm_exec.js is not that of %s (%v): run 'go generate ./internal/portal'", runtime.Version(), err)
	}
}
