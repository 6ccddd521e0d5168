//go:build linux || darwin

package main

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownersAlone says that the modes of files keep others out.
const ownersAlone = true

// freeBytes returns how many bytes this user can still write to the disk of a folder.
func freeBytes(folder string) (uint64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(folder, &s)
	return uint64(s.Bavail) * uint64(s.Bsize), err
}

// ownGroup has a program get signals from this one alone: a terminal sends them to all of a group.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
