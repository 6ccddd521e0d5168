package sqlite

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"jurat/internal/ledger/storage"
)

// TestSyncsData: a commit syncs the write-ahead log with fdatasync. One that fails stores nothing, and is not tried again; one that a signal interrupts is.
func TestSyncsData(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "log.db"))
	if err := add(t, s, "first", 10); err != nil {
		t.Fatal(err)
	}
	var answers []error
	calls := 0
	fdatasync = func(fd int) error {
		calls++
		if len(answers) == 0 {
			return unix.Fdatasync(fd)
		}
		err := answers[0]
		answers = answers[1:]
		return err
	}
	defer func() { fdatasync = unix.Fdatasync }()
	for _, test := range []struct {
		name    string
		answers []error
		calls   int
		stored  bool
	}{
		{"as usual", nil, 1, true},
		{"interrupted", []error{unix.EINTR, unix.EINTR}, 3, true},
		{"failed", []error{unix.EIO}, 1, false},
		{"after a failure", nil, 1, true},
	} {
		before, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		calls, answers = 0, test.answers
		err = add(t, s, test.name, 10)
		if failure, is := errors.AsType[*sqlite.Error](err); (err == nil) != test.stored || err != nil && (!is || failure.Code() != sqlite3.SQLITE_IOERR_FSYNC) {
			t.Errorf("%s: %v", test.name, err)
		}
		after, err := s.Head(t.Context())
		if err != nil || calls != test.calls || (after.Size == before.Size+1) != test.stored {
			t.Errorf("%s: %d calls, size %d after %d, %v", test.name, calls, after.Size, before.Size, err)
		}
		if _, err := s.ByRecordID(t.Context(), test.name); errors.Is(err, storage.ErrNotFound) == test.stored {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
