package storage

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound says that the store has no such row or hash.
	ErrNotFound = errors.New("not in the log")
	// ErrConflict says that another writer has replaced the checkpoint, or stamped a record, meanwhile.
	ErrConflict = errors.New("another writer was first")
	// ErrDuplicate is in the chain of every *DuplicateError.
	ErrDuplicate = errors.New("already in the log")
	// ErrClosed is returned by everything that is called after Close.
	ErrClosed = errors.New("the ledger is closed")
	// ErrDiskFull says that there is no room for more. What was there stands, and appending works again with room.
	ErrDiskFull = errors.New("no space left for the ledger")
	// ErrBusy says that the store could not be written to for a while, because another process holds its lock: nothing was changed.
	ErrBusy = errors.New("another process holds the log")
	// ErrReadOnly says that the ledger or its database was opened, or can be opened, only for reading.
	ErrReadOnly = errors.New("the ledger is open for reading only")
	// ErrArchive says that an archive file cannot be read: it is missing, or not what it was.
	ErrArchive = errors.New("the archive cannot be read")
	// ErrExpired says that a record was deleted after its retention time. The log keeps its hashes.
	ErrExpired = errors.New("the record has expired")
	// ErrCheckpoint says that a checkpoint is not one that this log's key signed.
	ErrCheckpoint = errors.New("the checkpoint is not this log's")
	// ErrDamaged says that what is stored contradicts itself. Package fsck names what and where.
	ErrDamaged = errors.New("the ledger is damaged")
)

// A DuplicateError names the record that is in the log already.
type DuplicateError struct {
	RecordID string // of the record in the log
	Index    int64
	Field    string // what the refused one shares with it: "record_id" or "digest"
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%v: record %s at index %d has this %s", ErrDuplicate, e.RecordID, e.Index, e.Field)
}

func (e *DuplicateError) Is(target error) bool { return target == ErrDuplicate }

// Unreadable reports whether an error is about one record, or one archive, and not about the store.
func Unreadable(err error) bool { return errors.Is(err, ErrDamaged) || errors.Is(err, ErrArchive) }
