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
	"jurat/internal/filestore"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
	"jurat/internal/postgres"
)

// restoreToDatabase unpacks and examines a backup in a draft inside the machine's folder, and then copies it into the database.
func restoreToDatabase(ctx context.Context, c Config, o RestoreOrder, m *BackupManifest) (r *Restored, err error) {
	if err := checkUnseen(c.Dir); err != nil {
		return nil, err
	}
	to, err := Reach(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Leave()) }()
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
	return r, to.Fill(ctx, func(log *postgres.Store) error { return fill(ctx, c, log, to.Files, to.Values, draft, m, o.Progress) })
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

// fill copies an unpacked backup into a database. The checkpoint comes last: without it, the database holds no installation.
func fill(ctx context.Context, c Config, to *postgres.Store, files filestore.Store, values storage.Values, draft string, m *BackupManifest, progress func(done, total int64)) (err error) {
	from, err := sqlite.Open(ctx, filepath.Join(draft, DatabaseFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if _, err := storage.Copy(ctx, from, to, progress); err != nil {
		return err
	}
	own, small := sorted(m)
	if err := unpackInto(ctx, filestore.NewFolder(draft), small, files); err != nil {
		return err
	}
	apart := sqlite.NewValues(draft)
	if err := errors.Join(copyValues(ctx, apart, values, true), apart.Close()); err != nil {
		return err
	}
	// A crash before the last line leaves a database without an installation, and a machine that has the restored checkpoint.
	if err := keepOwn(ctx, draft, append(own, CheckpointFile), c.Dir); err != nil {
		return err
	}
	return storage.FinishCopy(ctx, from, to)
}

// sorted divides a backup's files: the machine's own, and the small files for the database.
func sorted(m *BackupManifest) (own, small []string) {
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		switch {
		case name == DatabaseFile, name == sqlite.ValuesFile, strings.HasPrefix(name, sqlite.KeysFolder+"/"): // fill copies what is in them
		case strings.HasPrefix(name, CasesFolder+"/"):
			own = append(own, name)
		default:
			small = append(small, name)
		}
	}
	return own, small
}

// keepOwn copies files of an unpacked backup into a folder of this machine.
func keepOwn(ctx context.Context, draft string, names []string, dir string) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		content, err := os.ReadFile(filepath.Join(draft, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if err := atomicfile.Replace(filepath.Join(dir, filepath.FromSlash(name)), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
