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

// An origin is what a backup copies: an installation, with this machine's own files in a folder. A backup has the same form for a data folder
// and for a database, so one of a database can be restored to a folder, and the other way round.
type origin struct {
	*place
	dir string
}

// inFolder is the origin of the files in a folder.
func inFolder(dir string) origin { return origin{&place{files: filestore.NewFolder(dir)}, dir} }

// own reports whether a file is in this machine's folder.
func (o origin) own(name string) bool {
	return o.pool == nil || name == CasesFolder || path.Dir(name) == CasesFolder
}

// each calls f for every file in the parts. Parts are folders or files, and may be missing. Names have slashes.
func (o origin) each(ctx context.Context, parts []string, f func(name string) error) error {
	found := func(name string) error {
		if isDraft(name) {
			return ctx.Err()
		}
		return errors.Join(ctx.Err(), f(name))
	}
	for _, part := range parts {
		list := o.files.List
		if o.own(part) {
			list = filestore.NewFolder(o.dir).List
		} else if path.Ext(part) != "" {
			list = o.single
		}
		if err := list(ctx, part, found); err != nil {
			return err
		}
	}
	return nil
}

// single calls f for a part that is a file of the database, if it exists.
func (o origin) single(ctx context.Context, name string, f func(name string) error) error {
	if _, err := o.files.Read(ctx, name); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return f(name)
}

// open opens a file. If the file is gone, the error has fs.ErrNotExist in its chain. Secrets in a database are read unwrapped: a backup is
// complete without the wrapping key.
func (o origin) open(ctx context.Context, name string) (io.ReadCloser, error) {
	if !o.own(name) {
		content, err := o.files.Read(ctx, name)
		return io.NopCloser(bytes.NewReader(content)), err
	}
	if err := regular(o.dir, name); err != nil {
		return nil, err
	}
	return os.Open(filepath.Join(o.dir, filepath.FromSlash(name)))
}

// regular returns an error unless a file is a regular file inside a folder. A link, even in place of a folder above it, leads outside.
func regular(dir, name string) error {
	for part := name; part != "."; part = path.Dir(part) {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(part)))
		if err != nil || part == name && !info.Mode().IsRegular() || part != name && !info.IsDir() {
			return errors.Join(fmt.Errorf("%s: it is missing in %s, or not a regular file there", name, dir), err)
		}
	}
	return nil
}

// log writes one committed state of the log into a new SQLite file, and reports from time to time how many bytes were added.
func (o origin) log(ctx context.Context, to string, tell func(more int64)) (err error) {
	if o.pool == nil {
		return o.database(ctx, DatabaseFile, to, tell)
	}
	shared, err := postgres.Open(ctx, o.pool)
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

// apart copies what is sealed apart into a new folder, and its keys if they are wanted. It was kept before the log said so: it is copied after
// the log. In files, the keys are copied last: a row that was copied has one.
func (o origin) apart(ctx context.Context, to string, withKeys bool, tell func(more int64)) error {
	if o.pool != nil {
		copied := sqlite.NewValues(to)
		return errors.Join(copyValues(ctx, o.values, copied, withKeys), copied.Close())
	}
	copied := filepath.Join(to, filepath.FromSlash(sqlite.ValuesFile))
	if _, err := os.Stat(filepath.Join(o.dir, filepath.FromSlash(sqlite.ValuesFile))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
		return err
	}
	if err := o.database(ctx, sqlite.ValuesFile, copied, tell); err != nil {
		return err
	}
	if err := atomicfile.SyncFolders(filepath.Dir(copied), to); err != nil || !withKeys {
		return err
	}
	return (&copying{from: o, to: to, files: map[string]string{}}).all(ctx, []string{sqlite.KeysFolder})
}

// database makes SQLite copy one of its files, and watches the copy grow.
func (o origin) database(ctx context.Context, name, to string, tell func(more int64)) error {
	done := make(chan error, 1)
	go func() { done <- sqlite.Backup(ctx, filepath.Join(o.dir, filepath.FromSlash(name)), to) }()
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

// put creates a file in a file store. A file that exists there must be the same.
func put(ctx context.Context, files filestore.Store, name string, content []byte) error {
	err := files.Create(ctx, name, content)
	if errors.Is(err, fs.ErrExist) {
		var there []byte
		if there, err = files.Read(ctx, name); err == nil && !slices.Equal(there, content) {
			err = fmt.Errorf("%s exists already with other content", files.Where(name))
		}
	}
	return err
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
