package jurat

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jurat/internal/test/must"
)

// TestFuzzSeedsAreCommitted fails if a fuzz target has no committed seeds.
func TestFuzzSeedsAreCommitted(t *testing.T) {
	target := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range target.FindAllSubmatch(source, -1) {
			found++
			seeds := filepath.Join(filepath.Dir(path), "testdata", "fuzz", string(match[1]))
			if entries, err := os.ReadDir(seeds); err != nil || len(entries) == 0 {
				t.Errorf("%s has no seeds in %s: %v", match[1], seeds, err)
			}
		}
		return nil
	})
	must.Need(t, err == nil && found >= 20, "found %d fuzz targets: %v", found, err)
}
