// Package filestore keeps the small files of an installation beside its log: keys, certificates, settings. They are in
// a folder of one machine, or in a database that several machines share. Callers need not know which.
//
// The methods of a Folder return the errors that Store names, an *fs.PathError around fs.ErrInvalid for
// an invalid name, and the other errors of the file system.
//
// A file exists completely or not at all, also after a crash, and a change is durable when its call returns. A file
// whose name ends in .key is a secret: in a folder, only the operator's account can read it. In a database all files
// are encrypted.
//
// # The small files of an installation are in a file store
//
// They are created, replaced, renamed, removed and listed, each atomically, and need no other operation. So one interface covers them, and one
// test suite checks the folder and the database against it. The users (`keys`, `erasure`, `installation`) are the same
// for one machine and for many. So are their steps, ordered so that a crash after any of them leaves nothing
// unfinished: they need no transactions across files, which a folder could not offer. `Create` is exclusive among processes in both: if several machines meet an actor at once, one of them makes
// its key.
//
// # Files in a database are encrypted
//
// Others than the operator may read a database, its copies, its write-ahead log or its backups. So a file is
// encrypted there with AES-256-GCM under a wrapping key of 32 bytes. Each machine has the wrapping key in a file, and
// the database never contains it. The file's name is authenticated data, so that one file cannot pass for another.
//
// The key file has one line for each key, in base64. The first key wraps, all of them unwrap. So the key can be
// changed while every machine can still read what another has written.
//
// # All small files are wrapped in the database
//
// Not only secrets are encrypted: someone who can write to the database could otherwise add an authority's root, or
// an outside authority that the trust file then contains. Payloads are not encrypted: they are evidence that many
// people read, and disk encryption protects a database better. Refused: a key for each secret under one main key.
// Changing the main key would then change one row, but an old main key would open the old secrets for ever. Wrapping
// the files again goes row by row and can be interrupted, because the key file can contain several keys. A key
// management service can replace the key file without other changes.
package filestore

import (
	"context"
	"io/fs"
	"path"
)

// A Store keeps files by name: paths with slashes, as fs.ValidPath requires. It is safe for concurrent use, also by
// several processes. Its methods return the context's error once the context has ended. A change that was in progress
// then may have been made or not. Every call is limited in time: an unreachable store is an error.
type Store interface {
	// Read returns the content of a file. The error wraps fs.ErrNotExist if there is none.
	Read(ctx context.Context, name string) ([]byte, error)
	// Create makes a new file. If the file exists, it changes nothing and the error wraps fs.ErrExist: of several
	// processes, one makes the file.
	Create(ctx context.Context, name string, content []byte) error
	// Replace makes a file, or replaces the existing one.
	Replace(ctx context.Context, name string, content []byte) error
	// Rename gives a file another name, and replaces a file that has that name. The error wraps fs.ErrNotExist if
	// there is no such file.
	Rename(ctx context.Context, from, to string) error
	// Remove removes a file. The error wraps fs.ErrNotExist if it is missing; the removal is durable then, too.
	Remove(ctx context.Context, name string) error
	// List calls found for every file below a folder, in no order. It may miss files that are created or removed
	// meanwhile. After a crash it may list the name of an unfinished file.
	List(ctx context.Context, folder string, found func(name string) error) error
	// Where describes the place of a file, for people.
	Where(name string) string
}

// A File is a file to be created.
type File struct {
	Name    string
	Content []byte
}

// Secret reports whether only the operator may read a file of this name.
func Secret(name string) bool { return path.Ext(name) == ".key" }

// check returns an error for an invalid name, or the context's error.
func check(ctx context.Context, op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return ctx.Err()
}

// EachJSON calls found for every JSON file below a folder. Unfinished files of a crash have other names, and are
// skipped. Its errors are those of List and of found.
func EachJSON(ctx context.Context, files Store, folder string, found func(file string) error) error {
	return files.List(ctx, folder, func(file string) error {
		if path.Ext(file) != ".json" {
			return nil
		}
		return found(file)
	})
}
