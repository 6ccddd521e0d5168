package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Free gives back the room of a stretch of a file that is zeros already, as far as whole blocks of the disk are in it. The file keeps its length, and reads as before. Where the
// file system cannot do that, Free does nothing. Some need a little room for it, which a full disk does not have.
func Free(file *os.File, at, length int64) error {
	if length <= 0 {
		return nil
	}
	err := fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, length)
	for err == unix.EINTR {
		err = fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, length)
	}
	if err == nil || errors.Is(err, errors.ErrUnsupported) || err == unix.ENOSPC || err == unix.EDQUOT {
		return nil
	}
	return &os.PathError{Op: "fallocate", Path: file.Name(), Err: err}
}

// fallocate is the system's; tests replace it.
var fallocate = unix.Fallocate
