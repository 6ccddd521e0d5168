package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jurat/internal/lock"
)

// ManifestFile says that a folder is a backup, and what is in it. It is the last to appear.
const ManifestFile = "backup.json"

// An installation, or a backup, comes to be inside its folder, which may be there already, belong to a service manager or be a mount
// point of its own. While it is made it has one of these names in it:
const (
	draftPrefix = ".jurat-new-"  // somebody is making it, or has died over it: it counts for nothing
	finished    = ".jurat-made"  // it is whole, and on its way out into the folder
	makingLock  = "jurat-making" // held by the process that does either
	lockPause   = 20 * time.Millisecond
)

// Settle makes what a folder holds, which is not there or is empty. It is there whole or not at all: build makes it in a draft, the
// renaming of the draft decides, and from then on whoever opens the folder carries out what is left to do.
func Settle(ctx context.Context, dir string, build func(draft string) error) (err error) {
	dir = filepath.Clean(dir)
	if err := CheckVacant(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	switch made := os.Mkdir(dir, 0o700); {
	case made == nil:
		defer func() {
			if err != nil {
				_ = os.Remove(dir) // where something is in it now, it stays
			}
		}()
	case !errors.Is(made, fs.ErrExist):
		return made
	}
	return makingAlone(ctx, dir, func() error {
		if err := carryOut(dir); err != nil {
			return err
		}
		if err := CheckVacant(dir); err != nil {
			return err
		}
		return makeIn(dir, build)
	})
}

func makeIn(dir string, build func(draft string) error) (err error) {
	if err := removeDrafts(dir); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(dir, draftPrefix+"*") // mode 0700
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }() // nothing, once it has been renamed
	if err := build(draft); err != nil {
		return err
	}
	if err := syncFolder(draft); err != nil {
		return err
	}
	if err := closeToOthers(dir); err != nil {
		return err
	}
	// A crash before this leaves a draft, which the next to come removes.
	if err := os.Rename(draft, filepath.Join(dir, finished)); err != nil {
		return err
	}
	if err := syncFolder(dir); err != nil {
		return err
	}
	// A crash from here on leaves what carryOut goes on with.
	return carryOut(dir)
}

// closeToOthers makes a folder its owner's alone. One that belongs to somebody else stays as it is: what is in it is closed by itself.
func closeToOthers(dir string) error {
	err := os.Chmod(dir, 0o700)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// Settled carries out what a crash has left of Settle, if there is anything.
func Settled(ctx context.Context, dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, finished)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return makingAlone(ctx, dir, func() error { return carryOut(dir) })
}

// carryOut moves what is finished into its folder. The lock is held. What has been moved is not in the way of the rest, so
// a crash between two moves leaves what the next call goes on with.
func carryOut(dir string) error {
	from := filepath.Join(dir, finished)
	parts, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, part := range inOrder(parts) {
		to := filepath.Join(dir, part)
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s is in the way of what %s holds", to, from), err)
		}
		if err := os.Rename(filepath.Join(from, part), to); err != nil {
			return err
		}
	}
	if err := syncFolder(dir); err != nil { // before the empty folder goes, which says that all was moved
		return err
	}
	if err := os.Remove(from); err != nil {
		return err
	}
	return syncFolder(dir)
}

// inOrder puts a backup's manifest last: what has none is no backup.
func inOrder(parts []os.DirEntry) (names []string) {
	for _, part := range parts {
		names = append(names, part.Name())
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case a == ManifestFile:
			return 1
		case b == ManifestFile:
			return -1
		}
		return 0
	})
	return names
}

// makingAlone does something in a folder that one process does at a time, and for which the others wait.
func makingAlone(ctx context.Context, dir string, do func() error) error {
	for {
		_, release, err := lock.NewFolder(dir).Claim(ctx, makingLock)
		if err == nil {
			defer release()
			return do()
		}
		if !errors.Is(err, lock.ErrTaken) {
			return fmt.Errorf("making it in %s: %w", dir, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

func removeDrafts(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), draftPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// CheckVacant refuses a folder in which anything is, but what file systems and making it leave there.
func CheckVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "lost+found", name == makingLock, name == finished, strings.HasPrefix(name, draftPrefix):
		default:
			return fmt.Errorf("the folder %s is not empty: %q is in it", dir, name)
		}
	}
	return nil
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
