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

// askedLong is how often take retries, a millisecond apart, while others hold a shared lock to ask for the state.
const askedLong = 1000

// take locks a file. The file exists only while it is locked, except after a crash.
func take(name string) (release func(), err error) {
	for asked := 0; ; {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lock(file, syscall.LOCK_EX); errors.Is(err, ErrTaken) && lock(file, syscall.LOCK_SH) == nil {
			_ = file.Close() // another process was only asking, which takes no time unless that process has stopped
			if asked++; asked > askedLong {
				return nil, fmt.Errorf("%w: a process that asked for the state has stopped", ErrTaken)
			}
			time.Sleep(time.Millisecond)
			continue
		} else if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		// Between the two calls another process may have released the lock and removed this file. Then others lock a
		// new file.
		same, err := names(name, file)
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if same {
			return func() {
				_ = os.Remove(name) // while it is locked; if this fails, an empty file stays
				_ = file.Close()    // unlocks
			}, nil
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
}

// taken reports whether a file is locked. Callers of taken share a lock for the duration of the call.
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

// names reports whether name is still the name of an open file.
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
