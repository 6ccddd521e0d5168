package storage

import (
	"fmt"

	"jurat/evidence"
)

// What the stores in SQL read of their tables.

// Fixed copies bytes whose length the tables guarantee, and returns ErrDamaged for another length.
func Fixed(to, from []byte) error {
	if len(from) != len(to) {
		return fmt.Errorf("%w: a hash has %d bytes", ErrDamaged, len(from))
	}
	copy(to, from)
	return nil
}

// DigestIn is the digest in a column. It is zero if there is none, and for another length: such a row does not open as
// a record, and the rows beside it can still be read.
func DigestIn(column []byte) (d evidence.Digest) {
	if Fixed(d[:], column) != nil {
		return evidence.Digest{}
	}
	return d
}

// First returns the first of the rows that were found, or ErrNotFound.
func First(rows []Row, err error) (Row, error) {
	if rows, err = Some(rows, err); err != nil {
		return Row{}, err
	}
	return rows[0], nil
}

// Some returns the rows that were found, or ErrNotFound if there are none.
func Some(rows []Row, err error) ([]Row, error) {
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	return rows, err
}
