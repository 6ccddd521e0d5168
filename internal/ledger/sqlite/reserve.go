package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"jurat/internal/ledger/storage"
)

// reserveSize is how much room is reserved for what must be recorded on a full disk. A revocation takes about 0.1 MB.
const reserveSize = 2 << 20

// The reserve is a file of zeros beside the database. When the disk is full, it is removed for a revocation, or for a
// program that starts. While it is missing, only revocations are appended: other records would use up the room that
// was reserved for them. It is written again when there is room. On a system that does not tell the free room there
// is no reserve.
func (s *Store) reservePath() string { return s.path + "-reserve" }

// keepReserve writes the reserve if it is missing. It returns storage.ErrDiskFull if there is no room for it.
func (s *Store) keepReserve() error {
	if info, err := os.Stat(s.reservePath()); s.unsafe || err == nil && info.Size() == reserveSize {
		return nil
	}
	free, known, err := s.free()
	if err != nil || !known {
		return nil
	}
	if free < reserveSize+leastRoom {
		return fmt.Errorf("%w: the disk of %[3]s has %[2]d bytes left, reserved for revocations: make room", storage.ErrDiskFull, free, s.path)
	}
	file, err := os.OpenFile(s.reservePath(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return s.whyNoReserve(err)
	}
	_, err = file.Write(make([]byte, reserveSize)) // zeros, because a sparse file would take no room
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(s.whyNoReserve(err), s.useReserve())
	}
	return nil
}

func (s *Store) whyNoReserve(err error) error {
	return fmt.Errorf("%w: reserving room for revocations: %w", storage.ErrDiskFull, err)
}

// useReserve removes the reserve.
func (s *Store) useReserve() error {
	if err := os.Remove(s.reservePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("using the room reserved for revocations: %w", err)
	}
	return nil
}

// makeWay makes sure that a batch has room: an urgent one may use the reserve, others must leave it. The caller is in
// the batch's transaction.
func (s *Store) makeWay(batch *storage.Batch) error {
	if !batch.Urgent {
		return s.keepReserve()
	}
	if full := s.room(); full == nil && s.trouble.Load() == nil {
		return nil
	}
	return s.useReserve()
}

// giveWay removes the reserve of a file that is about to be opened on a full disk: opening it needs some room.
func giveWay(path string) error {
	s := &Store{path: path}
	if !errors.Is(s.room(), storage.ErrDiskFull) {
		return nil
	}
	return s.useReserve()
}
