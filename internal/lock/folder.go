package lock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// A Folder holds claims among the processes of one machine. A crash leaves at most an empty file without a lock.
type Folder struct{ dir string }

var _ Claims = (*Folder)(nil)

// NewFolder returns the claims in a folder. The first claim makes the folder.
func NewFolder(dir string) *Folder { return &Folder{dir} }

// Claim implements Claims. A claim is never lost: the operating system keeps it as long as the process lives.
func (f *Folder) Claim(ctx context.Context, name string) (held context.Context, release func(), err error) {
	if err := check(name); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("claiming %s: %w", name, err)
	}
	letGo, err := take(filepath.Join(f.dir, name))
	if err != nil {
		return nil, nil, fmt.Errorf("claiming %s: %w", name, err)
	}
	held, cancel := context.WithCancel(ctx)
	return held, func() { cancel(); letGo() }, nil
}

// Claimed implements Claims.
func (f *Folder) Claimed(_ context.Context, name string) (bool, error) {
	if err := check(name); err != nil {
		return false, err
	}
	is, err := taken(filepath.Join(f.dir, name))
	if err != nil {
		return false, fmt.Errorf("reading whether %s is claimed: %w", name, err)
	}
	return is, nil
}

// Close implements Claims. Claims stay held until they are released.
func (f *Folder) Close() error { return nil }
