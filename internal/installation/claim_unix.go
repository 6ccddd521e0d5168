//go:build unix

package installation

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// claim locks a file, which is there only while it is locked, but for crashes.
func claim(name string) (release func(), err error) {
	for {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			if errors.Is(err, syscall.EWOULDBLOCK) {
				err = ErrClaimed
			}
			return nil, errors.Join(err, file.Close())
		}
		// Between the two calls another process may have let go, and so have removed this file: then others lock a new one.
		same, err := names(name, file)
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if same {
			return func() {
				_ = os.Remove(name) // while it is locked; where that fails, an empty file stays
				_ = file.Close()    // unlocks
			}, nil
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
}

// names reports whether a name is still that of an open file.
func names(name string, file *os.File) (bool, error) {
	open, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(open, named), err
}
