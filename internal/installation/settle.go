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

	"jurat/internal/atomicfile"
	"jurat/internal/lock"
)

// ManifestFile names the file that marks a folder as a backup and lists its content. It is moved into the folder last.
const ManifestFile = "backup.json"

// An installation or a backup is made inside its own folder. The folder may exist already, belong to a service manager or be a mount point.
// These names are used there while it is made:
const (
	draftPrefix = ".jurat-new-"  // a draft: a process is writing it, or crashed while it did. Readers ignore it
	finished    = ".jurat-made"  // the complete content, while its parts are moved into the folder
	makingLock  = "jurat-making" // the lock that a process holds while it writes or moves
	lockPause   = 20 * time.Millisecond
)

// Settle makes the content of a folder that is missing or empty. The content appears whole or not at all: build writes it into a draft, and
// renaming the draft commits it. If a crash follows, the next process that opens the folder moves the remaining parts. Settle returns an
// error if the folder holds anything else, and passes on the errors of build and of the file system.
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
				_ = os.Remove(dir) // Remove keeps a folder that is not empty
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
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }() // removes nothing after the rename
	if err := build(draft); err != nil {
		return err
	}
	if err := atomicfile.SyncFolders(draft, draft); err != nil {
		return err
	}
	if err := closeToOthers(dir); err != nil {
		return err
	}
	// A crash before this rename leaves a draft. The next call removes it.
	if err := os.Rename(draft, filepath.Join(dir, finished)); err != nil {
		return err
	}
	if err := atomicfile.SyncFolders(dir, dir); err != nil {
		return err
	}
	// After a crash from here on, carryOut moves the rest.
	return carryOut(dir)
}

// closeToOthers lets only the owner enter a folder. A folder of another user stays as it is: the files in it have their own modes.
func closeToOthers(dir string) error {
	err := os.Chmod(dir, 0o700)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// Settled finishes a Settle that a crash interrupted. If there is nothing to finish, it does nothing.
func Settled(ctx context.Context, dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, finished)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return makingAlone(ctx, dir, func() error { return carryOut(dir) })
}

// carryOut moves the finished parts into their folder. The caller holds the lock. After a crash between two moves, the next call moves the
// remaining parts.
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
			return errors.Join(fmt.Errorf("%s exists already, so the part in %s cannot be moved there", to, from), err)
		}
		if err := os.Rename(filepath.Join(from, part), to); err != nil {
			return err
		}
	}
	if err := atomicfile.SyncFolders(dir, dir); err != nil { // removing the empty folder says that all parts were moved, so the moves must be durable first
		return err
	}
	if err := os.Remove(from); err != nil {
		return err
	}
	return atomicfile.SyncFolders(dir, dir)
}

// inOrder returns the names of the parts, a backup's manifest last: a folder without a manifest is not a backup.
func inOrder(parts []os.DirEntry) (names []string) {
	for _, part := range parts {
		names = append(names, part.Name())
	}
	if i := slices.Index(names, ManifestFile); i >= 0 {
		names = append(slices.Delete(names, i, i+1), ManifestFile)
	}
	return names
}

// makingAlone calls do while it holds the folder's lock. It waits for the lock until the context ends.
func makingAlone(ctx context.Context, dir string, do func() error) error {
	for {
		_, release, err := lock.NewFolder(dir).Lock(ctx, makingLock)
		if err == nil {
			defer release()
			return do()
		}
		if !errors.Is(err, lock.ErrTaken) {
			return fmt.Errorf("locking %s: %w", dir, err)
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

// CheckVacant returns an error if a folder holds anything except lost+found and the names that Settle uses. A missing folder is vacant.
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
