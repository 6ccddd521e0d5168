// Command composefile prints a Compose file as Docker Compose understands it, by the Compose project's own reader: with variables, merges and
// defaults, as JSON. A file that Docker Compose would refuse is an error.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "composefile: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, files []string) error {
	options, err := cli.NewProjectOptions(files, cli.WithEnvFiles(), cli.WithDotEnv) // the environment of this process is no part of the file
	if err != nil {
		return err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return err
	}
	doc, err := project.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(doc)
	return err
}
