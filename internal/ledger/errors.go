package ledger

import (
	"jurat/internal/ledger/links"
	"jurat/internal/ledger/storage"
)

// Errors of the store that callers of the Ledger see.
var (
	ErrNotFound   = storage.ErrNotFound
	ErrConflict   = storage.ErrConflict
	ErrDuplicate  = storage.ErrDuplicate
	ErrClosed     = storage.ErrClosed
	ErrDiskFull   = storage.ErrDiskFull
	ErrBusy       = storage.ErrBusy
	ErrReadOnly   = storage.ErrReadOnly
	ErrArchive    = storage.ErrArchive
	ErrExpired    = storage.ErrExpired
	ErrDamaged    = storage.ErrDamaged
	ErrCheckpoint = storage.ErrCheckpoint
)

// Errors of the judgment on links that callers of the Ledger see.
var (
	ErrNotAdmitted = links.ErrNotAdmitted
	ErrContradicts = links.ErrContradicts
)

// A LinkError says by which rule of verification a record contradicts what is in the log.
type LinkError = links.Error

// A DuplicateError names the record that is in the log already.
type DuplicateError = storage.DuplicateError

// An UnreadableError says which archive cannot be read. It has ErrArchive in its chain.
type UnreadableError = storage.UnreadableError
