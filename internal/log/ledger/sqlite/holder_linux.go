package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"jurat/internal/kit/atomicfile"
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
	is, _, err := atomicfile.Look(path)
	locks, hidden := os.ReadFile("/proc/locks")
	if err != nil || hidden != nil {
		return 0
	}
	device, inode := is[0], is[1] // the two parts of its number are as stat(2) packs them
	file := fmt.Sprintf("%02x:%02x:%d", device>>8&0xfff|device>>32&^0xfff, device&0xff|device>>12&0xffffff00, inode)
	for line := range strings.Lines(string(locks)) {
		// For example: 1: POSIX  ADVISORY  WRITE 1234 08:01:5678 120 120
		if f := strings.Fields(line); len(f) == 8 && f[3] == "WRITE" && f[5] == file && f[6] == strconv.FormatInt(at, 10) {
			pid, _ := strconv.Atoi(f[4]) // 0 or less: not of a process that can be named
			return max(pid, 0)
		}
	}
	return 0
}
