package verify_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/must"
)

// TestFormatDocument compares the rules of reviews and chains in docs/format.md with those in the code.
func TestFormatDocument(t *testing.T) {
	page := read(t, filepath.Join("..", "docs", "format.md"))
	_, section, found := strings.Cut(page, "\n## Reviews and chains\n")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		t.Fatal("docs/format.md has no section on reviews and chains")
	}
	code := read(t, "chain.go") + read(t, "review.go") + read(t, "delivery.go")
	want := matches(regexp.MustCompile(`(?:c\.(?:refute|doubt|unsure|add)|contradicts)\([^"]*"([a-z-]+)"`), code)
	got := []string{"rests"}
	for _, table := range strings.Split(section, "\n| rule | ")[1:] { // the page has tables of other things, too
		table, _, _ = strings.Cut(table, "\n\n")
		got = append(got, matches(regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|"), table)...)
	}
	slices.Sort(got)
	got = slices.Compact(got)
	if len(want) == 0 {
		t.Fatal("the code has no rules")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-code +page):\n%s", diff)
	}
}

// TestFormatDocumentOfKnownLog does the same for the rules on the reader's knowledge of the log.
func TestFormatDocumentOfKnownLog(t *testing.T) {
	page := read(t, filepath.Join("..", "docs", "format.md"))
	_, section, found := strings.Cut(page, "\n### The reader's knowledge of the log\n")
	section, _, ended := strings.Cut(section, "\n### ")
	if !found || !ended {
		t.Fatal("docs/format.md has no section on the reader's knowledge of the log")
	}
	code := read(t, "knownlog.go") + read(t, "entries.go")
	want := matches(regexp.MustCompile(`c\.(?:refute|doubt)\([^"]*"([a-z-]+)"`), code)
	if diff := cmp.Diff(want, matches(regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|"), section)); len(want) == 0 || diff != "" {
		t.Errorf("rules (-code +page):\n%s", diff)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content := must.Get(os.ReadFile(name))(t)
	return string(content)
}

func matches(pattern *regexp.Regexp, text string) []string {
	var list []string
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	slices.Sort(list)
	return slices.Compact(list)
}
