//go:build !linux

package atomicfile

import (
	"io/fs"
	"os"
)

// SyncData makes a file durable.
func SyncData(file *os.File) error { return file.Sync() }

// An ID says which file it is.
type ID struct{ info fs.FileInfo }

// Same reports whether both are the same file.
func (id ID) Same(as ID) bool { return os.SameFile(id.info, as.info) }

// Look returns which file is at a path, and its size.
func Look(path string) (ID, int64, error) {
	is, err := os.Stat(path)
	if err != nil {
		return ID{}, 0, err
	}
	return ID{is}, is.Size(), nil
}
