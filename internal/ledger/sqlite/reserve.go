package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"jurat/internal/ledger/storage"
)

// reserveSize is how much room is kept back for what must be recorded on a full disk. A revocation takes about a tenth of a megabyte.
const reserveSize = 2 << 20

// The reserve is a file beside the database that takes room and holds nothing. When the disk is full it is removed, for a revocation or for a
// program that starts, and while it is missing nothing is appended but revocations: others would use up what was kept for those. It is made
// again when there is room. Where the system does not say how much room there is, there is none.
func (s *Store) reservePath() string { return s.path + "-reserve" }

// keepReserve makes the reserve where it is missing, and returns ErrDiskFull if there is no room for it.
func (s *Store) keepReserve() error {
	if info, err := os.Stat(s.reservePath()); err == nil && info.Size() == reserveSize {
		return nil
	}
	free, known, err := s.free()
	if err != nil || !known {
		return nil
	}
	if free < reserveSize+leastRoom {
		return fmt.Errorf("%w: %d bytes are free on the disk of %s, which are kept for revocations; make room", storage.ErrDiskFull, free, s.path)
	}
	file, err := os.OpenFile(s.reservePath(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return s.whyNoReserve(err)
	}
	_, err = file.Write(make([]byte, reserveSize)) // and not a hole, which takes no room
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(s.whyNoReserve(err), s.useReserve())
	}
	return nil
}

func (s *Store) whyNoReserve(err error) error {
	return fmt.Errorf("%w: keeping room for revocations: %w", storage.ErrDiskFull, err)
}

// useReserve gives up the reserve.
func (s *Store) useReserve() error {
	if err := os.Remove(s.reservePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("using the room that is kept for revocations: %w", err)
	}
	return nil
}

// makeWay sees to it that what is about to be appended has room: it is called in the transaction that does so.
func (s *Store) makeWay(batch *storage.Batch) error {
	if !batch.Urgent {
		return s.keepReserve()
	}
	if full := s.room(); full == nil && s.trouble.Load() == nil {
		return nil
	}
	return s.useReserve()
}

// giveWay gives up the reserve of a file that is about to be opened on a full disk: what opens it needs some room.
func giveWay(path string) error {
	s := &Store{path: path}
	if !errors.Is(s.room(), storage.ErrDiskFull) {
		return nil
	}
	return s.useReserve()
}
