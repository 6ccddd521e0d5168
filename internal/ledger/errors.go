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
	ErrAway       = storage.ErrAway
	ErrMoved      = storage.ErrMoved
	ErrReadOnly   = storage.ErrReadOnly
	ErrExpired    = storage.ErrExpired
	ErrDamaged    = storage.ErrDamaged
	ErrCheckpoint = storage.ErrCheckpoint
)

// Errors of package links that callers of the Ledger see.
var (
	ErrNotAdmitted = links.ErrNotAdmitted
	ErrContradicts = links.ErrContradicts
)

// A LinkError names the verification rule by which a record contradicts the log.
type LinkError = links.Error

// A DuplicateError names the record that is in the log already.
type DuplicateError = storage.DuplicateError
