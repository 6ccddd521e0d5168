package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jurat/internal/atomicfile"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
	"jurat/internal/postgres"
)

// restoreToDatabase unpacks and examines a backup in a draft inside the machine's folder, and then copies it into the database.
func restoreToDatabase(ctx context.Context, c Config, o RestoreOrder, m *BackupManifest) (r *Restored, err error) {
	if err := checkUnseen(c.Dir); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	to, secrets, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.leave()) }()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	draft, err := os.MkdirTemp(c.Dir, ".jurat-restore-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }()
	if err := unpack(ctx, m, o.From, draft); err != nil {
		return nil, err
	}
	unpacked := c
	unpacked.Dir, unpacked.DB = draft, ""
	r = &Restored{Manifest: *m}
	if err := r.examine(ctx, unpacked, o); err != nil {
		return nil, err
	}
	return r, to.alone(ctx, func() error { return to.fill(ctx, c, secrets, draft, m, o.Progress) })
}

// checkUnseen returns an error if the machine with this folder has seen a checkpoint before.
func checkUnseen(dir string) error {
	file := filepath.Join(dir, CheckpointFile)
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("this machine has already seen a checkpoint, %s: give it with --checkpoint and move it away, or name another folder", file)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fill copies an unpacked backup into a database that holds no installation; it may hold what an earlier attempt left. The checkpoint comes
// last: without it, the database holds no installation.
func (p *place) fill(ctx context.Context, c Config, secrets *postgres.Files, draft string, m *BackupManifest, progress func(done, total int64)) (err error) {
	to, err := p.tables(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if signed, err := to.Checkpoint(ctx); err != nil || signed != "" {
		return errors.Join(err, fmt.Errorf("%w: there is an installation in %s", fs.ErrExist, c.Where()))
	}
	if err := secrets.CheckKeys(ctx); err != nil {
		return err
	}
	from, err := sqlite.Open(ctx, filepath.Join(draft, DatabaseFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if _, err := storage.Copy(ctx, from, to, progress); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		if err := p.fillFile(ctx, c, draft, name); err != nil {
			return err
		}
	}
	apart := sqlite.NewValues(draft)
	if err := errors.Join(copyValues(ctx, apart, p.values, true), apart.Close()); err != nil {
		return err
	}
	// A crash before the last line leaves a database without an installation, and a machine that has the restored checkpoint.
	if err := p.fillFile(ctx, c, draft, CheckpointFile); err != nil {
		return err
	}
	return storage.FinishCopy(ctx, from, to)
}

// fillFile copies a file of an unpacked backup: into this machine's folder if it is the machine's own, and otherwise into the database.
func (p *place) fillFile(ctx context.Context, c Config, draft, name string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case name == DatabaseFile, name == sqlite.ValuesFile, strings.HasPrefix(name, sqlite.KeysFolder+"/"): // fill copies what is in them
		return nil
	}
	content, err := os.ReadFile(filepath.Join(draft, filepath.FromSlash(name)))
	switch {
	case err != nil:
		return err
	case name == CheckpointFile, strings.HasPrefix(name, CasesFolder+"/"):
		return atomicfile.Replace(filepath.Join(c.Dir, filepath.FromSlash(name)), content, 0o600)
	}
	return put(ctx, p.files, name, content)
}
