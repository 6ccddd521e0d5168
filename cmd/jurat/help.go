package main

import (
	"context"
	"embed"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"jurat/evidence"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/installation"
	"jurat/internal/log/names"
	"jurat/internal/log/stamping"
	"jurat/internal/log/token"
	"jurat/internal/web/words"
)

//go:embed help.txt
var helpFile string

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
	Words []string `arg:"" optional:"" name:"command" help:"A command, such as 'log witness'."`
}

func (c *helpCmd) Run(ctx context.Context, k *kong.Kong, std stdio) error {
	if c.All {
		return std.document([]byte(allHelp(k.Model.Node)), nil)
	}
	return coded(exitCode(run(ctx, append([]string{"--help"}, c.Words...), std)))
}

func nodesBelow(node *kong.Node) (all []*kong.Node) {
	for _, n := range node.Children {
		if !n.Hidden {
			all = append(append(all, n), nodesBelow(n)...)
		}
	}
	return all
}

func endingIn(root *kong.Node, name string) (paths []string) {
	for _, n := range nodesBelow(root) {
		if n.Name == name && n.Parent != root {
			paths = append(paths, n.Path())
		}
	}
	return paths
}

func help(options kong.HelpOptions, ctx *kong.Context) error {
	command := ctx.Selected()
	if command == nil {
		_, err := ctx.Stdout.Write([]byte(firstHelp))
		return err
	}
	for _, flag := range ctx.Model.Flags {
		if flag.Name == "version" {
			flag.Hidden = true
		} else if flag.Group != nil && flag.Group.Key == whichOne {
			flag.Hidden = !usesInstallation(command)
		}
	}
	command.Detail = helps()[command.Path()]
	if d := command.DefaultCmd; d != nil && d.Hidden {
		command.Flags = append(command.Flags, d.Flags...) // they are given without its name
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

// whichOne is the group of the flags that say where the installation is.
const whichOne = "place"

func usesInstallation(command *kong.Node) bool {
	if slices.ContainsFunc(command.Children, usesInstallation) {
		return true
	}
	if !command.Target.IsValid() || !command.Target.CanAddr() {
		return false
	}
	run := command.Target.Addr().MethodByName("Run")
	return run.IsValid() && slices.Contains(slices.Collect(run.Type().Ins()), reflect.TypeFor[*app]())
}

// A group is what people come for, with the commands that they then need.
type group struct {
	name     string
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

// firstHelp is what 'jurat --help' prints: one screen.
const firstHelp = `Usage: jurat COMMAND [flags]

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

'jurat help --all' lists all commands, by task; 'jurat help COMMAND' shows its
flags.
Exit codes: trial 0 safe_pass, 1 unsafe_fail, 3 a person must decide; verify
0 proved, 1 refuted, 3 not proved; everywhere 2 cannot be done, 130 interrupted.
`

func allHelp(root *kong.Node) string {
	var text strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&text, "%s: %s\n", g.name, g.about)
		for _, name := range g.commands {
			command := root.Children[slices.IndexFunc(root.Children, func(n *kong.Node) bool { return n.Name == name })]
			text.WriteString(row("jurat "+name, command.Help))
			for _, leaf := range command.Leaves(true) {
				text.WriteString(row("  "+leaf.Path(), leaf.Help))
			}
		}
		text.WriteString("\n")
	}
	return text.String() + "'jurat help COMMAND' shows its flags.\n"
}

const (
	screen   = 80 // columns
	nameWide = 24 // of them for the names of commands
)

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
	Words bool     `hidden:"" help:"Print what can come next: the words after jurat follow --, so that none is a flag of this command; the last is being typed."`
}

func (c *completionCmd) Run(k *kong.Kong, std stdio) error {
	if c.Words {
		var text strings.Builder
		for _, one := range complete(k.Model.Node, c.Of) {
			text.WriteString(one + "\n")
		}
		return std.document([]byte(text.String()), nil)
	}
	if len(c.Of) != 1 || !slices.Contains([]string{"bash", "zsh", "fish"}, c.Of[0]) {
		return errors.New("want one shell: bash, zsh or fish")
	}
	return std.document(completions.ReadFile(path.Join("completion", "jurat."+c.Of[0])))
}

const (
	askFiles   = ":files"
	askFolders = ":folders"
)

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

type position struct {
	node    *kong.Node
	flag    *kong.Flag // that waits for its value; nil: none does
	given   int        // arguments of the command
	noFlags bool       // after --
}

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
	case "DIR", "FOLDER":
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

// former refuses a command that earlier programs had, by the first words: 'jurat tsa list' would otherwise ask for an authority named list.
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

func readSecret(flag, file string) (string, error) {
	text, err := readFile(file)
	secret := strings.TrimSpace(string(text))
	if err == nil && secret == "" {
		err = fmt.Errorf("%s is empty", file)
	}
	fault.While(&err, "%s", flag)
	return secret, err
}

// A byteSize is a number of bytes, which may be written with a unit: 1073741824, 1024MiB or 1GiB.
type byteSize int64

func (b *byteSize) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for suffix, bytes := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = rest, bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is not a size: want bytes, or a number with KiB, MiB or GiB", text)
	}
	*b = byteSize(n * unit)
	return nil
}

// A newName is the name of a person or an agent. One that would deceive readers is refused before anything is opened or made.
type newName string

func (n *newName) UnmarshalText(text []byte) error {
	if err := names.Check(string(text)); err != nil {
		return err
	}
	*n = newName(text)
	return nil
}

// timeFlags reads flags that are times: RFC 3339, or by the flag's tag format. kong's own errors would show users layouts of package time.
func timeFlags() []kong.Option {
	var read kong.MapperFunc = func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("time", &text); err != nil {
			return err
		}
		layout, like := time.RFC3339, "a time such as 2026-01-31T16:15:00Z"
		if ctx.Value.Format == time.DateOnly {
			layout, like = time.DateOnly, "a day such as 2026-01-31"
		}
		read, err := time.Parse(layout, text)
		if err != nil {
			return fmt.Errorf("expected %s, and not %q", like, text)
		}
		if target.Kind() == reflect.Pointer {
			target.Set(reflect.ValueOf(&read))
		} else {
			target.Set(reflect.ValueOf(read))
		}
		return nil
	}
	return []kong.Option{kong.TypeMapper(reflect.TypeFor[time.Time](), read), kong.TypeMapper(reflect.TypeFor[*time.Time](), read)}
}

type helperFlag struct {
	Helper string `name:"token-helper" placeholder:"HELPER" env:"JURAT_TOKEN_HELPER" help:"The program that reaches the token, such as 'jurat-pkcs11 --module FILE --pin-file FILE'. See docs/token.md."`
}

func (f helperFlag) use(helper *token.Helper) error {
	if f.Helper == "" {
		return hint(errors.New("--token: no helper is named"), "--token-helper or JURAT_TOKEN_HELPER says how the token is reached; docs/token.md is about it")
	}
	helper.Use(f.Helper)
	return nil
}

// find returns the key that a URI names, which is made if there is none. It returns nil if no URI is given.
func (f helperFlag) find(ctx context.Context, helper *token.Helper, uri string, algorithm evidence.Algorithm) (*token.Reference, error) {
	if uri == "" {
		return nil, nil
	}
	if err := f.use(helper); err != nil {
		return nil, err
	}
	reference, err := helper.FindOrGenerate(ctx, uri, algorithm)
	return &reference, err
}

// known returns the keys that URIs name. Each must be there.
func (f helperFlag) known(ctx context.Context, helper *token.Helper, uris []string) ([]token.Reference, error) {
	return each(uris, func(uri string) (token.Reference, error) {
		if err := f.use(helper); err != nil {
			return token.Reference{}, err
		}
		return helper.Find(ctx, uri)
	})
}

type stampFlags struct {
	TSA []string `name:"tsa" sep:"none" placeholder:"NAME|URL" help:"Have exactly these configured authorities stamp (may be repeated); built-in is the operator's own clock. Default: the built-in one and all of 'jurat tsa'."`
}

// catchUp asks the authorities for time stamps that records wait for, and prints how many still wait. It cannot fail: what was sealed stays so.
func catchUp(ctx context.Context, std stdio, i *installation.Installation) {
	outcomes, err := i.Timekeeper.Stamp(ctx, stamping.Order{CatchUp: true})
	std.tellIf(err != nil, "time: asking for what waits: %v", err)
	for _, o := range outcomes {
		std.tellIf(o.Records > 0 && i.Timekeeper.Selected(o.Authority), "time: waiting for %s since %s (%s); 'jurat log stamp' asks again%s", o.Authority,
			evidence.FormatTime(o.Since), plural.Of(o.Records, "record"), because(o.Reason))
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
