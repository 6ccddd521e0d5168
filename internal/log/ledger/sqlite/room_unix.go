//go:build linux || darwin

package sqlite

import (
	"fmt"
	"syscall"
)

// freeBytes returns how much room users other than root have on the disk of a folder.
func freeBytes(folder string) (free uint64, known bool, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return 0, false, fmt.Errorf("reading the free room of the disk of %s: %w", folder, err)
	}
	return disk.Bavail * uint64(disk.Bsize), true, nil
}

// writable says why a file cannot be written. It does not open the file, because closing it would drop this process's
// own locks on it.
func writable(path string) error {
	const write = 2
	if err := syscall.Access(path, write); err != nil {
		return fmt.Errorf("writing to %s: %w", path, err)
	}
	return nil
}
