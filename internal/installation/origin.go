package installation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"jurat/internal/atomicfile"
	"jurat/internal/filestore"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
	"jurat/internal/postgres"
)

// An origin is the installation that a backup copies. A backup has the same form for a data folder and for a database, so one of a database
// can be restored to a folder, and the other way round.
type origin interface {
	// each calls f for every file in the parts. Parts are folders or files, and may be missing. Names have slashes.
	each(ctx context.Context, parts []string, f func(name string, size int64) error) error
	// open opens a file. If the file is gone, the error has fs.ErrNotExist in its chain.
	open(ctx context.Context, name string) (io.ReadCloser, error)
	// log writes one committed state of the log into a new SQLite file, and reports from time to time how many bytes were added.
	log(ctx context.Context, to string, tell func(more int64)) error
	// values copies what is sealed apart into a new folder, and its keys if they are wanted. It was kept before the log said so: it is copied after the log.
	values(ctx context.Context, to string, withKeys bool, tell func(more int64)) error
	close() error
}

// openOrigin finds the installation that a configuration names.
func openOrigin(ctx context.Context, c Config) (origin, error) {
	at, err := Find(ctx, c)
	if err != nil {
		return nil, err
	}
	if at.Pool == nil {
		return folderOrigin{c.Dir}, at.Leave()
	}
	return databaseOrigin{folderOrigin{c.Dir}, at}, nil
}

// A folderOrigin is the data folder of one machine.
type folderOrigin struct{ dir string }

func (s folderOrigin) each(ctx context.Context, parts []string, f func(name string, size int64) error) error {
	for _, part := range parts {
		err := filepath.WalkDir(filepath.Join(s.dir, filepath.FromSlash(part)), func(file string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case d.IsDir() || isDraft(d.Name()):
				return ctx.Err()
			case !d.Type().IsRegular():
				return fmt.Errorf("%s is not a regular file", file)
			}
			return s.one(file, d, f)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s folderOrigin) one(file string, d fs.DirEntry, f func(name string, size int64) error) error {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the file was removed since its folder was read
	}
	if err != nil {
		return err
	}
	name, err := filepath.Rel(s.dir, file)
	if err != nil {
		return err
	}
	return f(filepath.ToSlash(name), info.Size())
}

func (s folderOrigin) open(ctx context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(s.dir, filepath.FromSlash(name)))
}

func (s folderOrigin) log(ctx context.Context, to string, tell func(more int64)) error {
	return s.database(ctx, DatabaseFile, to, tell)
}

// values copies the keys last: a row that was copied has one.
func (s folderOrigin) values(ctx context.Context, to string, withKeys bool, tell func(more int64)) error {
	copied := filepath.Join(to, filepath.FromSlash(sqlite.ValuesFile))
	if _, err := os.Stat(filepath.Join(s.dir, filepath.FromSlash(sqlite.ValuesFile))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
		return err
	}
	if err := s.database(ctx, sqlite.ValuesFile, copied, tell); err != nil {
		return err
	}
	if err := atomicfile.SyncFolders(filepath.Dir(copied), to); err != nil || !withKeys {
		return err
	}
	return (&copying{from: s, to: to, files: map[string]string{}}).all(ctx, []string{sqlite.KeysFolder})
}

// database makes SQLite copy one of its files, and watches the copy grow.
func (s folderOrigin) database(ctx context.Context, name, to string, tell func(more int64)) error {
	done := make(chan error, 1)
	go func() { done <- sqlite.Backup(ctx, filepath.Join(s.dir, filepath.FromSlash(name)), to) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	grown := growth(to, tell)
	for {
		select {
		case <-tick.C:
			grown()
		case err := <-done:
			grown()
			return err
		}
	}
}

// growth returns a function that reports by how much a file has grown since its last call.
func growth(file string, tell func(more int64)) func() {
	told := int64(0)
	return func() {
		if info, err := os.Stat(file); err == nil { // the file may not exist yet
			tell(info.Size() - told)
			told = info.Size()
		}
	}
}

func (s folderOrigin) close() error { return nil }

// A databaseOrigin is a shared database, together with the case files in this machine's folder.
type databaseOrigin struct {
	own folderOrigin
	at  *Place
}

func (s databaseOrigin) each(ctx context.Context, parts []string, f func(name string, size int64) error) error {
	for _, part := range parts {
		if part == CasesFolder {
			if err := s.own.each(ctx, []string{part}, f); err != nil {
				return err
			}
			continue
		}
		if path.Ext(part) != "" {
			if err := s.single(ctx, part, f); err != nil {
				return err
			}
			continue
		}
		if err := s.at.Files.List(ctx, part, func(name string) error { return errors.Join(ctx.Err(), f(name, 0)) }); err != nil {
			return err
		}
	}
	return nil
}

// single calls f for a part that is a file, if it exists.
func (s databaseOrigin) single(ctx context.Context, name string, f func(name string, size int64) error) error {
	if _, err := s.at.Files.Read(ctx, name); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return f(name, 0)
}

func (s databaseOrigin) open(ctx context.Context, name string) (io.ReadCloser, error) {
	if path.Dir(name) == CasesFolder {
		return s.own.open(ctx, name)
	}
	content, err := s.at.Files.Read(ctx, name) // secrets are read unwrapped: a backup is complete without the wrapping key
	return io.NopCloser(bytes.NewReader(content)), err
}

func (s databaseOrigin) log(ctx context.Context, to string, tell func(more int64)) (err error) {
	shared, err := postgres.Open(ctx, s.at.Pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	file, err := sqlite.Create(ctx, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	grown := growth(to, tell)
	return shared.Snapshot(ctx, func(log storage.Store) error {
		if _, err := storage.Copy(ctx, log, file, func(_, _ int64) { grown() }); err != nil {
			return err
		}
		return storage.FinishCopy(ctx, log, file)
	})
}

func (s databaseOrigin) values(ctx context.Context, to string, withKeys bool, tell func(more int64)) error {
	copied := sqlite.NewValues(to)
	err := copyValues(ctx, s.at.Values, copied, withKeys)
	return errors.Join(err, copied.Close())
}

func (s databaseOrigin) close() error { return s.at.Leave() }

// unpackInto copies the small files of an unpacked backup into a file store. A file that exists there must be the same.
func unpackInto(ctx context.Context, from filestore.Store, names []string, files filestore.Store) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		content, err := from.Read(ctx, name)
		if err != nil {
			return err
		}
		err = files.Create(ctx, name, content)
		if errors.Is(err, fs.ErrExist) {
			var there []byte
			if there, err = files.Read(ctx, name); err == nil && !slices.Equal(there, content) {
				err = fmt.Errorf("%s exists already with other content", files.Where(name))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyValues copies what is sealed apart, with or without its keys. What is there already must be the same.
func copyValues(ctx context.Context, from, to storage.Values, withKeys bool) error {
	var values []storage.Value
	held := 0
	add := func() error {
		err := to.Add(ctx, values)
		for n := 0; errors.Is(err, fs.ErrExist) && n < len(values); n++ {
			if err := addSame(ctx, to, values[n]); err != nil {
				return err
			}
		}
		if values, held = nil, 0; errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	err := from.Each(ctx, func(name string) error {
		value, err := from.Read(ctx, name)
		if err != nil {
			return unlessGone(err)
		}
		if !withKeys {
			value.Key = nil
		}
		values = append(values, value)
		if held += len(value.Sealed); held < 1<<20 && len(values) < 256 {
			return ctx.Err()
		}
		return add()
	})
	return errors.Join(err, add())
}

// unlessGone returns nil for a value that was erased since it was listed.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func addSame(ctx context.Context, to storage.Values, value storage.Value) error {
	there, err := to.Read(ctx, value.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return to.Add(ctx, []storage.Value{value})
	case err == nil && !(bytes.Equal(there.Sealed, value.Sealed) && bytes.Equal(there.Key, value.Key)):
		err = fmt.Errorf("%s exists already with other content", to.Where(value.Name))
	}
	return err
}
