//go:build !linux

package sqlite

// syncingData names no VFS: files are synced as SQLite does.
func syncingData() string { return "" }
