package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"jurat/internal/must"
)

// commandLine matches a command in a document: on an indented line, in backquotes, or in a block of the README.
var commandLine = regexp.MustCompile("(?m)(?:^ {4}jurat|`jurat|go run \\./cmd/jurat) +([^`#\n]*)")

// TestDocumentsNameCommandsThatExist: every command and flag in a document exists, and commands of blocks have all arguments that they need.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	parser := must.Get(kong.New(&app{}, kong.Name("jurat")))(t)
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(documents) < 5 {
		t.Fatal(documents, err)
	}
	found := 0
	for _, document := range append(documents, "../../README.md", "../../examples/README.md") {
		text := must.Get(os.ReadFile(document))(t)
		found += checkCommands(t, filepath.Base(document), parser.Model.Node, string(text))
	}
	for _, n := range nodesBelow(parser.Model.Node) {
		found += checkCommands(t, "help of "+n.Path(), parser.Model.Node, about(n))
	}
	if found < 40 {
		t.Errorf("only %d commands were found", found)
	}
}

// checkCommands checks each command line of a document, and returns how many it has.
func checkCommands(t *testing.T, document string, root *kong.Node, text string) (found int) {
	t.Helper()
	for _, match := range commandLine.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(quoted.ReplaceAllString(match[1], "TEXT"))
		if len(words) == 0 || !lower.MatchString(words[0]) && !strings.HasPrefix(words[0], "--") {
			continue // a word about the program, such as "jurat COMMAND --help"
		}
		found++
		node := checkCommand(t, document, root, words)
		if strings.HasPrefix(match[0], "    ") && node != nil {
			checkArguments(t, document, node, match[1])
		}
	}
	return found
}

var lower = regexp.MustCompile(`^[a-z][a-z-]*$`)

// checkCommand returns the command, or nil if there is no such command.
func checkCommand(t *testing.T, document string, node *kong.Node, words []string) *kong.Node {
	t.Helper()
	flags := slices.Clone(node.Flags)
	for _, word := range words {
		if word == ">" || word == "|" || word == "&&" || word == "--" {
			return node // the rest is of the shell, or of another program
		}
		if name, isFlag := strings.CutPrefix(word, "--"); isFlag {
			if node.DefaultCmd != nil { // a flag before any command is the default command's, too
				flags, node = append(flags, node.DefaultCmd.Flags...), node.DefaultCmd
			}
			name, _, _ = strings.Cut(strings.TrimRight(name, ",.;:)]'"), "=")
			if name != "help" && !slices.ContainsFunc(flags, func(f *kong.Flag) bool { return f.Name == name || f.Tag.Negatable != "" && "no-"+f.Name == name }) {
				t.Errorf("%s: jurat %s: there is no flag --%s", document, strings.Join(words, " "), name)
			}
			continue
		}
		child := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		if child >= 0 {
			node = node.Children[child]
			flags = append(flags, node.Flags...)
			if node.DefaultCmd != nil { // such as that of 'jurat trust', which has its flags without its name
				flags = append(flags, node.DefaultCmd.Flags...)
			}
		} else if len(node.Children) > 0 && lower.MatchString(word) {
			t.Errorf("%s: jurat %s: there is no such command", document, strings.Join(words, " "))
			return nil
		}
	}
	return node
}

var (
	quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	aside  = regexp.MustCompile(` {2,}.*| [>|<&].*`) // what a document says of the command, and what the shell does with it
)

// checkArguments: a command has as many arguments as it needs.
func checkArguments(t *testing.T, document string, command *kong.Node, line string) {
	t.Helper()
	flags, needed, given := command.AllFlags(true), 0, 0
	for _, p := range command.Positional {
		if p.Required {
			needed++
		}
	}
	names := strings.Count(command.FullPath(), " ")
	if command.Parent.DefaultCmd == command && !slices.Contains(strings.Fields(line), command.Name) {
		names-- // such as that of 'jurat trust'
	}
	valued := func(word string) bool {
		return slices.ContainsFunc(flags, func(of []*kong.Flag) bool {
			return slices.ContainsFunc(of, func(f *kong.Flag) bool { return "--"+f.Name == word && !f.IsBool() })
		})
	}
	words := strings.Fields(quoted.ReplaceAllString(aside.ReplaceAllString(line, ""), "TEXT"))
	for i := 0; i < len(words); i++ {
		if valued(words[i]) {
			i++
		} else if !strings.HasPrefix(words[i], "-") {
			given++
		}
	}
	if given -= names; given < needed {
		t.Errorf("%s: jurat %s: it needs %d arguments and has %d", document, line, needed, given)
	}
}

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
