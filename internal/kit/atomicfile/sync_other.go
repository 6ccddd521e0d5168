//go:build !linux

package atomicfile

import "os"

// SyncData makes a file durable.
func SyncData(file *os.File) error { return file.Sync() }
