package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"jurat/internal/atomicfile"
)

// A Folder is a Store of files in a folder, which is made when the first file is. Several processes may use it.
type Folder struct {
	dir    string
	synced sync.Map // folders whose own names are durable, by path
}

var _ Store = (*Folder)(nil)

// NewFolder returns the file store that a folder is.
func NewFolder(dir string) *Folder { return &Folder{dir: filepath.Clean(dir)} }

// Where implements Store: it is the file's path.
func (f *Folder) Where(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// Read implements Store. A secret that others can read is none, and refused.
func (f *Folder) Read(ctx context.Context, name string) ([]byte, error) {
	if err := check(ctx, "read", name); err != nil {
		return nil, err
	}
	if Secret(name) {
		return ReadPrivate(f.Where(name))
	}
	return os.ReadFile(f.Where(name))
}

// ReadPrivate reads a file that nobody else may read.
func ReadPrivate(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o: others on this machine can use the key; chmod 600 it if they never did, or make a new one", file, mode)
	}
	return os.ReadFile(file)
}

// Create implements Store.
func (f *Folder) Create(ctx context.Context, name string, content []byte) error {
	return f.put(ctx, name, content, "create", atomicfile.Create)
}

// Replace implements Store.
func (f *Folder) Replace(ctx context.Context, name string, content []byte) error {
	return f.put(ctx, name, content, "replace", atomicfile.Replace)
}

func (f *Folder) put(ctx context.Context, name string, content []byte, op string, write func(string, []byte, os.FileMode) error) error {
	if err := check(ctx, op, name); err != nil {
		return err
	}
	file := f.Where(name)
	err := write(file, content, 0o600)
	if err != nil && !errors.Is(err, fs.ErrExist) { // whoever made one that is there may have crashed before what follows
		return err
	}
	return errors.Join(err, f.syncAbove(filepath.Dir(file)))
}

// syncAbove makes the name of a file's folder durable, which may be new, and those of the folders above it.
func (f *Folder) syncAbove(folder string) error {
	if _, done := f.synced.Load(folder); done || folder == f.dir {
		return nil
	}
	if err := atomicfile.SyncFolders(filepath.Dir(folder), f.dir); err != nil {
		return err
	}
	f.synced.Store(folder, true)
	return nil
}

// Rename implements Store.
func (f *Folder) Rename(ctx context.Context, from, to string) error {
	if err := errors.Join(check(ctx, "rename", from), check(ctx, "rename", to)); err != nil {
		return err
	}
	return atomicfile.Rename(f.Where(from), f.Where(to))
}

// Remove implements Store.
func (f *Folder) Remove(ctx context.Context, name string) error {
	if err := check(ctx, "remove", name); err != nil {
		return err
	}
	file := f.Where(name)
	err := os.Remove(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := filepath.Dir(file)
	// Again where it is gone already: a crash may have come before this.
	if synced := atomicfile.SyncFolders(folder, folder); !errors.Is(synced, fs.ErrNotExist) {
		err = errors.Join(err, synced)
	}
	return err
}

// Overwrite implements Store. That the medium below keeps no older copy is nothing that a program can bring about
// everywhere: see docs/design.md.
func (f *Folder) Overwrite(ctx context.Context, name string, content []byte) error {
	if err := check(ctx, "overwrite", name); err != nil {
		return err
	}
	file, err := os.OpenFile(f.Where(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(content, 0)
	return errors.Join(err, file.Sync(), file.Close())
}

// List implements Store.
func (f *Folder) List(ctx context.Context, folder string, found func(name string) error) error {
	if err := check(ctx, "list", folder); err != nil {
		return err
	}
	return filepath.WalkDir(f.Where(folder), func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was ever kept there, or it was removed while this looked
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(f.dir, file)
		if err != nil {
			return err
		}
		return found(filepath.ToSlash(name))
	})
}
