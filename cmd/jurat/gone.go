package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"jurat/internal/words"
)

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
