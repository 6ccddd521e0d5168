package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"jurat/internal/atomicfile"
)

// A Folder is a Store of files in a folder. The first file makes the folder. Several processes may use it.
type Folder struct {
	dir    string
	synced sync.Map    // paths of folders whose own names are durable
	packer *packer     // nil: there are no packs
	is     fs.FileInfo // the folder as it was opened; nil: it was not there

	// After is called after each step of adding to packs; nil: it is not called. Tests crash there.
	After func(step string)
}

var _ Store = (*Folder)(nil)

// NewFolder returns the file store in a folder.
func NewFolder(dir string) *Folder { return &Folder{dir: filepath.Clean(dir)} }

// Where implements Store: it returns the file's path, or the pack that has it.
func (f *Folder) Where(name string) string {
	s := f.packer.of(name)
	if s == nil {
		return f.path(name)
	}
	if _, err := os.Lstat(f.path(name)); err == nil {
		return f.path(name)
	}
	in := ""
	if err := s.visit("stat", name, os.O_RDONLY, func(p *pack, e *packed) (bool, error) { in = p.file.Name(); return !e.void, nil }); err != nil {
		return f.path(name)
	}
	return path.Base(name) + " in " + in
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

func (f *Folder) after(step string) {
	if f.After != nil {
		f.After(step)
	}
}

// Read implements Store. It refuses a secret that other users can read.
func (f *Folder) Read(ctx context.Context, name string) ([]byte, error) {
	if err := check(ctx, "read", name); err != nil {
		return nil, err
	}
	read := os.ReadFile
	if Secret(name) {
		read = ReadPrivate
	}
	content, err := read(f.path(name))
	err = f.packed(err, "read", name, os.O_RDONLY, func(p *pack, e *packed) (bool, error) {
		if e.void {
			return false, nil
		}
		var err error
		content, err = p.read(e)
		return true, err
	})
	return content, err
}

// packed visits a file that is in a pack. err is what came of the attempt to find the file outside.
func (f *Folder) packed(err error, op, name string, flag int, do visit) error {
	if s := f.packer.of(name); s != nil && errors.Is(err, fs.ErrNotExist) {
		return s.visit(op, name, flag, do)
	}
	return err
}

// ReadPrivate reads a file that only its owner can access. It returns an error if others can.
func ReadPrivate(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if err := checkMode(file, info); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

func checkMode(file string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o: others on this machine can use the key; if none did, run chmod 600 on it, otherwise make a new key", file, mode)
	}
	return nil
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
	if err := errors.Join(check(ctx, op, name), f.stays()); err != nil {
		return err
	}
	file := f.path(name)
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

// Rename implements Store.
func (f *Folder) Rename(ctx context.Context, from, to string) error {
	if err := errors.Join(check(ctx, "rename", from), check(ctx, "rename", to)); err != nil {
		return err
	}
	return atomicfile.Rename(f.path(from), f.path(to))
}

// Remove implements Store.
func (f *Folder) Remove(ctx context.Context, name string) error {
	if err := check(ctx, "remove", name); err != nil {
		return err
	}
	return f.packed(f.remove(f.path(name)), "remove", name, os.O_RDWR, func(p *pack, e *packed) (bool, error) {
		return false, p.void(e) // also what is void: an earlier process may have crashed before its sync
	})
}

func (f *Folder) remove(file string) error {
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

// Overwrite implements Store. A program cannot make sure that the medium keeps no older copy: see
// docs/threat-model.md.
func (f *Folder) Overwrite(ctx context.Context, name string, content []byte) error {
	if err := check(ctx, "overwrite", name); err != nil {
		return err
	}
	return f.packed(overwrite(f.path(name), content), "overwrite", name, os.O_RDWR, func(p *pack, e *packed) (bool, error) {
		switch {
		case e.void:
			return false, nil
		case len(content) > e.length:
			return false, &fs.PathError{Op: "overwrite", Path: f.path(name), Err: errTooLong}
		}
		return false, p.overwrite(e, content)
	})
}

func overwrite(name string, content []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
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
	if err := f.walk(folder, found); err != nil || f.packer == nil {
		return err
	}
	for _, s := range f.packer.folders {
		if s.folder != folder && !strings.HasPrefix(s.folder, folder+"/") && !strings.HasPrefix(folder, s.folder+"/") {
			continue
		}
		if err := s.list(func(name string) error {
			if !strings.HasPrefix(name, folder+"/") {
				return nil
			}
			return errors.Join(ctx.Err(), found(name))
		}); err != nil {
			return err
		}
	}
	return nil
}

// walk lists the files outside of packs.
func (f *Folder) walk(folder string, found func(name string) error) error {
	return filepath.WalkDir(f.path(folder), func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the folder never existed, or the file was removed during the listing
		}
		if err != nil || d.IsDir() {
			if err == nil && f.packer.isPacks(file) {
				return fs.SkipDir
			}
			return err
		}
		name, err := filepath.Rel(f.dir, file)
		if err != nil {
			return err
		}
		return found(filepath.ToSlash(name))
	})
}
