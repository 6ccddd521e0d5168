package erasure

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"jurat/internal/filestore"
	"jurat/internal/ledger/storage"
)

// Files are a file store that makes several files at once.
type Files interface {
	filestore.Store
	CreateAll(ctx context.Context, files []filestore.File) error // all or none
}

// InFiles are storage.Values in a file store that several machines share: each value and each key is a file.
type InFiles struct{ Files Files }

var _ storage.Values = InFiles{}

const (
	valuesFolder = "apart/values"
	keysFolder   = "apart-keys"
)

func valueFile(name string) string {
	return path.Join(valuesFolder, name[:min(2, len(name))], name+".value")
}
func keyFile(name string) string { return path.Join(keysFolder, name[:min(2, len(name))], name+".key") }

func (v InFiles) Add(ctx context.Context, values []storage.Value) error {
	var files []filestore.File
	for i := range values {
		files = append(files, filestore.File{Name: valueFile(values[i].Name), Content: values[i].Sealed})
		if values[i].Key != nil {
			files = append(files, filestore.File{Name: keyFile(values[i].Name), Content: values[i].Key})
		}
	}
	return v.Files.CreateAll(ctx, files)
}

func (v InFiles) Read(ctx context.Context, name string) (value storage.Value, err error) {
	value.Name = name
	if value.Sealed, err = v.Files.Read(ctx, valueFile(name)); err != nil {
		return value, err
	}
	value.Key, err = v.Files.Read(ctx, keyFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return value, err
}

// DestroyKey implements storage.Values. The database returns nothing of a removed file: see package postgres.
func (v InFiles) DestroyKey(ctx context.Context, name string) error {
	return v.remove(ctx, keyFile(name))
}

func (v InFiles) Remove(ctx context.Context, name string) error {
	return v.remove(ctx, valueFile(name))
}

// remove removes a file. A file that is gone already is not an error.
func (v InFiles) remove(ctx context.Context, file string) error {
	if err := v.Files.Remove(ctx, file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Each implements storage.Values. It also finds a key that is alone.
func (v InFiles) Each(ctx context.Context, found func(name string) error) error {
	nameOf := func(file string) string { return strings.TrimSuffix(path.Base(file), path.Ext(file)) }
	if err := v.Files.List(ctx, valuesFolder, func(file string) error { return found(nameOf(file)) }); err != nil {
		return err
	}
	return v.Files.List(ctx, keysFolder, func(file string) error {
		if _, err := v.Files.Read(ctx, valueFile(nameOf(file))); !errors.Is(err, fs.ErrNotExist) {
			return nil // it was found with its value
		}
		return found(nameOf(file))
	})
}

func (v InFiles) Where(name string) string { return v.Files.Where(valueFile(name)) }
