package storage

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// A Row is a record as a store keeps it.
type Row struct {
	Index      int64 // place in the log, from 0
	RecordID   string
	Digest     evidence.Digest
	ChainID    string          // "": in no chain
	Case       evidence.Digest // of a submission: what is submitted; zero for everything else
	Counts     evidence.LogCounts
	Actor      evidence.Digest // tag of its actor; zero if Counts.ActorSeq is 0
	Payload    []byte          // canonical
	Signatures [][]byte
	Timestamps []evidence.Timestamp // in order of arrival; the only part that can grow

	Packed Packed // payload, signatures and time stamps as a store keeps them
	Broken error  // why Packed cannot be unpacked; nil if it can

	// An expired record has only these instead of its payload, signatures and time stamps.
	Entry     []byte // what the log hashed
	ExpiredBy string // record id of the act about the deletion
}

// Record makes a record of a row, and checks that the row's keys are the record's. It returns ErrExpired, wrapped, if
// the record has expired, and ErrDamaged, wrapped, if the row is not a record.
func (row *Row) Record() (*evidence.Record, error) {
	if row.Entry != nil {
		return nil, row.expired()
	}
	record, err := row.open()
	if err != nil {
		return nil, fmt.Errorf("%w: row %d (record %s): %w", ErrDamaged, row.Index, row.RecordID, err)
	}
	if err := row.Agrees(record); err != nil {
		return nil, err
	}
	return record, nil
}

func (row *Row) open() (*evidence.Record, error) {
	if row.Broken != nil {
		return nil, row.Broken
	}
	return evidence.OpenParts(row.Payload, row.Signatures, row.Timestamps)
}

// Agrees returns ErrDamaged, wrapped, if the row's keys differ from those in its record.
func (row *Row) Agrees(record *evidence.Record) (err error) {
	switch {
	case record.Digest != row.Digest:
		err = fmt.Errorf("the payload has the digest %v, but the row says %v", record.Digest, row.Digest)
	case record.Payload.RecordID != row.RecordID:
		err = fmt.Errorf("the payload is of record %s", record.Payload.RecordID)
	case record.Payload.ChainID != row.ChainID:
		err = fmt.Errorf("the payload is in chain %q, but the row is in %q", record.Payload.ChainID, row.ChainID)
	case Submitted(&record.Payload) != row.Case:
		err = fmt.Errorf("the payload submits the case %v, but the row says %v", Submitted(&record.Payload), row.Case)
	case row.Counts.ActorSeq > 0 && row.Actor != ActorOf(&record.Payload) || row.Counts.ActorSeq == 0 && !row.Actor.IsZero():
		err = fmt.Errorf("the payload is by %s %q, but the row has another tag", record.Payload.Role(), record.Payload.Actor())
	case !row.Counts.Fit(&record.Payload):
		err = fmt.Errorf("counted as %+v, which does not fit %s", row.Counts, record.Payload.ActionType)
	default:
		return nil
	}
	return fmt.Errorf("%w: row %d (record %s): %w", ErrDamaged, row.Index, row.RecordID, err)
}

// HasTimestamp reports whether a row has this time stamp.
func (row *Row) HasTimestamp(t evidence.Timestamp) bool {
	return slices.ContainsFunc(row.Timestamps, func(has evidence.Timestamp) bool { return has.Kind == t.Kind && bytes.Equal(has.Token, t.Token) })
}

// LogEntry returns what the log hashed for a row. For an expired record, this is all that is left. It returns
// ErrDamaged, wrapped, if the row is not a record.
func (row *Row) LogEntry() ([]byte, error) {
	if row.Entry != nil {
		return row.Entry, nil
	}
	record, err := row.Record()
	if err != nil {
		return nil, err
	}
	return record.LogEntry(row.Counts), nil
}

// expired is the error for a row of which only the hashes are left.
func (row *Row) expired() error {
	return fmt.Errorf("%w: row %d (record %s) was deleted by act %s", ErrExpired, row.Index, row.RecordID, row.ExpiredBy)
}

// RowOf makes the row of a record that has no place and no counts yet. A log that counts it also sets its Actor.
func RowOf(r *evidence.Record) Row {
	return Row{RecordID: r.Payload.RecordID, Digest: r.Digest, ChainID: r.Payload.ChainID,
		Case: Submitted(&r.Payload), Payload: r.Canonical(), Signatures: r.Signatures, Timestamps: r.Timestamps}
}

// ActorOf is the tag of a payload's actor.
func ActorOf(p *evidence.Payload) evidence.Digest { return evidence.ActorTag(p.Role(), p.Actor()) }

// Submitted is the case that a payload submits, or zero.
func Submitted(p *evidence.Payload) evidence.Digest {
	if p.ActionType != evidence.Submission {
		return evidence.Digest{}
	}
	return p.Case
}

// LeafHash is the hash of a record in the tree.
func LeafHash(r *evidence.Record, counts evidence.LogCounts) tlog.Hash {
	return tlog.RecordHash(r.LogEntry(counts))
}

// Exactly returns a function that passes on n rows from an index on. It returns ErrDamaged, wrapped, if one is
// missing.
func Exactly(from, n int64) func([]Row, error) ([]Row, error) {
	return func(rows []Row, err error) ([]Row, error) {
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if rows[i].Index != from+int64(i) {
				return nil, fmt.Errorf("%w: row %d is missing", ErrDamaged, from+int64(i))
			}
		}
		if int64(len(rows)) != n {
			return nil, fmt.Errorf("%w: row %d is missing", ErrDamaged, from+int64(len(rows)))
		}
		return rows, nil
	}
}

// ReadableRows returns those of the n rows from an index on that the store can read. Others count as missing.
func ReadableRows(ctx context.Context, from Records, index, n int64) ([]Row, error) {
	rows, err := from.Rows(ctx, index, n)
	if err == nil || !Unreadable(err) {
		return rows, err
	}
	rows = nil
	for i := index; i < index+n && n > 1; i++ {
		one, err := ReadableRows(ctx, from, i, 1)
		if err != nil {
			return nil, err
		}
		rows = append(rows, one...)
	}
	return rows, nil
}
