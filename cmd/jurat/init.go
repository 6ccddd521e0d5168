package main

import (
	"context"

	"jurat/internal/installation"
)

type initCmd struct{ keyFlags }

// Help is shown by 'jurat init --help'.
func (*initCmd) Help() string {
	return `Makes an installation in a database, or in a data folder that is absent or empty. 'jurat serve', 'jurat trial' and 'jurat seal' also
make one on first use. No other command does, so a command with a forgotten --data changes nothing.

    jurat --data ./jurat-data init`
}

// Run makes an installation, or finds that it is there.
func (c *initCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.withStamps(ctx, io, c.keyFlags, stampFlags{}, func(*installation.Installation) error { return nil })
}
