package lock

import (
	"errors"
	"os"
	"syscall"
)

const sharingViolation = syscall.Errno(32)

// take opens a file that no other process can open meanwhile.
func take(name string) (release func(), err error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	handle, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, ErrTaken
	}
	if err != nil {
		return nil, err
	}
	return func() {
		_ = syscall.CloseHandle(handle)
		_ = os.Remove(name) // fails, as it should, if another process has the file by now
	}, nil
}

// taken reports whether a process has a file locked. Callers of taken share the file.
func taken(name string) (bool, error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return false, err
	}
	handle, err := syscall.CreateFile(path, syscall.GENERIC_READ, syscall.FILE_SHARE_READ|syscall.FILE_SHARE_WRITE|syscall.FILE_SHARE_DELETE, nil,
		syscall.OPEN_EXISTING, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case errors.Is(err, sharingViolation):
		return true, nil
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return false, syscall.CloseHandle(handle)
}
