package archive

import (
	"context"
	"errors"
	"os"
	"slices"

	"jurat/internal/ledger/storage"
)

// A Listed file is an archive file and what there is to say of it.
type Listed struct {
	storage.Archived
	Bytes   int64  `json:"bytes"`
	Stray   bool   `json:"stray"`             // it lies in the folder, and the log's database does not name it
	Problem string `json:"problem,omitempty"` // why it cannot be read
}

// List lists archive files: those that the log's database names, in the order of the log, and then strays.
func (a *Archivist) List(ctx context.Context) ([]Listed, error) {
	files, err := a.Ledger.Archives(ctx)
	if err != nil {
		return nil, err
	}
	list := []Listed{}
	known := map[string]bool{}
	for _, in := range files {
		known[in.File] = true
		f := Listed{Archived: in}
		if err := a.Folder.With(in, func(f *File) error { return f.CheckProof(a.Log) }); err != nil {
			f.Problem = err.Error()
		}
		f.Bytes = sizeOf(a.Folder.Path(in.File))
		list = append(list, f)
	}
	names, err := a.Folder.List()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !known[name] {
			list = append(list, Listed{Archived: storage.Archived{File: name}, Bytes: sizeOf(a.Folder.Path(name)), Stray: true})
		}
	}
	return list, nil
}

// sizeOf is 0 for a file that is not there.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// CheckRoots says whether a file holds what the log of this installation holds: its roots are the log's hashes.
func (a *Archivist) CheckRoots(ctx context.Context, f *File) error {
	indexes, roots := f.Roots()
	stored, err := a.Ledger.StoredHashes(ctx, indexes)
	if err != nil {
		return err
	}
	if !slices.Equal(stored, roots) {
		return errors.New("its roots are not the hashes that the log has of these records")
	}
	return nil
}
