package lock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// A Folder holds locks among the processes of one machine. A crash leaves at most an empty file without a lock.
type Folder struct{ dir string }

var _ Locks = (*Folder)(nil)

// NewFolder returns the locks in a folder. The first lock makes the folder.
func NewFolder(dir string) *Folder { return &Folder{dir} }

// Lock implements Locks. A lock is never lost: the operating system keeps it as long as the process lives. It returns
// ErrTaken, wrapped, if another holder has the lock, an error for a name that CheckName refuses, and the errors of
// the file system.
func (f *Folder) Lock(ctx context.Context, name string) (held context.Context, release func(), err error) {
	if err := CheckName(name); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("locking %s: %w", name, err)
	}
	letGo, err := take(filepath.Join(f.dir, name))
	if err != nil {
		return nil, nil, fmt.Errorf("locking %s: %w", name, err)
	}
	held, cancel := context.WithCancel(ctx)
	return held, func() { cancel(); letGo() }, nil
}

// Locked implements Locks. It returns an error for a name that CheckName refuses, and the errors of the file system.
func (f *Folder) Locked(_ context.Context, name string) (bool, error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	is, err := taken(filepath.Join(f.dir, name))
	if err != nil {
		return false, fmt.Errorf("reading whether %s is locked: %w", name, err)
	}
	return is, nil
}

// Close implements Locks. Locks stay held until they are released. Its error is nil.
func (f *Folder) Close() error { return nil }
