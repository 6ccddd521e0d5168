package jurat

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jurat/internal/test/must"
)

// budgets are how much there may be: a change that needs more takes something away first. They fall with each step by which the house gets smaller.
var budgets = []struct {
	what string
	most int
}{
	{"lines of Go but tests", 124_645},
	{"lines of tests in Go", 104_900},
	{"packages", 84},
	{"modules in the program", 42},
	{"lines of the second verifier", 7_470},
	{"words of README, doc.go and docs", 62_000},
	{"words of docs/format.md", 26_000},
}

func TestBudgets(t *testing.T) {
	has := map[string]int{"packages": len(listPackages(t)), "modules in the program": modulesLinked(t)}
	must.Do(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "node_modules", "dist"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		count := ""
		switch path = filepath.ToSlash(path); {
		case strings.HasSuffix(path, "_test.go"):
			count = "lines of tests in Go"
		case path == "doc.go", path == "README.md", filepath.Dir(path) == "docs" && strings.HasSuffix(path, ".md"):
			count = "words of README, doc.go and docs"
		case strings.HasSuffix(path, ".go"):
			count = "lines of Go but tests"
		case strings.HasPrefix(path, "testdata/second-verifier/") && strings.HasSuffix(path, ".py"):
			count = "lines of the second verifier"
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if strings.HasPrefix(count, "lines") {
			has[count] += bytes.Count(text, []byte("\n"))
		} else {
			has[count] += len(strings.Fields(string(text)))
		}
		if path == "docs/format.md" {
			has["words of docs/format.md"] = len(strings.Fields(string(text)))
		}
		return err
	}))
	for _, b := range budgets {
		must.Hold(t, has[b.what] <= b.most && has[b.what] != 0,
			"%s: %d, and at most %d: take something away, or say in the commit why it is worth more", b.what, has[b.what], b.most)
	}
}

// modulesLinked counts the modules of others of which the program is made.
func modulesLinked(t *testing.T) int {
	t.Helper()
	out := must.Get(exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/jurat").Output())(t)
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	return len(slices.Compact(modules))
}
