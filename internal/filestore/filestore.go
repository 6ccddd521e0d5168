// Package filestore keeps the small files that an installation is made of beside its log: keys, certificates, settings,
// what is sealed apart. They are in a folder of one machine, or in a database that many share, and nobody who uses them
// needs to know which.
//
// A file is there whole or not at all, whatever crashes, and when a change has returned it is durable. What ends in .key
// is a secret: nobody but the operator's account reads it from a folder. In a database all of them are encrypted.
//
// # The small files of an installation are in a file store
//
// Keys, certificates, settings, intents of erasures and what is sealed apart are files that are made once, replaced, renamed,
// overwritten, removed and listed, whole or not at all, and nothing else is asked of them. So where they are is one interface of
// eight methods, and one suite holds the folder and the database to it. Whoever uses them (`keys`, `erasure`, `installation`) is
// the same on one machine and on many, and so are the steps after which a crash leaves nothing undone: the database needs no
// transactions across them that the folder could not have. What is exclusive among processes is `Create`, there as here: of all
// machines that meet an actor at once, one makes its key.
//
// # Secrets are encrypted where others can read them
//
// Envelope encryption protects the secrets of an installation that are kept where others than the operator may read them: in
// a database, and so in its copies, its write-ahead log and its backups.
//
// A secret is encrypted with AES-256-GCM under a wrapping key of 32 bytes, which is in a file that each machine is given
// and the database never holds. The name of the secret is authenticated with it, so that none can pass for another.
//
// The file has a line for each key, in base64. The first one wraps, and all of them unwrap: so a key is changed without a
// moment in which a machine could not read what another has written.
//
// # All small files are wrapped in the database
//
// They are encrypted (AES-256-GCM) under a key from a file that each machine is given, with the name in the associated data, so that
// no row passes for another. Not secrets alone: an authority's root, or an outside authority that is in the trust file from then on,
// is what somebody who can write into the database would like to add. Payloads stay as they are: they are evidence that many read,
// and a database that encrypts its disks does more for them. A key for each secret under one main key would make changing the main
// key one row, and would leave the secrets of who had the old one readable for ever; wrapping again is a row at a time, and can be
// broken off, as a file may name several keys. A key management service can come in the place of the file without anything else
// changing.
package filestore

import (
	"context"
	"io/fs"
	"path"
)

// A Store keeps files by their names: paths with slashes, as fs.ValidPath wants them. It is safe for concurrent use, also
// by several processes. Its methods return the context's error once the context has ended. A change that was under way then may have been
// made or not. Every call is bounded: what cannot be reached is an error.
type Store interface {
	// Read returns what is in a file, or an error with fs.ErrNotExist in its chain.
	Read(ctx context.Context, name string) ([]byte, error)
	// Create makes a new file, or returns an error with fs.ErrExist in its chain: whoever comes second, in any process,
	// changes nothing.
	Create(ctx context.Context, name string, content []byte) error
	// Replace makes a file, or puts it in the place of the one that is there.
	Replace(ctx context.Context, name string, content []byte) error
	// Rename gives a file another name, in the place of the file that has that name already. One that is not there is an fs.ErrNotExist.
	Rename(ctx context.Context, from, to string) error
	// Remove removes a file. One that is not there is an fs.ErrNotExist, and stays away all the same.
	Remove(ctx context.Context, name string) error
	// Overwrite writes over the beginning of what is in a file, in its very place, for what is to be read by nobody any
	// more. One that is not there is an fs.ErrNotExist.
	Overwrite(ctx context.Context, name string, content []byte) error
	// List calls found for every file below a folder, in no particular order. Files that come or go meanwhile may be missed.
	// Of what a crash has left half written it gives the name that has been left, too.
	List(ctx context.Context, folder string, found func(name string) error) error
	// Where says where a file is, to people.
	Where(name string) string
}

// Secret reports whether what is in a file of this name is to be read by nobody but the operator.
func Secret(name string) bool { return path.Ext(name) == ".key" }

// check refuses what no file can be called, and whatever is asked in the name of a context that has ended.
func check(ctx context.Context, op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return ctx.Err()
}

// EachJSON calls found for every JSON file of a folder that is whole: what a crash left half written has no such name.
func EachJSON(ctx context.Context, files Store, folder string, found func(file string) error) error {
	return files.List(ctx, folder, func(file string) error {
		if path.Ext(file) != ".json" {
			return nil
		}
		return found(file)
	})
}
