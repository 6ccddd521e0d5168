package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A group is what people come for, with the commands that they then need.
type group struct {
	name     string // as 'jurat help NAME' takes it; no command has this name
	about    string
	commands []string // first words of commands
}

// groups has every command once. A test fails for a command that is in no group.
var groups = []group{
	{"judging", "Put agents before a jury, and see what it found.", []string{"trial", "trials", "reputation"}},
	{"recording", "Seal what agents say and do, show parts of it, erase texts.", []string{"record", "import", "seal", "apart", "prove", "erase"}},
	{"verifying", "Check records and case files that others made.", []string{"verify", "explain", "portal", "export"}},
	{"identity", "Say whose keys count, and who may do what.", []string{"trust", "keys", "access", "card", "ca"}},
	{"logging", "The log, its witnesses, and authorities for time.", []string{"log", "records", "witness", "tsa"}},
	{"operating", "Begin, serve, keep and copy an installation.", []string{"init", "serve", "backup"}},
	{"program", "This program itself.", []string{"help", "doctor", "version", "completion"}},
}

// groupOf returns the group of this name.
func groupOf(name string) (group, bool) {
	i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
	if i < 0 {
		return group{}, false
	}
	return groups[i], true
}

const firstLines = `Usage: jurat COMMAND [flags]

jurat puts AI agents before a jury of three language models, and seals what is
said into signed, time-stamped records that anyone can verify offline.

  jurat init                            make an installation: keys, clock, log
  jurat trial CASE                      try a case, and leave a case file
  jurat trials                          list trials, and compare them
  jurat serve                           pages for people, an API for programs
  jurat record                          seal what an agent does, as it passes
  jurat seal payload.json               seal what an agent said into a record
  jurat trust > trust.json              whose keys count, for those who verify
  jurat verify --trust trust.json FILE  verify a record or a case file
  jurat explain FILE                    what a record or a case file says
  jurat log                             checkpoints, proofs, examination
  jurat access                          who may do what on a server
  jurat doctor                          what is missing, and what to do about it

'jurat help --all' lists all commands, 'jurat help COMMAND' shows its flags, and
'jurat help TASK' what a task has: `

const lastWords = `.
Exit codes: trial 0 safe_pass, 1 unsafe_fail, 3 a person must decide; verify
0 proved, 1 refuted, 3 not proved; everywhere 2 cannot be done, 130 interrupted.
`

// firstHelp is what 'jurat --help' prints: one screen.
func firstHelp() string {
	var tasks []string
	for _, g := range groups {
		tasks = append(tasks, g.name)
	}
	list := strings.Join(tasks[:len(tasks)-3], ", ") + ",\n" + strings.Join(tasks[len(tasks)-3:], ", ")
	return firstLines + list + lastWords
}

// allHelp is what 'jurat help --all' prints: every command, by task.
func allHelp(root *kong.Node) string {
	var text strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&text, "%s: %s\n%s\n", g.name, g.about, g.list(root))
	}
	return text.String() + "'jurat help COMMAND' shows its flags.\n"
}

// help says what each command of a group does.
func (g group) help(root *kong.Node) string {
	return g.about + "\n" + g.list(root) + "\n'jurat help COMMAND' shows its flags.\n"
}

func (g group) list(root *kong.Node) string {
	var text strings.Builder
	for _, name := range g.commands {
		i := slices.IndexFunc(root.Children, func(n *kong.Node) bool { return n.Name == name })
		if i < 0 {
			continue // a test says that there is none
		}
		command := root.Children[i]
		text.WriteString(row("jurat "+name, command.Help))
		for _, leaf := range command.Leaves(true) {
			text.WriteString(row("  "+leaf.Path(), leaf.Help))
		}
	}
	return text.String()
}

const (
	screen   = 80 // columns
	nameWide = 24 // of them for the names of commands
)

// row is a name with a text beside it.
func row(name, about string) string {
	var text strings.Builder
	for i, line := range wrap(about, screen-nameWide-1) {
		if i > 0 {
			name = ""
		} else if name = "  " + name; len(name) >= nameWide {
			text.WriteString(name + "\n")
			name = ""
		}
		fmt.Fprintf(&text, "%-*s%s\n", nameWide, name, line)
	}
	return text.String()
}
