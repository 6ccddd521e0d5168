package installation_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"jurat/internal/log/installation"
)

// TestRemovedWorkingFolder checks the error for a relative data folder when the folder that it is relative to is gone: it names the folder
// as the caller did, and says why it has no path.
func TestRemovedWorkingFolder(t *testing.T) {
	gone := t.TempDir()
	t.Chdir(gone)
	succeeds(t, os.Remove(gone))
	_, err := installation.Open(t.Context(), installation.Config{Dir: "data"})
	if !errors.Is(err, installation.ErrNone) || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "is in data") {
		t.Errorf("%v", err)
	}
}
