package main

import (
	"context"
	"errors"
	"io/fs"

	"jurat/internal/atomicfile"
	"jurat/internal/filestore"
	"jurat/internal/installation"
)

type keysRewrapCmd struct {
	New string `placeholder:"FILE" help:"Only make a wrapping key, in this new file of mode 0600."`
}

// newWrappingKey makes a wrapping key.
func newWrappingKey(io stdio, file string) error {
	text := filestore.Generate()
	keys, err := filestore.Parse(text)
	if err != nil {
		return err
	}
	if err := atomicfile.Create(file, text, 0o600); errors.Is(err, fs.ErrExist) {
		return hint(err, "a wrapping key is never overwritten: keys may be wrapped under it")
	} else if err != nil {
		return err
	}
	return io.line("%s", keys)
}

// Run wraps files again.
func (c *keysRewrapCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.New != "" {
		return newWrappingKey(io, c.New)
	}
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
