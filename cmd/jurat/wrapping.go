package main

import (
	"context"
	"errors"
	"io/fs"

	"jurat/internal/atomicfile"
	"jurat/internal/filestore"
	"jurat/internal/installation"
)

type keysWrappingKeyCmd struct {
	File string `arg:"" help:"The new file. Its mode is 0600."`
}

// Help is shown by 'jurat keys wrapping-key --help'.
func (*keysWrappingKeyCmd) Help() string {
	return `In a database that several machines share, private keys are encrypted (AES-256-GCM) under a wrapping key that the database
never has. Make it once, give every machine a copy of the file, and keep another copy in a safe place: without it the private keys
in the database are lost. No backup contains it.

    jurat keys wrapping-key /etc/jurat/wrapping.key
    jurat --db postgres://jurat@db.example/jurat --wrapping-key /etc/jurat/wrapping.key serve

To change it, make another, and put its line before the old one in every machine's file: the first line wraps, all of them unwrap.
When every machine has been started again with that, 'jurat keys rewrap' wraps everything under the new one. Then take the old
line out.`
}

// Run makes a wrapping key.
func (c *keysWrappingKeyCmd) Run(io stdio) error {
	text := filestore.Generate()
	keys, err := filestore.Parse(text)
	if err != nil {
		return err
	}
	if err := atomicfile.Create(c.File, text, 0o600); errors.Is(err, fs.ErrExist) {
		return hint(err, "a wrapping key is never overwritten: keys may be wrapped under it")
	} else if err != nil {
		return err
	}
	return io.line("%s", keys)
}

type keysRewrapCmd struct{}

// Help is shown by 'jurat keys rewrap --help'.
func (*keysRewrapCmd) Help() string {
	return `For changing the wrapping key: see 'jurat keys wrapping-key --help'. You can interrupt it and run it again, also while machines
serve.`
}

// Run wraps files again.
func (*keysRewrapCmd) Run(ctx context.Context, a *app, io stdio) error {
	if a.DB == "" {
		return hint(errors.New("no database is named: the files in a data folder are not wrapped"), "--db or JURAT_DB names one")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		told := progress(io, "files wrapped")
		done, key, err := i.Rewrap(ctx, func(done int64) { told(done, done) })
		if err != nil {
			return err
		}
		return io.line("%d files were wrapped again; all of them are under %s now", done, key)
	})
}
