package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"jurat/internal/ledger/storage"
)

// leastRoom is how much has to be free on the disk for a record to be sure to fit.
const leastRoom = 1 << 20

// trouble is why the last transaction failed, where that can be the disk's fault.
type trouble struct{ err error }

// Probe implements storage.Prober. The room on the disk is asked for, and a transaction is written that changes nothing: a disk can be full for
// this user alone, or take nothing for other reasons, and the lock be held by a process that stands still.
func (s *Store) Probe(ctx context.Context) error {
	if s.closed.Load() {
		return storage.ErrClosed
	}
	if s.readOnly != nil {
		return s.readOnly
	}
	if err := s.room(); err != nil {
		return err
	}
	return s.transact(ctx, func(ctx context.Context) error {
		if err := s.keepReserve(); err != nil {
			return err
		}
		_, err := s.writer.ExecContext(ctx, `UPDATE head SET size = size`)
		return translate(err)
	})
}

// room returns ErrDiskFull where there is hardly any, as far as the system says.
func (s *Store) room() error {
	free, known, err := s.free()
	if err == nil && known && free < leastRoom {
		err = fmt.Errorf("%w: %d bytes are free on the disk of %s", storage.ErrDiskFull, free, s.path)
	}
	return err
}

// free is how much room there is, and whether that is known.
func (s *Store) free() (uint64, bool, error) { return freeBytes(filepath.Dir(s.path)) }

// judge remembers how a transaction ended. An input or output error of a disk without room is for want of room: SQLite does not
// always tell one from the other.
func (s *Store) judge(err error) error {
	var failure *sqlite.Error
	if errors.As(err, &failure) && failure.Code()&0xff == sqlite3.SQLITE_IOERR {
		if full := s.room(); errors.Is(full, storage.ErrDiskFull) {
			err = fmt.Errorf("%w: %w", full, err)
		}
		s.trouble.Store(&trouble{err})
		return err
	}
	switch {
	case err == nil:
		s.trouble.Store(nil)
	case errors.Is(err, storage.ErrDiskFull), errors.Is(err, storage.ErrReadOnly):
		s.trouble.Store(&trouble{err})
	}
	return err
}

// whyNotOpened adds to an error of opening a file that it, or its folder, cannot be written: SQLite says only that it could not.
func whyNotOpened(path string, err error) error {
	if why := protected(path); why != nil {
		return fmt.Errorf("%w: %w", why, err)
	}
	return err
}
