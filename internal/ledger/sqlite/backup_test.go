package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestBackupDigestEnds: a caller that goes away while a large file is digested is not waited for.
func TestBackupDigestEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 64<<20)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	if _, _, err := OpenBackup(ctx, path, func(_, _ int64) { calls++; cancel() }); !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
