// Package atomicfile writes files that exist completely or not at all, also after a crash.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Create makes a new file. If the file exists, it changes nothing and returns an error that wraps fs.ErrExist: of
// several processes, one makes the file. It makes missing folders, readable for the owner alone.
func Create(file string, text []byte, mode os.FileMode) error {
	return write(file, text, mode, os.Link) // Link, unlike Rename, fails if the file exists
}

// Replace makes a file, or replaces the existing one. Its errors are those of the file system.
func Replace(file string, text []byte, mode os.FileMode) error {
	return write(file, text, mode, os.Rename)
}

func write(file string, text []byte, mode os.FileMode, put func(from, to string) error) error {
	folder := filepath.Dir(file)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	draft, err := os.CreateTemp(folder, ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name()) // fails once the file has been renamed
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Chmod(mode), draft.Sync(), draft.Close()); err != nil {
		return err
	}
	// A crash before this line leaves a hidden unfinished file and the old state; a crash after it leaves the whole
	// new file.
	if err := put(draft.Name(), file); err != nil {
		return err
	}
	return syncFolder(folder)
}

// SyncFolders syncs a folder and the folders above it up to top, so that new names in them are durable. A new file in
// a new folder needs this. It returns an error if folder is neither top nor below it.
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

// syncFolder makes new names in a folder durable.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Rename gives a file another name in the same folder, durably. Its errors are those of the file system.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// CheckPrivate returns an error if users other than its owner can access a file, which has a key.
func CheckPrivate(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o: others on this machine can use the key; if none did, run chmod 600 on it, otherwise make a new key", file.Name(), mode)
	}
	return nil
}
