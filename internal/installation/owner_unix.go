//go:build unix

package installation

import (
	"os"
	"syscall"
)

// ownerOf is the number of the user to whom a file belongs, and whether that is another than this process acts as.
func ownerOf(info os.FileInfo) (uid int, another bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), int(stat.Uid) != os.Geteuid()
}
