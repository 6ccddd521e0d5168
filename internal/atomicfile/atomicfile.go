// Package atomicfile writes files that are there whole or not at all, whatever crashes.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Create makes a new file, and fails with an error that is fs.ErrExist if there is one: whoever comes second, in any
// process, changes nothing. Missing folders are made for the owner alone.
func Create(file string, text []byte, mode os.FileMode) error {
	return write(file, text, mode, os.Link) // Link, unlike Rename, fails where a file exists
}

// Replace makes a file, or puts it in the place of the one that is there.
func Replace(file string, text []byte, mode os.FileMode) error {
	return write(file, text, mode, os.Rename)
}

func write(file string, text []byte, mode os.FileMode, put func(from, to string) error) error {
	folder := filepath.Dir(file)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	draft, err := os.CreateTemp(folder, ".new-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name()) // nothing, once it has been renamed
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Chmod(mode), draft.Sync(), draft.Close()); err != nil {
		return err
	}
	// A crash before this line leaves a hidden leftover and the old state; after it, the whole new file.
	if err := put(draft.Name(), file); err != nil {
		return err
	}
	return syncFolder(folder)
}

// SyncFolders makes names durable in a folder and in those above it, up to the folder top, which it is or is below: with
// a new file in a new folder, the file's name is not all that is new.
func SyncFolders(folder, top string) error {
	for folder, top = filepath.Clean(folder), filepath.Clean(top); ; folder = filepath.Dir(folder) {
		if err := syncFolder(folder); err != nil || folder == top {
			return err
		}
		if folder == filepath.Dir(folder) {
			return fmt.Errorf("%s is not below %s", folder, top)
		}
	}
}

// syncFolder makes a new name in a folder durable.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Rename gives a file another name in the same folder, durably.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}
