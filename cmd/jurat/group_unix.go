//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup has a program get signals from this one alone: a terminal sends them to all of a group.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
