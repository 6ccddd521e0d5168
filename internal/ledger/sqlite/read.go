package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/internal/plural"
)

// reading calls read. It returns storage.ErrClosed after Close, also if read fails because of it.
func reading[T any](ctx context.Context, s *Store, read func() (T, error)) (T, error) {
	var nothing T
	if s.closed.Load() {
		return nothing, storage.ErrClosed
	}
	if err := errors.Join(ctx.Err(), s.InPlace()); err != nil { // a connection that is opened now would read another database
		return nothing, err
	}
	result, err := read()
	if err == nil {
		return result, nil
	}
	if s.closed.Load() {
		return nothing, storage.ErrClosed
	}
	return nothing, translate(err)
}

// Head implements storage.Store.
func (s *Store) Head(ctx context.Context) (storage.Head, error) {
	return reading(ctx, s, func() (storage.Head, error) { return scanHead(s.readers.QueryRowContext(ctx, selectHead)) })
}

// Checkpoint implements storage.Store.
func (s *Store) Checkpoint(ctx context.Context) (string, error) {
	return reading(ctx, s, func() (checkpoint string, err error) {
		err = s.readers.QueryRowContext(ctx, `SELECT checkpoint FROM head`).Scan(&checkpoint)
		return checkpoint, err
	})
}

// Hashes implements storage.Store.
func (s *Store) Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error) {
	return reading(ctx, s, func() ([]tlog.Hash, error) { return readHashes(ctx, s.readers, indexes) })
}

// Rows implements storage.Store.
func (s *Store) Rows(ctx context.Context, from, n int64) ([]storage.Row, error) {
	return s.rows(ctx, `r.idx >= ? AND r.idx < ?`, from, from+n)
}

// RowsAt implements storage.Store.
func (s *Store) RowsAt(ctx context.Context, at []int64) ([]storage.Row, error) {
	return s.rows(ctx, `r.idx IN (SELECT value FROM json_each(?))`, jsonOf(at))
}

// ByRecordID implements storage.Store.
func (s *Store) ByRecordID(ctx context.Context, id string) (storage.Row, error) {
	return storage.First(s.rows(ctx, `r.record_id = ?`, idOf(id)))
}

// ByDigest implements storage.Store: see digests.sql.
func (s *Store) ByDigest(ctx context.Context, digest evidence.Digest) (storage.Row, error) {
	return storage.First(s.rows(ctx, `r.idx = (
		WITH RECURSIVE stretch(n) AS (SELECT max(idx) >> 11 FROM records UNION ALL SELECT n - 1 FROM stretch WHERE n > 0)
		SELECT idx FROM stretch CROSS JOIN records WHERE idx >> 11 = n AND substr(digest, 1, 8) = substr(?1, 1, 8) AND digest = ?1 LIMIT 1)`, digest[:]))
}

// ByChain implements storage.Store.
func (s *Store) ByChain(ctx context.Context, chainID string) ([]storage.Row, error) {
	return storage.Some(s.rows(ctx, `r.chain_id = ?`, chainID))
}

// numbered selects the places of the first ?3 rows, from place ?2 on, of those that name has numbered in log order under the value of ?1, from 1 on. It
// finds the first one by bisection: reading from number 1 on would take as long as there are numbers.
//
// LIMIT +? and not LIMIT ?, as everywhere in this package: SQLite plans for the value that is bound to the latter, and so parses the statement anew for each.
func numbered(table, name, number, value string) string {
	return strings.NewReplacer("TABLE", table, "NAME", name, "NUMBER", number, "VALUE", value).Replace(`r.idx IN (
		WITH RECURSIVE search(low, high) AS (
			SELECT 1, coalesce(max(NUMBER), 0) + 1 FROM TABLE WHERE NAME = VALUE
			UNION ALL SELECT iif(m.idx < ?2, (low + high) / 2 + 1, low), iif(m.idx < ?2, high, (low + high) / 2)
				FROM search LEFT JOIN TABLE m ON m.NAME = VALUE AND m.NUMBER = (low + high) / 2 WHERE low < high)
		SELECT idx FROM TABLE WHERE NAME = VALUE AND NUMBER >= (SELECT max(low) FROM search) AND idx >= ?2 ORDER BY NUMBER LIMIT +?3)`)
}

var (
	numberedInChain = numbered("records", "chain_id", "chain_seq", `?1`)
	numberedActor   = numbered("tags", "actor", "actor_seq", `(SELECT n FROM actors WHERE tag = ?1)`)
	numberedSubject = numbered("tags", "subject", "subject_seq", `(SELECT n FROM actors WHERE tag = ?1)`)
)

// InChain implements storage.Store. It chooses the rows before it joins their time stamps, so that n counts rows.
func (s *Store) InChain(ctx context.Context, chainID string, from, n int64) ([]storage.Row, error) {
	return s.rows(ctx, numberedInChain, chainID, from, max(0, n))
}

// OfActor implements storage.Store. Its order is that of the log, because the log counts an actor's records in it.
func (s *Store) OfActor(ctx context.Context, actor evidence.Digest, from, n int64) ([]storage.Row, error) {
	return s.tagged(ctx, numberedActor, actor, from, n)
}

// About implements storage.Store.
func (s *Store) About(ctx context.Context, subject evidence.Digest, from, n int64) ([]storage.Row, error) {
	return s.tagged(ctx, numberedSubject, subject, from, n)
}

func (s *Store) tagged(ctx context.Context, where string, tag evidence.Digest, from, n int64) ([]storage.Row, error) {
	return s.rows(ctx, where, tag[:], from, max(0, n))
}

// LastOfChain implements storage.Store.
func (s *Store) LastOfChain(ctx context.Context, chainID string) (storage.Row, error) {
	return storage.First(s.rows(ctx, `r.idx = (SELECT idx FROM records WHERE chain_id = ? ORDER BY chain_seq DESC LIMIT 1)`, chainID))
}

const selectRows = `SELECT r.idx, r.record_id, r.digest, r.chain_id, r.chain_seq, r.case_digest, r.case_seq, r.dictionary, r.stamps, r.packed, t.kind, t.token,
	a.tag, g.actor_seq, s.tag, g.subject_seq
	FROM records r LEFT JOIN timestamps t ON t.idx = r.idx LEFT JOIN tags g ON g.idx = r.idx
	LEFT JOIN actors a ON a.n = g.actor LEFT JOIN actors s ON s.n = g.subject WHERE %s ORDER BY r.idx, t.position`

// rows reads records with their time stamps in one statement, so that both come from one state of the database.
func (s *Store) rows(ctx context.Context, where string, args ...any) ([]storage.Row, error) {
	return reading(ctx, s, func() ([]storage.Row, error) {
		found, err := s.readers.QueryContext(ctx, fmt.Sprintf(selectRows, where), args...)
		if err != nil {
			return nil, err
		}
		var rows []storage.Row
		err = scan(found, func() error {
			row, t, err := scanRow(found)
			if err != nil {
				return err
			}
			if n := len(rows); n == 0 || rows[n-1].Index != row.Index {
				rows = append(rows, row)
			}
			if t != nil {
				last := &rows[len(rows)-1]
				last.Timestamps = append(last.Timestamps, *t)
			}
			return nil
		})
		if err == nil {
			err = s.packer.UnpackAll(ctx, rows)
		}
		return rows, err
	})
}

// scanRow reads a record that is still packed, and one of its later time stamps, if any. It leaves out a digest of a
// form that this package does not write: such a row does not open as a record, and the rows beside it can still be
// read.
func scanRow(rows *sql.Rows) (storage.Row, *evidence.Timestamp, error) {
	var row storage.Row
	var id any
	var digest, submitted, token, actor, about []byte
	var actorSeq, subjectSeq sql.NullInt64
	var chain, kind sql.NullString
	err := rows.Scan(&row.Index, &id, &digest, &chain, &row.Counts.ChainSeq, &submitted, &row.Counts.CaseSeq,
		&row.Packed.Dictionary, &row.Packed.Timestamps, &row.Packed.Blob, &kind, &token, &actor, &actorSeq, &about, &subjectSeq)
	if err != nil {
		return row, nil, err
	}
	row.RecordID = idIn(id)
	row.ChainID, row.Counts.ActorSeq, row.Counts.SubjectSeq = chain.String, actorSeq.Int64, subjectSeq.Int64
	row.Digest, row.Case = storage.DigestIn(digest), storage.DigestIn(submitted)
	row.Actor, row.Counts.Subject = storage.DigestIn(actor), storage.DigestIn(about)
	if !kind.Valid {
		return row, nil, nil
	}
	return row, &evidence.Timestamp{Kind: evidence.TimestampKind(kind.String), Token: token}, nil
}

// Check implements storage.Checker: SQLite reads every page and compares every index with its table. SQLite does not
// report a missing index, so Check looks for the indexes by which rows are found.
func (s *Store) Check(ctx context.Context) ([]string, error) {
	return reading(ctx, s, func() (complaints []string, err error) {
		rows, err := s.readers.QueryContext(ctx, `PRAGMA integrity_check`)
		if err != nil {
			return nil, err
		}
		err = scan(rows, func() error {
			var line string
			if err := rows.Scan(&line); err != nil {
				return err
			}
			if line != "ok" {
				complaints = append(complaints, line)
			}
			return nil
		})
		if err != nil {
			return complaints, err
		}
		var strays int
		if err := s.readers.QueryRowContext(ctx, `SELECT count(*) FROM tags WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.idx = tags.idx)`).Scan(&strays); err != nil {
			return complaints, err
		}
		if strays > 0 {
			complaints = append(complaints, fmt.Sprintf("the table of counts has %s without a record", plural.Of(strays, "row")))
		}
		var unique, digests int
		err = s.readers.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM pragma_index_list('records') l, pragma_index_info(l.name) i WHERE l."unique" AND i.name = 'record_id'),
			(SELECT count(*) FROM pragma_index_list('records') WHERE name = 'records_by_digest')`).Scan(&unique, &digests)
		if err == nil && unique*digests != 1 {
			complaints = append(complaints, "the table of records lacks an index for finding its rows")
		}
		return complaints, err
	})
}
