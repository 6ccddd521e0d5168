package main

import (
	"context"

	"jurat/internal/installation"
)

type initCmd struct {
	keyFlags
	Token string `placeholder:"URI" help:"The token on which the keys of the log and of the time-stamping authority are made: pkcs11:token=LABEL."`
	helperFlag
}

// Help is shown by 'jurat init --help'.
func (*initCmd) Help() string {
	return `Makes an installation in a database, or in a data folder that is absent or empty. 'jurat serve', 'jurat trial' and 'jurat seal' also
make one on first use. No other command does, so a command with a forgotten --data changes nothing.

    jurat --data ./jurat-data init

With --token, the keys of the log and of the time-stamping authority never leave a token (docs/token.md). 'jurat keys new operator
operator --token URI', before anything is sealed, puts the operator's key there, too.`
}

// Run makes an installation, or finds that it is there.
func (c *initCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.Token != "" {
		helper, err := c.helper()
		if err != nil {
			return err
		}
		a.token = &installation.Token{URI: c.Token, Helper: helper}
	}
	return a.withStamps(ctx, io, c.keyFlags, stampFlags{}, func(*installation.Installation) error { return nil })
}
