package sqlite

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// writeLock is the byte of the file beside the database (-shm) that a writer locks: see "WAL-Index" in SQLite's
// documentation of the WAL format.
const writeLock = 120

// holder names the process that holds the write lock. It returns "" if the system does not tell.
func (s *Store) holder() string {
	pid := lockedBy(s.path+"-shm", writeLock)
	if pid == 0 {
		return ""
	}
	if pid == os.Getpid() {
		return ", which this process holds"
	}
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // empty if the system hides processes of other users
	state := ""
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		if after := stat[bytes.LastIndexByte(stat, ')')+1:]; len(after) > 1 && after[1] == 'T' {
			state = ", which is stopped (SIGSTOP): resume it with SIGCONT, or end it"
		}
	}
	return fmt.Sprintf(", which process %d (%q) holds%s", pid, strings.TrimSpace(string(name)), state)
}

// lockedBy returns the process that has a byte of a file locked for writing, or 0. It does not open the file, because
// closing it would drop this process's own locks on it.
func lockedBy(path string, at int64) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(locks)); lines.Scan(); {
		// For example: 1: POSIX  ADVISORY  WRITE 1234 08:01:5678 120 120
		var number, kind, way, mode, past string
		var pid int
		var major, minor uint64
		var inode uint64
		var from int64
		n, _ := fmt.Sscanf(lines.Text(), "%s %s %s %s %d %x:%x:%d %d %s", &number, &kind, &way, &mode, &pid, &major, &minor, &inode, &from, &past)
		if n == 10 && mode == "WRITE" && pid > 0 && inode == is.Ino && from == at && device(major, minor) == uint64(is.Dev) {
			return pid
		}
	}
	return 0
}

// device builds a device number, as stat(2) returns it, from its two parts.
func device(major, minor uint64) uint64 {
	return minor&0xff | major&0xfff<<8 | minor&^0xff<<12 | major&^0xfff<<32
}
