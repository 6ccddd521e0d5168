package ledger

import "jurat/internal/ledger/storage"

// Errors of the store that callers of the Ledger see.
var (
	ErrNotFound  = storage.ErrNotFound
	ErrConflict  = storage.ErrConflict
	ErrDuplicate = storage.ErrDuplicate
	ErrClosed    = storage.ErrClosed
	ErrDiskFull  = storage.ErrDiskFull
	ErrBusy      = storage.ErrBusy
	ErrReadOnly  = storage.ErrReadOnly
	ErrArchive   = storage.ErrArchive
	ErrExpired   = storage.ErrExpired
	ErrDamaged   = storage.ErrDamaged
)

// A DuplicateError names the record that is in the log already.
type DuplicateError = storage.DuplicateError

// An UnreadableError says which archive cannot be read. It has ErrArchive in its chain.
type UnreadableError = storage.UnreadableError
