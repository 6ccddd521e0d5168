package atomicfile

import (
	"io/fs"
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

// An ID is the device and the inode of a file.
type ID [2]uint64

// Same reports whether both are the same file.
func (id ID) Same(as ID) bool { return id == as }

// Look returns which file is at a path, and its size. It asks for no times: from Linux 6.13 on, a file of which somebody knows the times gets new ones with
// the next write, and a sync then has to store them.
func Look(path string) (ID, int64, error) {
	var is unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_SIZE, &is) == nil {
		return ID{unix.Mkdev(is.Dev_major, is.Dev_minor), is.Ino}, int64(is.Size), nil //nolint:gosec // no file is larger
	}
	var old unix.Stat_t // it has failed, or a container does not permit it
	if err := unix.Stat(path, &old); err != nil {
		return ID{}, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return ID{uint64(old.Dev), old.Ino}, old.Size, nil //nolint:unconvert // of another width on some machines
}
