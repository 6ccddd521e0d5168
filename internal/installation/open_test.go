package installation_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/installation"
)

// TestFolderThatOthersCanWrite: a folder into which other users could put keys is not opened, and the error says what to do.
func TestFolderThatOthersCanWrite(t *testing.T) {
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data")}
	succeeds(t, installation.Create(t.Context(), c))
	for _, part := range []string{"", "keys", "jurat.db", "log.key"} {
		path := filepath.Join(c.Dir, part)
		info := must(os.Stat(path))
		for _, more := range []os.FileMode{0o002, 0o020, 0o022} {
			succeeds(t, os.Chmod(path, info.Mode().Perm()|more))
			i, err := installation.Open(t.Context(), c)
			if !errors.Is(err, installation.ErrOpen) || !strings.Contains(err.Error(), "chmod go-w "+path) {
				t.Errorf("%s with %04o: %v", part, more, err)
			}
			if i != nil {
				i.Close()
			}
		}
		succeeds(t, os.Chmod(path, info.Mode().Perm()))
	}
	i := must(installation.Open(t.Context(), c))
	succeeds(t, i.Close())
}
