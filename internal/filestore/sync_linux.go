package filestore

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the content of a file durable, and what is needed to read it.
func syncData(file *os.File) error {
	if err := unix.Fdatasync(int(file.Fd())); err != nil {
		return &os.PathError{Op: "fdatasync", Path: file.Name(), Err: err}
	}
	return nil
}
