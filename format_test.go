package jurat

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"jurat/internal/test/must"
)

// TestFormatExamples: each example in docs/format.md is what the file says that is named before it, but for white space and what "…" leaves out.
func TestFormatExamples(t *testing.T) {
	page := string(must.Get(os.ReadFile("docs/format.md"))(t))
	examples := regexp.MustCompile("(?s)`([^`\n]+)`[^`]*\n\n```[a-z]+\n(.+?)\n```\n").FindAllStringSubmatch(page, -1)
	if len(examples) < 8 || len(examples) != strings.Count(page, "\n```\n") {
		t.Fatalf("found %d examples with a file before them", len(examples))
	}
	dense := func(text string) string { return strings.Join(strings.Fields(strings.ReplaceAll(text, `\"`, `"`)), "") }
	for _, example := range examples {
		rest := dense(string(must.Get(os.ReadFile(example[1]))(t)))
		for part := range strings.SplitSeq(dense(example[2]), "…") {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%s does not say, or not there: %s", example[1], part)
			}
			rest = after
		}
	}
}
