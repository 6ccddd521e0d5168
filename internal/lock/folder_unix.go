//go:build unix

package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// askedLong is how often a lock is tried that others share to ask for it, a millisecond apart.
const askedLong = 1000

// take locks a file, which is there only while it is locked, but for crashes.
func take(name string) (release func(), err error) {
	for asked := 0; ; {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lock(file, syscall.LOCK_EX); errors.Is(err, ErrTaken) && lock(file, syscall.LOCK_SH) == nil {
			_ = file.Close() // somebody was only asking, which takes no time, but where they stand still
			if asked++; asked > askedLong {
				return nil, fmt.Errorf("%w: a process that asks whether it is claimed stands still", ErrTaken)
			}
			time.Sleep(time.Millisecond)
			continue
		} else if err != nil {
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

// taken reports whether a file is locked. Those who ask share a lock, which lasts no longer than this.
func taken(name string) (bool, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = lock(file, syscall.LOCK_SH)
	if closed := file.Close(); !errors.Is(err, ErrTaken) {
		return false, errors.Join(err, closed)
	}
	return true, nil
}

func lock(file *os.File, how int) error {
	err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrTaken
	}
	return err
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
