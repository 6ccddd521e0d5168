package storage

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound means that the store has no such row or hash.
	ErrNotFound = errors.New("not in the log")
	// ErrConflict means that another writer has replaced the checkpoint, or stamped a record, meanwhile.
	ErrConflict = errors.New("another writer was first")
	// ErrDuplicate is matched by every *DuplicateError.
	ErrDuplicate = errors.New("already in the log")
	// ErrNotUnique means that a key of a new row is in the database already. Engines return it.
	ErrNotUnique = errors.New("a key is in the database already")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("the ledger is closed")
	// ErrDiskFull means that there is no room for more. Nothing is lost, and appending works again once there is
	// room.
	ErrDiskFull = errors.New("no space left for the ledger")
	// ErrBusy means that the store could not be written for a while, because another process holds its lock. Nothing
	// was changed.
	ErrBusy = errors.New("another process holds the log")
	// ErrAway means that the store's database cannot be used now. It is wrapped by errors that say why.
	ErrAway = errors.New("the database of the ledger is away")
	// ErrMoved means that the files of the log are not where this process opened them: they were removed, renamed or
	// replaced, or another disk is mounted there. Nothing can be appended until they are back, or the process opens
	// them again.
	ErrMoved = errors.New("the log's files are not where they were opened")
	// ErrReadOnly means that the ledger or its database can only be read.
	ErrReadOnly = errors.New("the ledger is open for reading only")
	// ErrExpired means that the content of a record was deleted. The log keeps its hashes.
	ErrExpired = errors.New("the record has expired")
	// ErrCheckpoint means that this log's key did not sign the checkpoint.
	ErrCheckpoint = errors.New("the checkpoint is not this log's")
	// ErrDamaged means that stored data contradict each other. Package fsck reports what and where.
	ErrDamaged = errors.New("the ledger is damaged")
)

// A DuplicateError names the record that is in the log already.
type DuplicateError struct {
	RecordID string // of the record in the log
	Index    int64
	Field    string // what the refused record shares with it: "record_id" or "digest"
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%v: record %s at index %d has this %s", ErrDuplicate, e.RecordID, e.Index, e.Field)
}

func (e *DuplicateError) Is(target error) bool { return target == ErrDuplicate }

// Unreadable reports whether an error concerns one record, not the whole store.
func Unreadable(err error) bool { return errors.Is(err, ErrDamaged) }

// Known returns an error if the tables of a log have another version than the one that this program knows.
func Known(has, want string) error {
	if has == want {
		return nil
	}
	return fmt.Errorf("the tables have version %q, and this program knows version %s alone: no program with another was released; the log of one from before is read by that of commit 4f6f114d", has, want)
}
