package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// reading calls read, and repeats it if a connection broke. It returns storage.ErrClosed after Close.
func reading[T any](ctx context.Context, s *Store, read func() (T, error)) (result T, err error) {
	err = retry(ctx, s.pool.Reset, isBroken, func() (err error) {
		if s.closed.Load() {
			return storage.ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		result, err = read()
		return err
	})
	if err != nil && ctx.Err() != nil && !errors.Is(err, storage.ErrClosed) {
		err = errors.Join(ctx.Err(), err)
	}
	return result, translate(err)
}

// Head implements storage.Store.
func (s *Store) Head(ctx context.Context) (storage.Head, error) {
	return reading(ctx, s, func() (storage.Head, error) { return scanHead(s.reads.QueryRow(ctx, selectHead)) })
}

// Checkpoint implements storage.Store.
func (s *Store) Checkpoint(ctx context.Context) (string, error) {
	return reading(ctx, s, func() (checkpoint string, err error) {
		err = s.reads.QueryRow(ctx, `SELECT checkpoint FROM jurat.head`).Scan(&checkpoint)
		return checkpoint, err
	})
}

// Hashes implements storage.Store.
func (s *Store) Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error) {
	return reading(ctx, s, func() ([]tlog.Hash, error) { return readHashes(ctx, s.reads, indexes) })
}

// Rows implements storage.Store.
func (s *Store) Rows(ctx context.Context, from, n int64) ([]storage.Row, error) {
	return s.rows(ctx, `r.idx >= $1 AND r.idx < $2`, from, from+n)
}

// RowsAt implements storage.Store.
func (s *Store) RowsAt(ctx context.Context, at []int64) ([]storage.Row, error) {
	return s.rows(ctx, `r.idx = ANY($1)`, at)
}

// ByRecordID implements storage.Store. It first waits until all transactions of this process are over, so that "not
// found" is final.
func (s *Store) ByRecordID(ctx context.Context, id string) (storage.Row, error) {
	if err := ctx.Err(); err != nil {
		return storage.Row{}, err
	}
	if err := s.settle(ctx); err != nil {
		return storage.Row{}, err
	}
	return storage.First(s.rows(ctx, `r.record_id = $1`, id))
}

// ByDigest implements storage.Store.
func (s *Store) ByDigest(ctx context.Context, digest evidence.Digest) (storage.Row, error) {
	return storage.First(s.rows(ctx, `r.digest = $1`, digest[:]))
}

// ByChain implements storage.Store.
func (s *Store) ByChain(ctx context.Context, chainID string) ([]storage.Row, error) {
	return storage.Some(s.rows(ctx, `r.chain_id = $1`, chainID))
}

// InChain implements storage.Store.
func (s *Store) InChain(ctx context.Context, chainID string, from, n int64) ([]storage.Row, error) {
	return s.rows(ctx, numberedInChain, chainID, from, max(0, n))
}

// LastOfChain implements storage.Store.
func (s *Store) LastOfChain(ctx context.Context, chainID string) (storage.Row, error) {
	return storage.First(s.rows(ctx, `r.idx = (SELECT idx FROM jurat.records WHERE chain_id = $1 ORDER BY chain_seq DESC LIMIT 1)`, chainID))
}

// selectRows reads records with all their time stamps in one statement, so that both come from one state of the
// database.
const selectRows = `SELECT r.idx, r.record_id, r.digest, coalesce(r.chain_id, ''), r.chain_seq, r.case_digest, r.case_seq, r.dictionary, r.stamps, r.packed,
		coalesce(late.kinds, '{}'), coalesce(late.tokens, '{}'), g.actor, coalesce(g.actor_seq, 0), g.subject, coalesce(g.subject_seq, 0)
	FROM jurat.records r LEFT JOIN jurat.tags g ON g.idx = r.idx LEFT JOIN LATERAL
		(SELECT array_agg(kind ORDER BY position) AS kinds, array_agg(token ORDER BY position) AS tokens FROM jurat.timestamps WHERE idx = r.idx) late ON true
	WHERE `

func (s *Store) rows(ctx context.Context, where string, args ...any) ([]storage.Row, error) {
	return reading(ctx, s, func() ([]storage.Row, error) {
		found, err := s.reads.Query(ctx, selectRows+where+` ORDER BY r.idx`, args...)
		if err != nil {
			return nil, err
		}
		rows, err := pgx.CollectRows(found, scanRow)
		if err == nil {
			err = s.packer.UnpackAll(ctx, rows)
		}
		return rows, err
	})
}

// scanRow reads a record that is still packed. It leaves out a digest of the wrong length: such a row does not open as a record, and the
// rows beside it can still be read.
func scanRow(found pgx.CollectableRow) (row storage.Row, err error) {
	var digest, submitted, actor, about []byte
	var kinds []string
	var tokens [][]byte
	err = found.Scan(&row.Index, &row.RecordID, &digest, &row.ChainID, &row.Counts.ChainSeq, &submitted, &row.Counts.CaseSeq,
		&row.Packed.Dictionary, &row.Packed.Timestamps, &row.Packed.Blob, &kinds, &tokens, &actor, &row.Counts.ActorSeq, &about, &row.Counts.SubjectSeq)
	if err != nil {
		return row, err
	}
	row.Digest, row.Case = storage.DigestIn(digest), storage.DigestIn(submitted)
	row.Actor, row.Counts.Subject = storage.DigestIn(actor), storage.DigestIn(about)
	for i := range min(len(kinds), len(tokens)) {
		row.Timestamps = append(row.Timestamps, evidence.Timestamp{Kind: evidence.TimestampKind(kinds[i]), Token: tokens[i]})
	}
	return row, nil
}
