package main

import (
	"context"
	"fmt"

	"jurat/internal/installation"
	"jurat/verify/trust"
)

type trustCmd struct {
	Own trustOwnCmd `cmd:"" default:"withargs" hidden:"" help:"Print this installation's trust file."`
	EU  trustEUCmd  `cmd:"" name:"eu" help:"Take time-stamping authorities from the European Union's trusted lists into a trust file."`
}

type trustOwnCmd struct{}

// Help is shown by 'jurat trust --help'.
func (*trustCmd) Help() string {
	return `Prints each actor's public keys, this installation's time-stamping authorities and its log; on stderr, the fingerprint of all this.
Give the file to the people who verify, and the fingerprint over another channel.

    jurat trust > trust.json`
}

// Run prints the trust file.
func (*trustOwnCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		file, err := i.Trust(ctx)
		if err != nil {
			return err
		}
		return printTrust(file, io)
	})
}

// printTrust prints a trust file, and its fingerprint on stderr.
func printTrust(file *trust.Trust, io stdio) error {
	fingerprint, err := file.Fingerprint()
	if err != nil {
		return err
	}
	if err := io.print(file); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.err, "jurat: fingerprint %s\n", fingerprint)
	return err
}
