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

// leastRoom is how many bytes must be free on the disk, so that a record certainly fits.
const leastRoom = 1 << 20

// trouble is why the last transaction failed, if the disk may be the cause.
type trouble struct{ err error }

// Probe implements storage.Prober. It checks the free room, and commits a transaction that changes nothing: the disk
// can be full for this user alone, or fail for another reason, or a process that has stopped can hold the lock.
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

// room returns storage.ErrDiskFull if less than leastRoom is free and the system tells so.
func (s *Store) room() error {
	free, known, err := s.free()
	if err == nil && known && free < leastRoom {
		err = fmt.Errorf("%w: %d bytes are free on the disk of %s", storage.ErrDiskFull, free, s.path)
	}
	return err
}

// free returns how many bytes are free, and whether the system tells.
func (s *Store) free() (uint64, bool, error) { return freeBytes(filepath.Dir(s.path)) }

// judge remembers how a transaction ended. On a disk without room it treats an input or output error as
// storage.ErrDiskFull, because SQLite does not always distinguish the two.
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

// whyNotOpened adds to an error of opening a file why it, or its folder, cannot be written. SQLite itself gives no
// reason.
func whyNotOpened(path string, err error) error {
	if why := protected(path); why != nil {
		return fmt.Errorf("%w: %w", why, err)
	}
	return err
}
