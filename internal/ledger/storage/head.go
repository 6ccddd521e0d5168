package storage

import (
	"fmt"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
	"jurat/internal/plural"
)

// A Head is the size of a log and the RFC 6962 hash over all of it.
type Head struct {
	Size int64
	Root tlog.Hash
}

// Check returns ErrDamaged for a size that no log can have. A database can come from anywhere, like a backup, and on
// some sizes the tree arithmetic would not end.
func (h Head) Check() error {
	if h.Size < 0 || h.Size > operator.MaxEntries {
		return fmt.Errorf("%w: the database says that the log has %d records, but a log can have at most %d", ErrDamaged, h.Size, int64(operator.MaxEntries))
	}
	return nil
}

func (h Head) String() string { return fmt.Sprintf("%s, root %v", plural.Of(h.Size, "record"), h.Root) }

// EmptyHead is the head of a log without records.
var EmptyHead = Head{Root: emptyRoot()}

func emptyRoot() tlog.Hash {
	root, err := tlog.TreeHash(0, nil)
	if err != nil {
		panic(err) // the hash of an empty tree reads nothing
	}
	return root
}

// OpenCheckpoint returns the head in a signed checkpoint, or ErrCheckpoint if this key did not sign it.
func OpenCheckpoint(signed string, by note.Verifier) (Head, error) {
	checkpoint, err := operator.OpenCheckpoint(signed, by)
	if err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	return Head{Size: checkpoint.Size, Root: checkpoint.Root}, nil
}
