package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
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
