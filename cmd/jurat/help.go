package main

import (
	"bytes"
	"strings"

	"github.com/alecthomas/kong"
)

// help prints the help of a command. Its usage line shows flags of which one is needed as alternatives; the library lists them as
// if all were needed.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	var text bytes.Buffer
	out := ctx.Stdout
	ctx.Stdout = &text
	err := kong.DefaultHelpPrinter(options, ctx)
	ctx.Stdout = out
	if err != nil {
		return err
	}
	shown := text.String()
	if command := ctx.Selected(); command != nil {
		for together, apart := range alternatives(command) {
			shown = strings.Replace(shown, together, apart, 1)
		}
	}
	_, err = out.Write([]byte(shown))
	return err
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
