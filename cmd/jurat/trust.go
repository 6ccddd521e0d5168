package main

import (
	"context"
	"fmt"

	"jurat/internal/installation"
)

type trustCmd struct{}

// Help is shown by 'jurat trust --help'.
func (*trustCmd) Help() string {
	return `Prints each actor's public keys, this installation's time-stamping authorities and its log; on stderr, the fingerprint of all this.
Give the file to the people who verify, and the fingerprint over another channel.

    jurat trust > trust.json`
}

// Run prints the trust file.
func (*trustCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		trust, err := i.Trust(ctx)
		if err != nil {
			return err
		}
		fingerprint, err := trust.Fingerprint()
		if err != nil {
			return err
		}
		if err := io.print(trust); err != nil {
			return err
		}
		_, err = fmt.Fprintf(io.err, "jurat: fingerprint %s\n", fingerprint)
		return err
	})
}
