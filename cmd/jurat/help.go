package main

import (
	"bytes"
	"context"
	"embed"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"jurat/internal/words"
)

//go:embed help.txt
var helpFile string

// helps has what the help of each command says below its usage.
var helps = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, section := range strings.Split(helpFile, "\n== ")[1:] {
		path, text, _ := strings.Cut(section, "\n")
		all[path] = strings.TrimSpace(text)
	}
	return all
})

type helpCmd struct {
	All   bool     `help:"List all commands, by task."`
	Words []string `arg:"" optional:"" name:"command" help:"A command, such as 'log witness', or a task, such as verifying."`
}

// Run prints a help.
func (c *helpCmd) Run(ctx context.Context, k *kong.Kong, io stdio) error {
	if c.All {
		return io.document([]byte(allHelp(k.Model.Node)))
	}
	if len(c.Words) == 0 {
		return io.document([]byte(firstHelp()))
	}
	if g, ok := groupOf(c.Words[0]); ok && len(c.Words) == 1 {
		return io.document([]byte(g.help(k.Model.Node)))
	}
	node := k.Model.Node
	for i, word := range c.Words {
		next := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word && !n.Hidden })
		if next < 0 {
			return noCommand(k.Model.Node, strings.Join(c.Words[:i+1], " "))
		}
		node = node.Children[next]
	}
	if code := run(ctx, append(slices.Clone(c.Words), "--help"), io); code != 0 {
		return exitCode(code)
	}
	return nil
}

// noCommand says that there is no such command or task, and which are like it.
func noCommand(root *kong.Node, name string) error {
	err := fmt.Errorf("there is no command or task %q", name)
	if instead, ok := gone()[name]; ok {
		return hint(err, "%s", instead)
	}
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	for _, n := range nodesBelow(root) {
		names = append(names, n.Path())
	}
	if like := append(endingIn(root, name), near(name, names)...); len(like) > 0 {
		return hint(err, "did you mean 'jurat help %s'?", like[0])
	}
	return hint(err, "run 'jurat help' to see what there is")
}

// nodesBelow are all commands below a node that people see.
func nodesBelow(node *kong.Node) (all []*kong.Node) {
	for _, n := range node.Children {
		if !n.Hidden {
			all = append(append(all, n), nodesBelow(n)...)
		}
	}
	return all
}

// endingIn returns commands below others that have this name, such as 'log fsck' for fsck.
func endingIn(root *kong.Node, name string) (paths []string) {
	for _, n := range nodesBelow(root) {
		if n.Name == name && n.Parent != root {
			paths = append(paths, n.Path())
		}
	}
	return paths
}

// near returns the names that a typing error or two turn into the word, the nearest first.
func near(word string, names []string) []string {
	var like []string
	for far := 1; far <= 2; far++ {
		for _, name := range names {
			if distance(word, name) == far && far < len(word) {
				like = append(like, name)
			}
		}
	}
	return like
}

// distance is how many characters to change, add or leave out turn one text into the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// help prints the help of a command. Its usage line shows flags of which one is needed as alternatives; the library lists them as
// if all were needed.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	command := ctx.Selected()
	if command == nil {
		_, err := ctx.Stdout.Write([]byte(firstHelp()))
		return err
	}
	hideIdle(ctx.Model.Node, command)
	command.Detail = helps()[command.Path()]
	if d := command.DefaultCmd; d != nil && d.Hidden {
		command.Flags = append(command.Flags, d.Flags...) // they are given without its name
	}
	var text bytes.Buffer
	out := ctx.Stdout
	ctx.Stdout = &text
	err := kong.DefaultHelpPrinter(options, ctx)
	ctx.Stdout = out
	if err != nil {
		return err
	}
	shown := text.String()
	for together, apart := range alternatives(command) {
		shown = strings.Replace(shown, together, apart, 1)
	}
	_, err = out.Write([]byte(shown))
	return err
}

// whichOne is the group of the flags that say where the installation is.
const whichOne = "place"

// hideIdle hides those flags of the program that do nothing in this command.
func hideIdle(root, command *kong.Node) {
	for _, flag := range root.Flags {
		switch {
		case flag.Name == "version":
			flag.Hidden = true
		case flag.Group != nil && flag.Group.Key == whichOne:
			flag.Hidden = !usesInstallation(command)
		}
	}
}

// usesInstallation reports whether a command, or one below it, is given the installation that the flags name.
func usesInstallation(command *kong.Node) bool {
	if slices.ContainsFunc(command.Children, usesInstallation) {
		return true
	}
	if !command.Target.IsValid() || !command.Target.CanAddr() {
		return false
	}
	run := command.Target.Addr().MethodByName("Run")
	if !run.IsValid() {
		return false
	}
	for i := range run.Type().NumIn() {
		if run.Type().In(i) == reflect.TypeFor[*app]() {
			return true
		}
	}
	return false
}

// alternatives are the required flags of a command of which only one can be given: as a usage line has them, and as it should.
func alternatives(command *kong.Node) map[string]string {
	groups := map[string][]string{}
	for _, flag := range command.Flags {
		for _, group := range flag.Xor {
			if flag.Required {
				groups[group] = append(groups[group], flag.Summary())
			}
		}
	}
	usage := map[string]string{}
	for _, flags := range groups {
		if len(flags) > 1 {
			usage[strings.Join(flags, " ")] = "(" + strings.Join(flags, " | ") + ")"
		}
	}
	return usage
}

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

//go:embed completion
var completions embed.FS

type completionCmd struct {
	Of    []string `arg:"" optional:"" name:"bash|zsh|fish" help:"The shell."`
	Words bool     `hidden:"" help:"Print what can come next, as the scripts ask: the words after jurat come after --, so that none is a flag of this command. The last is being typed."`
}

// Run prints the script, or what the last word can become.
func (c *completionCmd) Run(k *kong.Kong, io stdio) error {
	if c.Words {
		var text strings.Builder
		for _, one := range complete(k.Model.Node, c.Of) {
			text.WriteString(one + "\n")
		}
		return io.document([]byte(text.String()))
	}
	if len(c.Of) != 1 || !slices.Contains([]string{"bash", "zsh", "fish"}, c.Of[0]) {
		return errors.New("want one shell: bash, zsh or fish")
	}
	script, err := completions.ReadFile(path.Join("completion", "jurat."+c.Of[0]))
	if err != nil {
		return err
	}
	return io.document(script)
}

const (
	askFiles   = ":files"
	askFolders = ":folders"
)

// complete returns what the last of the words can become.
func complete(root *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	typed := words[len(words)-1]
	at := walk(root, words[:len(words)-1])
	if at.flag != nil {
		return matching(values(at.flag.Value, at.flag.PlaceHolder), typed)
	}
	if strings.HasPrefix(typed, "-") && !at.noFlags {
		if name, value, ok := strings.Cut(typed, "="); ok {
			return at.valueOf(name, value)
		}
		return matching(at.flagNames(), typed)
	}
	var next []string
	for _, n := range at.node.Children {
		if !n.Hidden && at.given == 0 {
			next = append(next, n.Name+"\t"+n.Help)
		}
	}
	if p := at.positional(); p != nil {
		next = append(next, values(p, p.Name)...)
	}
	return matching(next, typed)
}

// A position on the command line is where the next word stands.
type position struct {
	node    *kong.Node
	flag    *kong.Flag // that waits for its value; nil: none does
	given   int        // arguments of the command
	noFlags bool       // after --
}

// walk goes through the words that are complete.
func walk(root *kong.Node, words []string) position {
	at := position{node: root}
	for _, word := range words {
		switch {
		case at.flag != nil:
			at.flag = nil
		case word == "--" && !at.noFlags:
			at.noFlags = true
		case strings.HasPrefix(word, "-") && word != "-" && !at.noFlags:
			if f := at.find(word); f != nil && !f.IsBool() && !f.IsCounter() {
				at.flag = f // a flag with = names no flag, and needs no value
			}
		default:
			child := slices.IndexFunc(at.node.Children, func(n *kong.Node) bool { return n.Name == word })
			if child >= 0 && at.given == 0 {
				at.node = at.node.Children[child]
			} else {
				at.given++
			}
		}
	}
	return at
}

// command is the command that runs here: a default one has no name.
func (at position) command() *kong.Node {
	if at.node.DefaultCmd != nil {
		return at.node.DefaultCmd
	}
	return at.node
}

// flags are those that do something here.
func (at position) flags() (flags []*kong.Flag) {
	for n := at.command(); n != nil; n = n.Parent {
		for _, f := range n.Flags {
			idle := f.Group != nil && f.Group.Key == whichOne && at.node.Parent != nil && !usesInstallation(at.node)
			if !f.Hidden && !idle {
				flags = append(flags, f)
			}
		}
	}
	return flags
}

func (at position) find(name string) *kong.Flag {
	for _, f := range at.flags() {
		if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

func (at position) flagNames() (names []string) {
	for _, f := range at.flags() {
		names = append(names, "--"+f.Name+"\t"+f.Help)
		if f.Tag.Negatable != "" {
			names = append(names, "--no-"+f.Name+"\tNot: "+f.Help)
		}
	}
	return names
}

// valueOf completes --flag=value. Each answer is the whole word.
func (at position) valueOf(name, value string) (whole []string) {
	f := at.find(name)
	if f == nil {
		return nil
	}
	for _, v := range matching(values(f.Value, f.PlaceHolder), value) {
		if !strings.HasPrefix(v, ":") {
			v = name + "=" + v
		}
		whole = append(whole, v)
	}
	return whole
}

// positional is the argument that the next word would be, or nil.
func (at position) positional() *kong.Positional {
	list := at.command().Positional
	switch {
	case at.given < len(list):
		return list[at.given]
	case len(list) > 0 && list[len(list)-1].IsCumulative():
		return list[len(list)-1]
	}
	return nil
}

// values are what a flag or an argument takes, by its name in the help.
func values(v *kong.Value, name string) []string {
	if v.Enum != "" {
		return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
	}
	switch strings.ToUpper(name) {
	case "FILE", "OUT", "REQUEST", "CARD", "CASE", "RECORD", "PANEL=FILE", "FILE|KEY":
		return []string{askFiles}
	case "DIR", "FOLDER", "INTO", "FROM":
		return []string{askFolders}
	}
	if v.Name == "data" {
		return []string{askFolders}
	}
	if words := strings.Split(name, "|"); len(words) > 1 && strings.ToLower(name) == name {
		return words
	}
	return nil
}

// matching are those that begin as typed. What the shell knows always is.
func matching(all []string, typed string) (some []string) {
	for _, one := range all {
		if strings.HasPrefix(one, typed) || strings.HasPrefix(one, ":") {
			some = append(some, one)
		}
	}
	return some
}

//go:embed gone.txt
var goneFile string

// gone has what to use instead of what earlier programs had.
var gone = sync.OnceValue(func() words.Texts { return words.Parse(goneFile) })

// former refuses a command that earlier programs had. It reads the words that begin the arguments: "jurat tsa" would
// otherwise ask for an authority of the name "list".
func former(args []string) error {
	words := args
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		taken := 1
		if slices.Contains([]string{"--data", "--db", "--wrapping-key"}, words[0]) {
			taken = min(2, len(words))
		}
		words = words[taken:]
	}
	for n := min(3, len(words)); n > 1; n-- {
		command := strings.Join(words[:n], " ")
		if instead, ok := gone()[command]; ok && !strings.Contains(command, " --") {
			return hint(fmt.Errorf("there is no command %q any more", command), "%s", instead)
		}
	}
	return nil
}
