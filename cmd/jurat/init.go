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
	"slices"
	"strings"

	"jurat/evidence/operator"
	"jurat/internal/court/panel"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/plural"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/token"
)

type initCmd struct {
	What string `arg:"" optional:"" enum:"installation,case,config,ci" default:"installation" help:"Write a small case with what it means, a configuration of the jury, or a GitHub workflow that tries cases (ci). Default: an installation."`
	Path string `arg:"" optional:"" type:"path" help:"The file, or the folder of a case. Default: jurat.yaml, or .github/workflows/jurat.yml."`
	keyFlags
	Token string `placeholder:"URI" help:"The token on which the keys of the time-stamping authority are made: pkcs11:token=LABEL."`
	helperFlag
	restoreFlags
}

func (c *initCmd) Run(ctx context.Context, a *app, std stdio) error {
	if c.From == "" && (c.Checkpoint != "" || c.NoneLater || c.Consistency != "") {
		return errors.New("--checkpoint, --none-later and --consistency go with --from")
	}
	switch {
	case c.What != "installation" && (c.Token != "" || c.From != ""):
		return errors.New("--token and --from are for an installation")
	case c.What == "case" && c.Path == "":
		return errors.New("expected a folder for the case")
	case c.What == "case":
		return beginCase(std, c.Path)
	case c.What == "config":
		return writeBeginnings(std, []beginning{{"begin/jurat.yaml", cmp.Or(c.Path, panel.DefaultFile)}})
	case c.What == "ci":
		return writeBeginnings(std, []beginning{{"begin/ci.yml", cmp.Or(c.Path, filepath.FromSlash(".github/workflows/jurat.yml"))}})
	case c.Path != "":
		return hint(errors.New("an installation takes no path"), "--data names the folder")
	case c.From != "":
		return c.restore(ctx, a, std)
	}
	return c.make(ctx, a, std)
}

func (c *initCmd) make(ctx context.Context, a *app, std stdio) error {
	if c.Token != "" {
		if err := c.use(new(token.Helper)); err != nil {
			return err
		}
		a.token = &installation.Token{URI: c.Token, Helper: c.Helper}
	}
	return a.begin(ctx, std, c.keyFlags, stampFlags{}, func(_ *installation.Installation, created bool) error {
		if created {
			return nil
		}
		there := fmt.Errorf("there is an installation in %s already", a.config().Where())
		if c.Token != "" {
			return hint(fmt.Errorf("--token: %w, and the keys of its authority stay where they are", there),
				"begin in another data folder or database; 'jurat keys rotate ROLE NAME --token URI' puts an actor's key on a token")
		}
		_, err := fmt.Fprintf(std.err, "jurat: %v; nothing was made\n", there)
		return err
	})
}

//go:embed begin
var begun embed.FS

func beginCase(std stdio, dir string) error {
	entries, err := fs.ReadDir(begun, "begin/case")
	if err != nil {
		return err
	}
	var files []beginning
	for _, e := range entries {
		files = append(files, beginning{path.Join("begin/case", e.Name()), filepath.Join(dir, e.Name())})
	}
	return writeBeginnings(std, files)
}

// A beginning is a file that comes with the program, and where to put it.
type beginning struct{ from, to string }

// writeBeginnings writes all files, or none if one of them is there.
func writeBeginnings(std stdio, files []beginning) error {
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
		if err := std.line("%s", f.to); err != nil {
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

type backupCmd struct {
	File      string `arg:"" help:"A file that does not exist."`
	ApartKeys bool   `name:"apart-keys" help:"Copy the keys to what is sealed apart, too. A reader of the copy can then read what you erase later."`
	jsonFlag
}

func (c *backupCmd) Run(ctx context.Context, a *app, std stdio) error {
	m, err := installation.MakeBackup(ctx, a.config(), installation.BackupOrder{To: c.File, ApartKeys: c.ApartKeys,
		Progress: progress(std, "bytes copied")})
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(c.File), "*.unfinished-*")) // a folder with * or [ in its name may only hide what is left
	std.tellIf(len(left) > 0, "%s: if no backup runs, delete it: a killed one left private keys there", strings.Join(left, ", "))
	return c.answer(std, m, err, func(p *printer) {
		p.line("%s: %s of the log %s", c.File, plural.Of(m.Size, "record"), m.Log)
	})
}

type restoreFlags struct {
	From        string `placeholder:"FILE" help:"Make the installation from this backup, with --checkpoint or --none-later."`
	Checkpoint  string `help:"With --from: the latest known checkpoint of the log." placeholder:"FILE" xor:"later"`
	NoneLater   bool   `help:"With --from: the log has signed no checkpoint after the backup was made." xor:"later"`
	Consistency string `help:"With --from: a proof from the backup to the checkpoint ('jurat log checkpoint --since' of another copy)." placeholder:"FILE"`
}

func (c *restoreFlags) restore(ctx context.Context, a *app, std stdio) error {
	if c.Checkpoint == "" && !c.NoneLater {
		return errors.New("missing flags: --checkpoint=FILE or --none-later")
	}
	order := installation.RestoreOrder{From: c.From, NoneLater: c.NoneLater, Progress: progress(std, "examined")}
	if c.Checkpoint != "" {
		text, err := readFile(c.Checkpoint)
		if err != nil {
			return fmt.Errorf("--checkpoint: %w", err)
		}
		order.Checkpoint = string(text)
	}
	if c.Consistency != "" {
		var err error
		if order.Consistency, err = parsed(c.Consistency, operator.ParseConsistency); err != nil {
			return fmt.Errorf("--consistency: %w", err)
		}
	}
	r, err := installation.Restore(ctx, a.config(), order)
	if damaged, is := errors.AsType[*installation.DamagedBackupError](err); is {
		for _, d := range damaged.Damages {
			std.tell("%s", d)
		}
	}
	if err != nil {
		return err
	}
	return c.tell(r, a, std)
}

func (c *restoreFlags) tell(r *installation.Restored, a *app, std stdio) error {
	p := newPrinter(std.out)
	p.line("%s: %s of the log %s, made %s", a.config().Where(), plural.Of(r.Manifest.Size, "record"), r.Manifest.Log, r.Manifest.Made)
	lost := slices.ContainsFunc(r.Damages, func(d fsck.Damage) bool { return !d.Kind.Harmless() })
	std.tellIf(!r.Manifest.ApartKeys && lost, "texts that are sealed apart cannot be read until apart-keys is put back, from where it is kept")
	switch {
	case r.Missing > 0 && r.Prefix:
		p.line("it is proved to begin the published log, and lacks the last %[2]d of its %[1]d records: it can be read, and takes no new ones", r.Known, r.Missing)
	case r.Missing > 0:
		p.line("of the published log's %d records it lacks %d, and nothing proves the others the same: it can be read, and takes no new ones", r.Known, r.Missing)
	case r.Prefix:
		p.line("it holds everything of the published log of %s", plural.Of(r.Known, "record"))
	}
	return closing(when(r.Missing > 0, exitUndecided), p.err)
}
