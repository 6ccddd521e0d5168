package archive

import (
	"context"
	"errors"
	"os"
	"slices"

	"jurat/internal/ledger/storage"
)

// A Listed is an archive file with its state.
type Listed struct {
	storage.Archived
	Bytes   int64  `json:"bytes"`
	Stray   bool   `json:"stray"`             // in the folder, but not named by the log's database
	Problem string `json:"problem,omitempty"` // why it cannot be read
}

// List lists archive files: first those that the log's database names, in log order, then strays. What is wrong with
// a file is in Listed.Problem. Its errors are those of the ledger and of reading the folder.
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

// sizeOf returns 0 for a missing file.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// CheckRoots returns an error unless the file's roots are the hashes of this installation's log.
func (a *Archivist) CheckRoots(ctx context.Context, f *File) error {
	indexes, roots := f.Roots()
	stored, err := a.Ledger.StoredHashes(ctx, indexes)
	if err != nil {
		return err
	}
	if !slices.Equal(stored, roots) {
		return errors.New("its roots differ from the log's hashes of these records")
	}
	return nil
}
