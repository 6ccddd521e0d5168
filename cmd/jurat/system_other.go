//go:build !linux && !darwin

package main

import (
	"errors"
	"os/exec"
)

const ownersAlone = false

func freeBytes(string) (uint64, error) { return 0, errors.New("this system is not asked") }

func ownGroup(*exec.Cmd) {}
