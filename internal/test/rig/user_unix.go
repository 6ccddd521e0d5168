//go:build unix

package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// longestSocket is the longest path of a folder that can hold the server's socket. Every system permits at least 103 bytes for the whole path.
const longestSocket = 103 - len("/.s.PGSQL.65535")

// temporary makes a folder that the server can reach. If this user is root, the server runs as another user.
func temporary() (string, error) {
	for _, parent := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if len(parent) > longestSocket-len("/jurat-pg-0123456789") || os.Getuid() == 0 && !open(parent) {
			continue
		}
		return os.MkdirTemp(parent, "jurat-pg-")
	}
	return "", fmt.Errorf("no temporary folder is open to other users and has a short path: set TMPDIR")
}

// open reports whether every user can pass through a folder.
func open(folder string) bool {
	for {
		info, err := os.Stat(folder)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if folder == filepath.Dir(folder) {
			return true
		}
		folder = filepath.Dir(folder)
	}
}

// other returns the user for the server if this user is root, which the server refuses: the user of its package, or the user nobody.
func other() (uid, gid int, err error) {
	var errs []error
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		return uid, gid, errors.Join(err, errGID)
	}
	return 0, 0, errors.Join(errs...)
}

// giveAway makes the server's user the owner of files.
func giveAway(paths ...string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid, err := other()
	for i := 0; err == nil && i < len(paths); i++ {
		err = os.Chown(paths[i], uid, gid)
	}
	return err
}

// unprivileged makes a command run as the server's user, and in a process group of its own: a signal from the
// terminal does not end it, but the reaper does.
func unprivileged(cmd *exec.Cmd) {
	ownGroup(cmd)
	if os.Getuid() != 0 {
		return
	}
	if uid, gid, err := other(); err == nil { // giveAway was called before and reported this error
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
