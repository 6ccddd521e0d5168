//go:build unix

package installation

import (
	"os"
	"syscall"
)

// ownerOf returns the number of the user who owns a file, and whether this process acts as another user.
func ownerOf(info os.FileInfo) (uid int, another bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), int(stat.Uid) != os.Geteuid()
}
