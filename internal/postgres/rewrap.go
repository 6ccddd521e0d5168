package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"jurat/internal/filestore"
)

// CheckKeys returns an error that wraps filestore.ErrOtherKey if there are files that these keys do not unwrap. It
// reads the index only, not the files.
func (s *Files) CheckKeys(ctx context.Context) error {
	// This lists the distinct values of an index, each looked up after the one before.
	rows, err := s.pool.Query(ctx, `WITH RECURSIVE used AS (
		SELECT min(wrapped) AS id FROM jurat.files
		UNION ALL SELECT (SELECT min(wrapped) FROM jurat.files WHERE wrapped > used.id) FROM used WHERE used.id IS NOT NULL
	) SELECT id FROM used WHERE id IS NOT NULL`)
	if err != nil {
		return err
	}
	used, err := pgx.CollectRows(rows, pgx.RowTo[filestore.ID])
	if err != nil {
		return err
	}
	for _, id := range used {
		if !s.keys.Has(id) {
			return fmt.Errorf("%w: %s; the given key is %s", filestore.ErrOtherKey, id, s.keys)
		}
	}
	return nil
}

// Rewrap wraps every file under the first key that is not wrapped under it yet, and returns how many it wrapped. It
// can be interrupted and called again: at every moment each file is wrapped under one of the given keys.
func (s *Files) Rewrap(ctx context.Context, progress func(done int64)) (done int64, err error) {
	first := s.keys.IDs()[0]
	for after := ""; ; {
		rows, err := s.pool.Query(ctx, `SELECT name FROM jurat.files WHERE wrapped <> $1 AND name > $2 ORDER BY name LIMIT $3`, first, after, page)
		if err != nil {
			return done, err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return done, err
		}
		for _, name := range names {
			is, err := s.rewrap(ctx, name, first)
			if err != nil {
				return done, fmt.Errorf("wrapping %s: %w", name, err)
			}
			if is {
				done++
				progress(done)
			}
			after = name
		}
		if len(names) < page {
			return done, nil
		}
	}
}

func (s *Files) rewrap(ctx context.Context, name string, first filestore.ID) (done bool, err error) {
	err = s.transact(ctx, func(tx pgx.Tx) error {
		var stored []byte
		var key filestore.ID
		err := tx.QueryRow(ctx, selectForUpdate, name).Scan(&stored, &key)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && key == first {
			return nil // since its name was read, the file was removed, or wrapped by another process
		}
		if err != nil {
			return err
		}
		content, err := s.keys.Unwrap(name, key, stored)
		if err != nil {
			return err
		}
		key, stored = s.keys.Wrap(name, content)
		_, err = tx.Exec(ctx, `UPDATE jurat.files SET content = $2, wrapped = $3 WHERE name = $1`, name, stored, key)
		done = true
		return err
	})
	return done, err
}
