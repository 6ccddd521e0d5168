package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"jurat/internal/ledger/storage"
)

// insertLate adds a time stamp after the earlier ones of its record, unless the record has it already.
const insertLate = `INSERT INTO jurat.timestamps (idx, position, kind, token)
	SELECT $1, coalesce((SELECT max(position) + 1 FROM jurat.timestamps WHERE idx = $1), stamps), $2, $3 FROM jurat.records
	WHERE idx = $1 AND NOT EXISTS (SELECT 1 FROM jurat.timestamps WHERE idx = $1 AND kind = $2 AND token = $3)`

// stamp deletes the waiting entries and adds the time stamps. It runs before commit, because it can find that another
// writer was first: then it returns storage.ErrConflict.
func (s *Store) stamp(ctx context.Context, tx *transaction, stamps []storage.Stamp) error {
	if len(stamps) == 0 {
		return nil
	}
	sealed, err := s.sealedWith(ctx, tx, stamps)
	if err != nil {
		return err
	}
	batch := new(pgx.Batch)
	for _, s := range stamps {
		has := sealed[s.Index]
		if s.Authority != "" {
			batch.Queue(`DELETE FROM jurat.waiting WHERE authority = $1 AND idx = $2`, s.Authority, s.Index).Exec(func(tag pgconn.CommandTag) error {
				if tag.RowsAffected() != 1 {
					return fmt.Errorf("record %d does not wait for %s: %w", s.Index, s.Authority, storage.ErrConflict)
				}
				return nil
			})
		}
		if !has.HasTimestamp(s.Timestamp) {
			batch.Queue(insertLate, s.Index, string(s.Timestamp.Kind), s.Timestamp.Token)
		}
	}
	return tx.conn.SendBatch(ctx, batch).Close()
}

// sealedWith returns, by their places, the rows of late time stamps with the stamps that they were sealed with.
func (s *Store) sealedWith(ctx context.Context, tx *transaction, stamps []storage.Stamp) (map[int64]*storage.Row, error) {
	places := make([]int64, len(stamps))
	for i := range stamps {
		places[i] = stamps[i].Index
	}
	found, err := tx.conn.Query(ctx, `SELECT idx, dictionary, stamps, packed FROM jurat.records WHERE idx = ANY($1)`, places)
	if err != nil {
		return nil, err
	}
	rows, err := pgx.CollectRows(found, func(r pgx.CollectableRow) (row storage.Row, err error) {
		return row, r.Scan(&row.Index, &row.Packed.Dictionary, &row.Packed.Timestamps, &row.Packed.Blob)
	})
	if err == nil {
		err = s.packer.UnpackAll(ctx, rows)
	}
	sealed := make(map[int64]*storage.Row, len(rows))
	for i := range rows {
		sealed[rows[i].Index] = &rows[i]
	}
	return sealed, err
}

// Waiting implements storage.Store.
func (s *Store) Waiting(ctx context.Context, authority string, from, n int64) ([]storage.Wait, error) {
	return reading(ctx, s, func() ([]storage.Wait, error) {
		rows, err := s.reads.Query(ctx, `SELECT idx, since FROM jurat.waiting WHERE authority = $1 AND idx >= $2 ORDER BY idx LIMIT $3`, authority, from, max(0, n))
		if err != nil {
			return nil, err
		}
		var waits []storage.Wait
		err = collect(rows, func(index, since int64) {
			waits = append(waits, storage.Wait{Index: index, Authority: authority, Since: time.UnixMilli(since).UTC()})
		})
		return waits, err
	})
}

// Owing implements storage.Store.
func (s *Store) Owing(ctx context.Context) ([]storage.Owed, error) {
	return reading(ctx, s, func() ([]storage.Owed, error) {
		rows, err := s.reads.Query(ctx, `SELECT authority, count(*), min(since) FROM jurat.waiting GROUP BY authority ORDER BY authority`)
		if err != nil {
			return nil, err
		}
		var owing []storage.Owed
		var owed storage.Owed
		var since int64
		_, err = pgx.ForEachRow(rows, []any{&owed.Authority, &owed.Records, &since}, func() error {
			owed.Since = time.UnixMilli(since).UTC()
			owing = append(owing, owed)
			return nil
		})
		return owing, err
	})
}

// Forget implements storage.Store.
func (s *Store) Forget(ctx context.Context, authority string) (n int64, err error) {
	err = s.transact(ctx, func(ctx context.Context, tx *transaction) error {
		tag, err := tx.conn.Exec(ctx, `DELETE FROM jurat.waiting w USING jurat.records r WHERE w.authority = $1 AND r.idx = w.idx
			AND (r.stamps > 0 OR EXISTS (SELECT 1 FROM jurat.timestamps t WHERE t.idx = w.idx))`, authority)
		if err != nil {
			return err
		}
		n = tag.RowsAffected()
		return tx.commit(ctx, new(pgx.Batch))
	})
	return n, translate(err)
}
