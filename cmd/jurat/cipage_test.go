package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestCIPage runs the commands of docs/ci.md as they stand there, in order, in a folder with cases. Its example of the action uses inputs that there are.
func TestCIPage(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/ci.md"))(t))
	act := newRunner(t).act
	dir := t.TempDir()
	for _, name := range []string{"parcels", "returns"} {
		must.Do(t, os.CopyFS(filepath.Join(dir, "cases", name), os.DirFS(kitchen)))
	}
	blocks := regexp.MustCompile("(?ms)^```console\n(.*?)^```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	for _, b := range blocks {
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", b[1])
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s%v\n%s", b[1], err, out)
		}
	}
	for _, file := range []string{".github/workflows/jurat.yml", "jurat.xml", "jurat.sarif", "jurat.md", "case-files/parcels.jurat", "baseline.json"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
	_, with, _ := strings.Cut(page, "  with:\n")
	with, _, _ = strings.Cut(with, "  env:\n")
	inputs := regexp.MustCompile(`(?m)^    ([a-z-]+):`).FindAllStringSubmatch(with, -1)
	if len(inputs) < 2 {
		t.Errorf("%q", with)
	}
	for _, input := range inputs {
		if _, ok := act.Inputs[input[1]]; !ok {
			t.Errorf("the action has no input %s", input[1])
		}
	}
}
