//go:build !linux

package filestore

import "os"

// syncData makes a file durable.
func syncData(file *os.File) error { return file.Sync() }
