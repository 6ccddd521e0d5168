package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"jurat/internal/atomicfile"
	"jurat/internal/installation"
)

type initCmd struct {
	Installation initInstallationCmd `cmd:"" default:"withargs" hidden:"" help:"Make an installation."`
	Case         initCaseCmd         `cmd:"" help:"Write a small case into a folder: a conversation, an agent's card, and what they mean."`
	Config       initConfigCmd       `cmd:"" help:"Write a configuration of the jury, with comments. It says what holds without one."`
	CI           initCICmd           `cmd:"" name:"ci" help:"Write a GitHub workflow that tries cases, and fails unless all of them pass."`
}

type initInstallationCmd struct {
	keyFlags
	Token string `placeholder:"URI" help:"The token on which the keys of the time-stamping authority are made: pkcs11:token=LABEL."`
	helperFlag
}

// Run makes an installation, or finds that it is there.
func (c *initInstallationCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.Token != "" {
		helper, err := c.helper()
		if err != nil {
			return err
		}
		a.token = &installation.Token{URI: c.Token, Helper: helper}
	}
	return a.begin(ctx, io, c.keyFlags, stampFlags{}, func(_ *installation.Installation, created bool) error {
		if created {
			return nil
		}
		there := fmt.Errorf("there is an installation in %s already", a.config().Where())
		if c.Token != "" {
			return hint(fmt.Errorf("--token: %w, and the keys of its authority stay where they are", there),
				"begin in another data folder or database; 'jurat keys rotate ROLE NAME --token URI' puts an actor's key on a token")
		}
		_, err := fmt.Fprintf(io.err, "jurat: %v; nothing was made\n", there)
		return err
	})
}

//go:embed begin
var begun embed.FS

type initCaseCmd struct {
	Dir string `arg:"" type:"path" help:"The folder, which is made. It may be there if it has none of these files."`
}

// Run writes the case.
func (c *initCaseCmd) Run(io stdio) error {
	entries, err := fs.ReadDir(begun, "begin/case")
	if err != nil {
		return err
	}
	var files []beginning
	for _, e := range entries {
		files = append(files, beginning{path.Join("begin/case", e.Name()), filepath.Join(c.Dir, e.Name())})
	}
	return writeBeginnings(io, files)
}

type initConfigCmd struct {
	File string `arg:"" optional:"" type:"path" default:"jurat.yaml" help:"The file to write."`
}

// Run writes the configuration.
func (c *initConfigCmd) Run(io stdio) error {
	return writeBeginnings(io, []beginning{{"begin/jurat.yaml", c.File}})
}

type initCICmd struct {
	File string `arg:"" optional:"" type:"path" default:".github/workflows/jurat.yml" help:"The file to write."`
}

// Run writes the workflow.
func (c *initCICmd) Run(io stdio) error {
	return writeBeginnings(io, []beginning{{"begin/ci.yml", c.File}})
}

// A beginning is a file that comes with the program, and where to put it.
type beginning struct{ from, to string }

// writeBeginnings writes all files, or none if one of them is there.
func writeBeginnings(io stdio, files []beginning) error {
	for _, f := range files {
		if _, err := os.Lstat(f.to); !errors.Is(err, fs.ErrNotExist) {
			return cannotBegin(f.to, err)
		}
	}
	for _, f := range files {
		text, err := begun.ReadFile(f.from)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(f.to), 0o777); err != nil {
			return err
		}
		if err := atomicfile.Create(f.to, text, 0o644); err != nil {
			return cannotBegin(f.to, err)
		}
		if err := io.line("%s", f.to); err != nil {
			return err
		}
	}
	return nil
}

// cannotBegin says why a file cannot be made. A nil error means that the file is there.
func cannotBegin(file string, err error) error {
	if err == nil || errors.Is(err, fs.ErrExist) {
		return hint(fmt.Errorf("%s is there already", file), "it is not overwritten: name another, or move it away")
	}
	return err
}
