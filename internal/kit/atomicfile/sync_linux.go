package atomicfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// SyncData makes the content of a file durable, and what is needed to read it. It does not wait for the time of the file's last change, as Sync does.
func SyncData(file *os.File) error {
	err := unix.Fdatasync(int(file.Fd()))
	for err == unix.EINTR {
		err = unix.Fdatasync(int(file.Fd()))
	}
	if err != nil {
		return &os.PathError{Op: "fdatasync", Path: file.Name(), Err: err}
	}
	return nil
}
