package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

var _ storage.Reclaimer = (*Store)(nil)

// Archives implements storage.Store.
func (s *Store) Archives(ctx context.Context) ([]storage.Archived, error) {
	return reading(ctx, s, func() ([]storage.Archived, error) {
		rows, err := s.reads.Query(ctx, `SELECT first, past, file, digest, shed FROM jurat.archives ORDER BY first`)
		if err != nil {
			return nil, err
		}
		var list []storage.Archived
		var a storage.Archived
		var digest []byte
		_, err = pgx.ForEachRow(rows, []any{&a.From, &a.To, &a.File, &digest, &a.Shed}, func() error {
			err := fixed(a.Digest[:], digest)
			list = append(list, a)
			return err
		})
		return list, err
	})
}

// PutArchive implements storage.Store.
func (s *Store) PutArchive(ctx context.Context, old evidence.Digest, next storage.Archived) error {
	return translate(s.transact(ctx, func(ctx context.Context, tx *transaction) error {
		if err := next.Check(tx.head); err != nil {
			return err
		}
		text, args := `UPDATE jurat.archives SET file = $1, digest = $2, shed = $3 WHERE first = $4 AND past = $5 AND digest = $6`,
			[]any{next.File, next.Digest[:], next.Shed, next.From, next.To, old[:]}
		if old.IsZero() {
			text = `INSERT INTO jurat.archives (file, digest, shed, first, past) SELECT $1, $2, $3, $4, $5
				WHERE $4::bigint = (SELECT coalesce(max(past), 0) FROM jurat.archives)`
			args = args[:5]
		}
		tag, err := tx.conn.Exec(ctx, text, args...)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return storage.ErrConflict
		}
		return tx.commit(ctx, new(pgx.Batch))
	}))
}

// Shed implements storage.Store. The time stamps that a record was sealed with are in its row. Later ones are in a
// table of their own.
func (s *Store) Shed(ctx context.Context, rows []storage.Shedding) error {
	indexes, stamps := make([]int64, len(rows)), make([]int32, len(rows))
	for i, r := range rows {
		indexes[i], stamps[i] = r.Index, int32(r.Timestamps)
	}
	return translate(s.transact(ctx, func(ctx context.Context, tx *transaction) error {
		var may int
		err := tx.conn.QueryRow(ctx, `SELECT count(*) FROM unnest($1::bigint[]) AS i(idx) JOIN jurat.records USING (idx)
			WHERE EXISTS (SELECT 1 FROM jurat.archives a WHERE a.first <= i.idx AND i.idx < a.past)
			AND NOT EXISTS (SELECT 1 FROM jurat.waiting w WHERE w.idx = i.idx)`, indexes).Scan(&may)
		if err == nil && may != len(rows) {
			err = fmt.Errorf("%d of %d rows: %w", len(rows)-may, len(rows), storage.ErrConflict)
		}
		if err != nil {
			return err
		}
		batch := new(pgx.Batch)
		batch.Queue(`DELETE FROM jurat.timestamps t USING unnest($1::bigint[], $2::integer[]) AS i(idx, stamps), jurat.records r
			WHERE t.idx = i.idx AND r.idx = i.idx AND octet_length(r.packed) > 0 AND t.position < i.stamps`, indexes, stamps)
		batch.Queue(`UPDATE jurat.records SET packed = '', dictionary = 0, stamps = 0 WHERE idx = ANY($1) AND octet_length(packed) > 0`, indexes)
		return tx.commit(ctx, batch)
	}))
}

// Reclaim implements storage.Reclaimer: it frees the room for new records. The files shrink only where their ends are
// empty. VACUUM FULL could shrink them further, but would lock out every reader and writer, so Reclaim does not use
// it.
func (s *Store) Reclaim(ctx context.Context, progress func(done, total int64)) error {
	if s.closed.Load() {
		return storage.ErrClosed
	}
	tables := []string{"jurat.records", "jurat.timestamps", "jurat.tags", "jurat.briefs", "jurat.links"}
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
