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

// Help is shown by 'jurat init --help'.
func (*initCmd) Help() string {
	return `Makes an installation in a database, or in a data folder that is absent or empty. 'jurat serve', 'jurat trial',
'jurat seal', 'jurat record' and 'jurat import' also make one on first use. No other command does, so a command with a forgotten --data changes nothing.

    jurat --data ./jurat-data init

With --token, the keys of the time-stamping authority never leave a token (docs/token.md). 'jurat keys new operator
operator --token URI', before anything is sealed, puts the operator's key there, too.

The commands below write files to begin with. They never overwrite one, and need no installation.`
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

// Help is shown by 'jurat init case --help'.
func (*initCaseCmd) Help() string {
	return `Writes conversation.json, agent-card.json and README.md, which says what they mean. Put your agent's own in their place.

Then 'jurat case check cases/parcels' shows how it is read, and 'jurat trial cases/parcels' tries it.`
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

// Help is shown by 'jurat init config --help'.
func (*initConfigCmd) Help() string {
	return `Everything in the file is what holds without one: change what you want otherwise. docs/configuration.md has all that it can say.

jurat uses a jurat.yaml in the working directory by itself, and says so.`
}

// Run writes the configuration.
func (c *initConfigCmd) Run(io stdio) error {
	return writeBeginnings(io, []beginning{{"begin/jurat.yaml", c.File}})
}

type initCICmd struct {
	File string `arg:"" optional:"" type:"path" default:".github/workflows/jurat.yml" help:"The file to write."`
}

// Help is shown by 'jurat init ci --help'.
func (*initCICmd) Help() string {
	return `The workflow builds jurat from the version that you fill in, and tries every case in the folder cases. It fails if anything is
missing: the version, the cases, the key of a model. It comments on the proposal, keeps the case files and reports in JUnit's form and in
SARIF, and can compare with a baseline, from which only what got worse fails. docs/ci.md says more.`
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
