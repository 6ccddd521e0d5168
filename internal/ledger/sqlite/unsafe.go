package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// UnsafeCreate is Create for tests, in a folder that goes with the test: nothing is synced, and no room is reserved.
// A crash of the machine may lose everything.
func UnsafeCreate(ctx context.Context, path string) (*Store, error) {
	file, err := emptyFile()
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("creating database: %w", err)
	}
	return begin(ctx, path, logForm, "OFF")
}

// emptyFile is a database with all tables: to make them takes longer than to copy them.
var emptyFile = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "jurat-empty-log-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "log.db")
	s, err := begin(context.Background(), path, logForm, "OFF")
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})
