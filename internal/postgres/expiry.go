package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"jurat/internal/ledger/storage"
)

// PutExpiring implements storage.Store.
func (s *Store) PutExpiring(ctx context.Context, act string, indexes []int64) error {
	return translate(s.transact(ctx, func(ctx context.Context, tx *transaction) error {
		tag, err := tx.conn.Exec(ctx, `INSERT INTO jurat.expiring (idx, act) SELECT r.idx, $1 FROM jurat.records r
			WHERE r.idx = ANY($2) AND NOT EXISTS (SELECT 1 FROM jurat.waiting w WHERE w.idx = r.idx)
			ON CONFLICT (idx) DO UPDATE SET act = excluded.act WHERE jurat.expiring.act = excluded.act`, act, indexes)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != int64(len(indexes)) {
			return fmt.Errorf("%d of %d rows: %w", int64(len(indexes))-tag.RowsAffected(), len(indexes), storage.ErrConflict)
		}
		return tx.commit(ctx, new(pgx.Batch))
	}))
}

// Expiring implements storage.Store.
func (s *Store) Expiring(ctx context.Context, from, n int64) ([]storage.Expiring, error) {
	return reading(ctx, s, func() ([]storage.Expiring, error) {
		rows, err := s.reads.Query(ctx, `SELECT idx, act FROM jurat.expiring WHERE idx >= $1 ORDER BY idx LIMIT $2`, from, max(0, n))
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[storage.Expiring])
	})
}

// Expire implements storage.Store.
func (s *Store) Expire(ctx context.Context, act string, rows []storage.Row, briefs []storage.StoredBrief) error {
	if err := s.packer.Pack(ctx, rows); err != nil {
		return err
	}
	indexes, dictionaries, blobs := make([]int64, len(rows)), make([]int64, len(rows)), make([][]byte, len(rows))
	for i := range rows {
		indexes[i], dictionaries[i], blobs[i] = rows[i].Index, rows[i].Packed.Dictionary, rows[i].Packed.Blob
	}
	return translate(s.transact(ctx, func(ctx context.Context, tx *transaction) error {
		tag, err := tx.conn.Exec(ctx, `UPDATE jurat.records r SET dictionary = n.dictionary, stamps = 0, packed = n.packed
			FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS n(idx, dictionary, packed), jurat.expiring e
			WHERE r.idx = n.idx AND e.idx = n.idx AND e.act = $4`, indexes, dictionaries, blobs, act)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != int64(len(rows)) {
			return fmt.Errorf("%d of %d rows: %w", int64(len(rows))-tag.RowsAffected(), len(rows), storage.ErrConflict)
		}
		batch := new(pgx.Batch)
		for _, table := range []string{"timestamps", "briefs", "links", "expiring"} {
			batch.Queue(`DELETE FROM jurat.`+table+` WHERE idx = ANY($1)`, indexes)
		}
		queueBriefs(batch, briefs)
		batch.Queue(briefsReplaced)
		return tx.commit(ctx, batch)
	}))
}

// DropExpiring implements storage.Store.
func (s *Store) DropExpiring(ctx context.Context, act string) error {
	return translate(s.transact(ctx, func(ctx context.Context, tx *transaction) error {
		batch := new(pgx.Batch)
		batch.Queue(`DELETE FROM jurat.expiring WHERE act = $1`, act)
		return tx.commit(ctx, batch)
	}))
}

// Reclaim implements storage.Store: it frees the room for new records. The files shrink only where their ends are
// empty. VACUUM FULL could shrink them further, but would lock out every reader and writer, so Reclaim does not use
// it.
func (s *Store) Reclaim(ctx context.Context, progress func(done, total int64)) error {
	if s.closed.Load() {
		return storage.ErrClosed
	}
	tables := []string{"jurat.records", "jurat.timestamps", "jurat.expiring", "jurat.briefs", "jurat.links"}
	for n, table := range tables {
		if _, err := s.pool.Exec(ctx, `VACUUM `+table); err != nil {
			return errors.Join(ctx.Err(), translate(err))
		}
		if progress != nil {
			progress(int64(n+1), int64(len(tables)))
		}
	}
	return nil
}
