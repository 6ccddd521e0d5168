//go:build !linux

package main

import "testing"

func runsInAnEmptyFolder(t *testing.T, _ string) { t.Skip("Linux only") }
func runsAsContainer(t *testing.T, _ string)     { t.Skip("Linux only") }
