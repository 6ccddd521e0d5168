package installation_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"jurat/internal/log/installation"
	"jurat/internal/test/must"
)

// TestRemovedWorkingFolder checks the error for a relative data folder when the folder that it is relative to is gone: it names the folder
// as the caller did, and says why it has no path.
func TestRemovedWorkingFolder(t *testing.T) {
	gone := t.TempDir()
	t.Chdir(gone)
	must.Do(t, os.Remove(gone))
	_, err := installation.Open(t.Context(), installation.Config{Dir: "data"})
	must.Hold(t, errors.Is(err, installation.ErrNone) && errors.Is(err, os.ErrNotExist) && strings.Contains(err.Error(), "is in data"), "%v", err)
}
