package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/internal/ledger/storage"
)

// insertOutbox stores what the new rows wait for, deletes the entries that are settled, and adds late time stamps.
func (s *Store) insertOutbox(ctx context.Context, batch *storage.Batch) error {
	for _, w := range batch.Waits {
		if _, err := s.run(ctx, `INSERT INTO waiting (authority, idx, since) VALUES (?, ?, ?)`, w.Authority, w.Index, w.Since.UnixMilli()); err != nil {
			return fmt.Errorf("storing that record %d waits for %s: %w", w.Index, w.Authority, translate(err))
		}
	}
	for _, stamp := range batch.Stamps {
		if err := s.insertStamp(ctx, stamp); err != nil {
			return err
		}
	}
	return nil
}

// insertLate adds a time stamp after those that a row has.
const insertLate = `INSERT INTO timestamps (idx, position, kind, token)
	SELECT ?1, coalesce((SELECT max(position) + 1 FROM timestamps WHERE idx = ?1), stamps), ?2, ?3 FROM records WHERE idx = ?1
	AND NOT EXISTS (SELECT 1 FROM timestamps WHERE idx = ?1 AND kind = ?2 AND token = ?3)`

func (s *Store) insertStamp(ctx context.Context, stamp storage.Stamp) error {
	if stamp.Authority != "" {
		if err := s.settle(ctx, stamp); err != nil {
			return err
		}
	}
	has, err := s.has(ctx, stamp)
	if err != nil || has {
		return err
	}
	if _, err := s.run(ctx, insertLate, stamp.Index, string(stamp.Timestamp.Kind), stamp.Timestamp.Token); err != nil {
		return fmt.Errorf("storing late time stamp of record %d: %w", stamp.Index, translate(err))
	}
	return nil
}

// has reports whether a record was sealed with this time stamp.
func (s *Store) has(ctx context.Context, stamp storage.Stamp) (bool, error) {
	var row storage.Row
	if err := s.find(ctx, `SELECT dictionary, stamps, packed FROM records WHERE idx = ?`, []any{stamp.Index}, &row.Packed.Dictionary, &row.Packed.Timestamps, &row.Packed.Blob); err != nil {
		return false, translate(err)
	}
	err := s.packer.Unpack(ctx, &row)
	return row.HasTimestamp(stamp.Timestamp), err
}

func (s *Store) settle(ctx context.Context, stamp storage.Stamp) error {
	err := s.changeOne(ctx, `DELETE FROM waiting WHERE authority = ? AND idx = ?`, stamp.Authority, stamp.Index)
	if errors.Is(err, storage.ErrConflict) {
		err = fmt.Errorf("record %d does not wait for %s: %w", stamp.Index, stamp.Authority, err)
	}
	return err
}

// Waiting implements storage.Store.
func (s *Store) Waiting(ctx context.Context, authority string, from, n int64) ([]storage.Wait, error) {
	return reading(ctx, s, func() (waits []storage.Wait, err error) {
		rows, err := s.readers.QueryContext(ctx, `SELECT idx, since FROM waiting WHERE authority = ? AND idx >= ? ORDER BY idx LIMIT +?`,
			authority, from, max(0, n))
		if err != nil {
			return nil, err
		}
		err = scan(rows, func() error {
			w := storage.Wait{Authority: authority}
			var since int64
			err := rows.Scan(&w.Index, &since)
			w.Since = time.UnixMilli(since).UTC()
			waits = append(waits, w)
			return err
		})
		return waits, err
	})
}

// Owing implements storage.Store.
func (s *Store) Owing(ctx context.Context) ([]storage.Owed, error) {
	return reading(ctx, s, func() (owing []storage.Owed, err error) {
		rows, err := s.readers.QueryContext(ctx, `SELECT authority, count(*), min(since) FROM waiting GROUP BY authority ORDER BY authority`)
		if err != nil {
			return nil, err
		}
		err = scan(rows, func() error {
			var o storage.Owed
			var since int64
			err := rows.Scan(&o.Authority, &o.Records, &since)
			o.Since = time.UnixMilli(since).UTC()
			owing = append(owing, o)
			return err
		})
		return owing, err
	})
}

// Forget implements storage.Store.
func (s *Store) Forget(ctx context.Context, authority string) (n int64, err error) {
	err = s.transact(ctx, func(ctx context.Context) error {
		result, err := s.writer.ExecContext(ctx, `DELETE FROM waiting WHERE authority = ?
			AND (EXISTS (SELECT 1 FROM timestamps WHERE timestamps.idx = waiting.idx)
				OR EXISTS (SELECT 1 FROM records WHERE records.idx = waiting.idx AND stamps > 0))`, authority)
		if err != nil {
			return translate(err)
		}
		n, err = result.RowsAffected()
		return translate(err)
	})
	return n, err
}
