package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"jurat/internal/atomicfile"
)

// A Folder is a Store of files in a folder. The first file makes the folder. Several processes may use it.
type Folder struct {
	dir    string
	synced sync.Map    // paths of folders whose own names are durable
	is     fs.FileInfo // the folder as it was opened; nil: it was not there
}

var _ Store = (*Folder)(nil)

// NewFolder returns the file store in a folder.
func NewFolder(dir string) *Folder {
	f := &Folder{dir: filepath.Clean(dir)}
	if is, err := os.Stat(f.dir); err == nil {
		f.is = is
	}
	return f
}

// Where implements Store: it returns the file's path.
func (f *Folder) Where(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// Read implements Store. It refuses a secret that other users can read.
func (f *Folder) Read(ctx context.Context, name string) ([]byte, error) {
	if err := check(ctx, "read", name); err != nil {
		return nil, err
	}
	read := os.ReadFile
	if Secret(name) {
		read = ReadPrivate
	}
	return read(f.Where(name))
}

// ReadPrivate reads a file that only its owner can access. It returns an error if others can.
func ReadPrivate(file string) ([]byte, error) {
	open, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer open.Close() // closing a file that was only read loses nothing
	if err := atomicfile.CheckPrivate(open); err != nil {
		return nil, err
	}
	return io.ReadAll(open)
}

func (f *Folder) Create(ctx context.Context, name string, content []byte) error {
	return f.put(ctx, name, content, "create", atomicfile.Create)
}

func (f *Folder) Replace(ctx context.Context, name string, content []byte) error {
	return f.put(ctx, name, content, "replace", atomicfile.Replace)
}

func (f *Folder) put(ctx context.Context, name string, content []byte, op string, write func(string, []byte, os.FileMode) error) error {
	if err := errors.Join(check(ctx, op, name), f.stays()); err != nil {
		return err
	}
	file := f.Where(name)
	err := write(file, content, 0o600)
	if err != nil && !errors.Is(err, fs.ErrExist) { // the process that made an existing file may have crashed before the sync below
		return err
	}
	return errors.Join(err, f.syncAbove(filepath.Dir(file)))
}

// stays returns an error if another folder, or none, is where this one was opened. What is written there would not be found with the rest.
func (f *Folder) stays() error {
	if f.is == nil {
		return nil
	}
	now, err := os.Stat(f.dir)
	if err == nil && !os.SameFile(now, f.is) {
		err = errors.New("another folder is in its place")
	}
	if err != nil {
		return fmt.Errorf("%s is not where it was opened: %w", f.dir, err)
	}
	return nil
}

// syncAbove makes the name of a file's folder durable, and the names of the folders above it: they may be new.
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

func (f *Folder) Rename(ctx context.Context, from, to string) error {
	if err := errors.Join(check(ctx, "rename", from), check(ctx, "rename", to)); err != nil {
		return err
	}
	return atomicfile.Rename(f.Where(from), f.Where(to))
}

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
	// This also runs if the file is already gone: an earlier process may have crashed before its sync.
	if synced := atomicfile.SyncFolders(folder, folder); !errors.Is(synced, fs.ErrNotExist) {
		err = errors.Join(err, synced)
	}
	return err
}

func (f *Folder) List(ctx context.Context, folder string, found func(name string) error) error {
	if err := check(ctx, "list", folder); err != nil {
		return err
	}
	return filepath.WalkDir(f.Where(folder), func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the folder never existed, or the file was removed during the listing
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
