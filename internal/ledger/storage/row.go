package storage

import (
	"fmt"

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
	Payload    []byte // canonical
	Signatures [][]byte
	Timestamps []evidence.Timestamp // in the order in which they came; alone of all this they may become more

	// A row that has shed has neither payload nor signatures in the store: an archive has them. Of one that has expired the archive
	// has nothing but these.
	Entry     []byte // what the log hashed
	ExpiredBy string // record id of the act that says so
}

// HasShed reports whether what makes the row a record is in an archive.
func (row *Row) HasShed() bool { return len(row.Payload) == 0 }

// Record makes a record of a row, and checks that the row's keys are the record's. It returns an error with ErrExpired in its chain if the
// record has expired.
func (row *Row) Record() (*evidence.Record, error) {
	if row.Entry != nil {
		return nil, row.expired()
	}
	record, err := evidence.OpenParts(row.Payload, row.Signatures, row.Timestamps)
	if err != nil {
		return nil, fmt.Errorf("%w: row %d (record %s): %w", ErrDamaged, row.Index, row.RecordID, err)
	}
	if err := row.Agrees(record); err != nil {
		return nil, err
	}
	return record, nil
}

// Agrees checks that what a row can be found by is what its record says.
func (row *Row) Agrees(record *evidence.Record) (err error) {
	switch {
	case record.Digest != row.Digest:
		err = fmt.Errorf("the payload has the digest %v, the row says %v", record.Digest, row.Digest)
	case record.Payload.RecordID != row.RecordID:
		err = fmt.Errorf("the payload is of record %s", record.Payload.RecordID)
	case record.Payload.ChainID != row.ChainID:
		err = fmt.Errorf("the payload is in chain %q, the row in %q", record.Payload.ChainID, row.ChainID)
	case Submitted(&record.Payload) != row.Case:
		err = fmt.Errorf("the payload submits the case %v, the row says %v", Submitted(&record.Payload), row.Case)
	case !row.Counts.Fit(&record.Payload):
		err = fmt.Errorf("counted as %+v, which does not fit %s", row.Counts, record.Payload.ActionType)
	default:
		return nil
	}
	return fmt.Errorf("%w: row %d (record %s): %w", ErrDamaged, row.Index, row.RecordID, err)
}

// LogEntry returns what the log hashed for a row: the only thing that is left of one that has expired.
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

// expired is the error of a row of which nothing but its hashes is left.
func (row *Row) expired() error {
	return fmt.Errorf("%w: row %d (record %s) was deleted after its retention time, by act %s", ErrExpired, row.Index, row.RecordID, row.ExpiredBy)
}

// RowOf makes the row of a record whose place is not known yet.
func RowOf(r *evidence.Record) Row {
	return Row{RecordID: r.Payload.RecordID, Digest: r.Digest, ChainID: r.Payload.ChainID,
		Case: Submitted(&r.Payload), Payload: r.Canonical(), Signatures: r.Signatures, Timestamps: r.Timestamps}
}

// Submitted is the case that a payload submits, if it does.
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

// Exactly passes on rows that are n from an index on, and else says which one is missing.
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
