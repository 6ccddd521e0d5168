package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"jurat/internal/atomicfile"
	"jurat/internal/config"
	"jurat/internal/installation"
)

type initCmd struct {
	What string `arg:"" optional:"" enum:"installation,case,config,ci" default:"installation" help:"Write a small case with what it means, a configuration of the jury, or a GitHub workflow that tries cases (ci). Default: an installation."`
	Path string `arg:"" optional:"" type:"path" help:"The file, or the folder of a case. Default: jurat.yaml, or .github/workflows/jurat.yml."`
	keyFlags
	Token string `placeholder:"URI" help:"The token on which the keys of the time-stamping authority are made: pkcs11:token=LABEL."`
	helperFlag
	restoreFlags
}

// Run makes what is named.
func (c *initCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.From == "" && (c.Checkpoint != "" || c.NoneLater || c.Consistency != "") {
		return errors.New("--checkpoint, --none-later and --consistency go with --from")
	}
	switch {
	case c.What != "installation" && (c.Token != "" || c.From != ""):
		return errors.New("--token and --from are for an installation")
	case c.What == "case" && c.Path == "":
		return errors.New("expected a folder for the case")
	case c.What == "case":
		return beginCase(io, c.Path)
	case c.What == "config":
		return writeBeginnings(io, []beginning{{"begin/jurat.yaml", cmp.Or(c.Path, config.DefaultFile)}})
	case c.What == "ci":
		return writeBeginnings(io, []beginning{{"begin/ci.yml", cmp.Or(c.Path, filepath.FromSlash(".github/workflows/jurat.yml"))}})
	case c.Path != "":
		return hint(errors.New("an installation takes no path"), "--data names the folder")
	case c.From != "":
		return c.restore(ctx, a, io)
	}
	return c.make(ctx, a, io)
}

// make makes an installation, or finds that it is there.
func (c *initCmd) make(ctx context.Context, a *app, io stdio) error {
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

// beginCase writes a case into a folder.
func beginCase(io stdio, dir string) error {
	entries, err := fs.ReadDir(begun, "begin/case")
	if err != nil {
		return err
	}
	var files []beginning
	for _, e := range entries {
		files = append(files, beginning{path.Join("begin/case", e.Name()), filepath.Join(dir, e.Name())})
	}
	return writeBeginnings(io, files)
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
