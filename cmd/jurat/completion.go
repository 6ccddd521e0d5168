package main

import (
	"embed"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

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
