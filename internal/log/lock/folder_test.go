package lock_test

import (
	"os"
	"path/filepath"
	"testing"

	"jurat/internal/log/lock"
	"jurat/internal/test/must"
	"jurat/internal/test/storetest"
)

func TestFolder(t *testing.T) {
	storetest.Locks(t, func(t *testing.T) storetest.OpenLocks {
		dir := filepath.Join(t.TempDir(), "locks")
		return func(*testing.T) lock.Locks { return lock.NewFolder(dir) }
	})
}

// TestFolderKeepsNothing checks that a released lock leaves no file, and that a file left by a crash locks nothing.
func TestFolderKeepsNothing(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "trial-1"), nil, 0o600))
	_, release, err := lock.NewFolder(dir).Lock(t.Context(), "trial-1")
	must.Do(t, err)
	release()
	left, err := os.ReadDir(dir)
	must.Hold(t, err == nil && len(left) == 0, "%v is left, %v", left, err)
}
