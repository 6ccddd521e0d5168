package jurat

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/internal/test/must"
)

var (
	// matches package.TestName and script names, and also a test name without its package, which is an error
	testMention = regexp.MustCompile(`(?:\b[a-z0-9]+\.)?\b(?:Test|Fuzz)[A-Z]\w*|[\w-]+\.txtar\b`)
	adversary   = regexp.MustCompile(`(?m)^### (\d+)\. `)
)

// TestThreatModel: every test that the threat model names exists. Every adversary has a test, and the model says what the adversary holds.
func TestThreatModel(t *testing.T) {
	doc := must.Get(os.ReadFile("docs/threat-model.md"))(t)
	there := testsOfModule(t)
	mentions := testMention.FindAllString(string(doc), -1)
	must.Need(t, len(mentions) != 0, "the threat model names no test, or this test does not find them")
	slices.Sort(mentions)
	for _, name := range slices.Compact(mentions) {
		must.Hold(t, there[name], "the threat model names %s, but there is no such test", name)
	}
	sections := adversary.FindAllStringSubmatchIndex(string(doc), -1)
	must.Need(t, len(sections) != 0, "the threat model names no adversary")
	for i, at := range sections {
		end := len(doc)
		if i+1 < len(sections) {
			end = sections[i+1][0]
		}
		text := string(doc[at[0]:end])
		title, _, _ := strings.Cut(text, "\n")
		got := string(doc[at[2]:at[3]])
		must.Hold(t, got == fmt.Sprint(i+1), "%q has the number %s, want %d", title, got, i+1)
		must.Hold(t, strings.Contains(text, "\n\nHolds "), "%q does not say what the adversary holds", title)
		must.Hold(t, testMention.MatchString(text), "%q names no test", title)
		must.Hold(t, strings.Contains(text, "Nothing catches") || strings.Contains(text, "Nothing bounds"), "%q does not say what no check catches", title)
	}
}

// testsOfModule returns the names of all tests and fuzz targets, each with its package, and of all scripts.
func testsOfModule(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	must.Do(t, filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir():
			return err
		case strings.HasSuffix(file, ".txtar"):
			there[filepath.Base(file)] = true
		case strings.HasSuffix(file, "_test.go"):
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range parsed.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
					there[strings.TrimSuffix(parsed.Name.Name, "_test")+"."+f.Name.Name] = true
				}
			}
		}
		return nil
	}))
	return there
}
