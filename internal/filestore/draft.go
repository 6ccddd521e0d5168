package filestore

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A Draft is a Store in memory. Its content can then be stored elsewhere in one step.
type Draft struct {
	mu    sync.Mutex // guards files
	files map[string][]byte
}

var _ Store = (*Draft)(nil)

// NewDraft returns an empty draft.
func NewDraft() *Draft { return &Draft{files: map[string][]byte{}} }

// Files returns all files, sorted by name.
func (d *Draft) Files() []File {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]File, 0, len(d.files))
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		list = append(list, File{name, bytes.Clone(d.files[name])})
	}
	return list
}

// Where implements Store.
func (d *Draft) Where(name string) string { return name + " in a draft" }

// do runs f on a file. there says whether the file must exist (1), must not exist (-1), or may (0).
func (d *Draft) do(ctx context.Context, op, name string, there int, f func()) error {
	if err := check(ctx, op, name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch _, is := d.files[name]; {
	case there > 0 && !is:
		return &fs.PathError{Op: op, Path: d.Where(name), Err: fs.ErrNotExist}
	case there < 0 && is:
		return &fs.PathError{Op: op, Path: d.Where(name), Err: fs.ErrExist}
	}
	f()
	return nil
}

// Read implements Store.
func (d *Draft) Read(ctx context.Context, name string) (content []byte, err error) {
	err = d.do(ctx, "read", name, 1, func() { content = bytes.Clone(d.files[name]) })
	return content, err
}

// Create implements Store.
func (d *Draft) Create(ctx context.Context, name string, content []byte) error {
	return d.do(ctx, "create", name, -1, func() { d.files[name] = bytes.Clone(content) })
}

// Replace implements Store.
func (d *Draft) Replace(ctx context.Context, name string, content []byte) error {
	return d.do(ctx, "replace", name, 0, func() { d.files[name] = bytes.Clone(content) })
}

// Rename implements Store.
func (d *Draft) Rename(ctx context.Context, from, to string) error {
	if err := check(ctx, "rename", to); err != nil {
		return err
	}
	return d.do(ctx, "rename", from, 1, func() {
		content := d.files[from]
		delete(d.files, from)
		d.files[to] = content
	})
}

// Remove implements Store.
func (d *Draft) Remove(ctx context.Context, name string) error {
	return d.do(ctx, "remove", name, 1, func() { delete(d.files, name) })
}

// List implements Store.
func (d *Draft) List(ctx context.Context, folder string, found func(name string) error) error {
	if err := check(ctx, "list", folder); err != nil {
		return err
	}
	for _, file := range d.Files() {
		if !strings.HasPrefix(file.Name, folder+"/") {
			continue
		}
		if err := found(file.Name); err != nil {
			return err
		}
	}
	return nil
}
