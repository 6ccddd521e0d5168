package jurat

import (
	"go/doc/comment"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"jurat/internal/test/must"
)

// reference holds the sections of package docs that describe and decide nothing, so that the table does not name them.
var reference = map[string][]string{
	"jury":                       {"A trial"},
	"timestamp":                  {"What is a token", "What Verify checks", "What no check covers", "The built-in authority"},
	"verify/eulist":              {"From the Official Journal to a service", "What a list does not say"},
	"internal/log/ca":            {"What a certificate says", "Lists"},
	"internal/log/installation":  {"What expiry leaves"},
	"internal/court/juror/model": {"What a model is asked", "Peers", "Answers"},
	"internal/court/juror/rules": {"Injection", "Position, discussion and judgment", "Cost"},
	"internal/log/ledger":        {"Guarantees", "Concurrency"},
	"internal/web/pages":         {"Languages"},
	"internal/log/postgres":      {"Small files"},
	"internal/court/stats":       {"Calibration"},
	"internal/court/subject":     {"Agent card", "Conversation", "Sealed records as evidence"},
	"internal/log/witness":       {"A monitor watches a log"},
	"recorder":                   {"Closed and open", "Agents and conversations", "The end of a program"},
}

var decisionRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$")

// TestDecisionsStandInPackages checks the table of decisions in docs/design.md against the package docs, in which each decision is a section.
func TestDecisionsStandInPackages(t *testing.T) {
	design := must.Get(os.ReadFile("docs/design.md"))(t)
	_, table, found := strings.Cut(string(design), "\n## Decisions\n")
	table, _, ended := strings.Cut(table, "\n## ")
	rows := decisionRow.FindAllStringSubmatch(table, -1)
	must.Need(t, found && ended && len(rows) >= 20, "docs/design.md has no table of decisions, or this test does not find it: %d rows", len(rows))
	sections := sectionsOfModule(t)
	for _, row := range rows {
		folder := row[1]
		if sections[folder] == nil {
			t.Errorf("docs/design.md names decisions of %s, which is no package or has no sections", folder)
			continue
		}
		for _, decision := range strings.Split(row[2], ";") {
			if !take(sections[folder], decision) {
				t.Errorf("docs/design.md: %q is no section of the documentation of %s", strings.TrimSpace(decision), folder)
			}
		}
	}
	for folder, list := range reference {
		for _, section := range list {
			must.Hold(t, take(sections[folder], section), "this test names %q, which is no section of %s, or a decision", section, folder)
		}
	}
	for folder, left := range sections {
		for _, section := range slices.Sorted(maps.Values(left)) {
			t.Errorf("%s decides %q: name it in the table of docs/design.md, or, if it decides nothing, in this test", folder, section)
		}
	}
}

// take removes a section, and reports whether it was there.
func take(sections map[string]string, title string) bool {
	_, there := sections[normal(title)]
	delete(sections, normal(title))
	return there
}

// normal returns the words of a title, without letter case, punctuation, and what is in brackets.
func normal(title string) string {
	before, _, _ := strings.Cut(title, "(")
	return strings.Join(strings.FieldsFunc(strings.ToLower(before), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ")
}

// sectionsOfModule returns the titles of the sections in each package's documentation, by folder and normal form. The tour in this folder
// is left out.
func sectionsOfModule(t *testing.T) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, p := range listPackages(t) {
		folder := strings.TrimPrefix(p.ImportPath, "jurat/")
		files := must.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t)
		for _, file := range files {
			if p.ImportPath == "jurat" || strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments))(t)
			for _, block := range new(comment.Parser).Parse(parsed.Doc.Text()).Content {
				heading, is := block.(*comment.Heading)
				if !is {
					continue
				}
				if all[folder] == nil {
					all[folder] = map[string]string{}
				}
				title := titleOf(heading)
				all[folder][normal(title)] = title
			}
		}
	}
	return all
}

func titleOf(h *comment.Heading) string {
	var title strings.Builder
	for _, part := range h.Text {
		switch part := part.(type) {
		case comment.Plain:
			title.WriteString(string(part))
		case comment.Italic:
			title.WriteString(string(part))
		}
	}
	return title.String()
}
