package installation_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jurat/internal/disktest"
	"jurat/internal/installation"
)

// TestCreateOnMountPoint: a folder that cannot be renamed or removed becomes an installation, even if it contains
// remains of file systems or crashed processes.
func TestCreateOnMountPoint(t *testing.T) {
	dir := mkdir(t, filepath.Join(t.TempDir(), "data"))
	if out, err := exec.Command("mount", "-t", "tmpfs", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%s", out)
		}
	})
	mkdir(t, filepath.Join(dir, "lost+found"))
	mkdir(t, filepath.Join(dir, ".jurat-new-dead"))
	c := installation.Config{Dir: dir}
	succeeds(t, installation.Create(t.Context(), c))
	seal(t, open(t, c))
	for name := range disktest.Tree(t, dir) {
		if strings.HasPrefix(name, ".jurat") || name == "jurat-making" {
			t.Errorf("%s was left over", name)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v: want a folder that only its owner can read", info.Mode(), err)
	}
}

// TestCreateCrashed: a crash before the installation is finished leaves none. A crash after it leaves a whole one, at any point of the
// moves.
func TestCreateCrashed(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	succeeds(t, installation.Create(t.Context(), installation.Config{Dir: whole}))
	entries, err := os.ReadDir(whole)
	if err != nil || len(entries) < 4 {
		t.Fatal(entries, err)
	}
	for _, reversed := range []bool{false, true} {
		for moved := range len(entries) + 1 {
			dir := filepath.Join(t.TempDir(), "data")
			made := filepath.Join(dir, ".jurat-made")
			succeeds(t, os.MkdirAll(made, 0o700))
			order := slices.Clone(entries)
			if reversed {
				slices.Reverse(order)
			}
			for n, e := range order {
				to := made
				if n < moved {
					to = dir
				}
				if out, err := exec.Command("cp", "-a", filepath.Join(whole, e.Name()), to).CombinedOutput(); err != nil {
					t.Fatalf("%s", out)
				}
			}
			c := installation.Config{Dir: dir}
			if moved == 0 {
				if err := installation.Create(t.Context(), c); err == nil || !strings.Contains(err.Error(), "not empty") {
					t.Errorf("made another over it: %v", err)
				}
			}
			i, err := installation.Open(t.Context(), c)
			if err != nil {
				t.Fatalf("%d moved: %v", moved, err)
			}
			seal(t, i)
			succeeds(t, i.Close())
			if _, err := os.Stat(made); err == nil {
				t.Errorf("%d moved: %s is still there", moved, made)
			}
		}
	}
	draft := filepath.Join(t.TempDir(), "data")
	succeeds(t, os.MkdirAll(filepath.Join(draft, ".jurat-new-1"), 0o700))
	succeeds(t, os.Rename(filepath.Join(whole, "log.key"), filepath.Join(draft, ".jurat-new-1", "log.key")))
	if _, err := installation.Open(t.Context(), installation.Config{Dir: draft}); !errors.Is(err, installation.ErrNone) {
		t.Errorf("half an installation: %v", err)
	}
}

// TestCreateInTheWay: a file that appeared in the folder meanwhile is not overwritten.
func TestCreateInTheWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	succeeds(t, os.MkdirAll(filepath.Join(dir, ".jurat-made"), 0o700))
	for _, file := range []string{"log.key", ".jurat-made/log.key"} {
		succeeds(t, os.WriteFile(filepath.Join(dir, file), []byte(file), 0o600))
	}
	if _, err := installation.Open(t.Context(), installation.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "cannot be moved there") {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "log.key")); err != nil || string(text) != "log.key" {
		t.Errorf("%q, %v", text, err)
	}
}
