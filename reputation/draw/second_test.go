package draw_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TestSecondImplementation: an implementation that follows docs/format.md alone finds the same in every vector.
func TestSecondImplementation(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err == nil {
		_, err = exec.LookPath("openssl")
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("the second implementation cannot run: %v", err)
	}
	testdata := filepath.Join("..", "..", "testdata")
	vectorFile := filepath.Join(testdata, "vectors", "draws", "draws.json")
	doc, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var file vectors
	if err := json.Unmarshal(doc, &file); err != nil {
		t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	run := exec.Command(python, filepath.Join(testdata, "second-verifier", "draws.py"), vectorFile)
	run.Stdout, run.Stderr = &out, &complaints
	if err := run.Run(); err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 1<<20)
	for _, v := range file.Cases {
		var found struct {
			Name  string         `json:"name"`
			Found jsontext.Value `json:"found"`
		}
		if !lines.Scan() {
			t.Fatalf("%s: no answer", v.Name)
		}
		if err := json.Unmarshal(lines.Bytes(), &found); err != nil {
			t.Fatal(err)
		}
		if err := found.Found.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		want := v.Want.Clone()
		if err := want.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		if found.Name != v.Name || string(found.Found) != string(want) {
			t.Errorf("%s: it finds\n%s, want\n%s", v.Name, found.Found, want)
		}
	}
}
