package postgres

import (
	"context"

	"jurat/internal/ledger/storage"
)

// Dictionary implements storage.Store.
func (s *Store) Dictionary(ctx context.Context, n int64) ([]byte, error) {
	return reading(ctx, s, func() (text []byte, err error) {
		err = s.reads.QueryRow(ctx, `SELECT substr(text, 1, $1) FROM jurat.dictionaries WHERE n = $2`, storage.MaxDictionary+1, n).Scan(&text)
		return text, err
	})
}

// NewestDictionary implements storage.Store.
func (s *Store) NewestDictionary(ctx context.Context) (int64, error) {
	return reading(ctx, s, func() (n int64, err error) {
		err = s.reads.QueryRow(ctx, `SELECT coalesce(max(n), 0) FROM jurat.dictionaries`).Scan(&n)
		return n, err
	})
}

// PutDictionary implements storage.Store.
func (s *Store) PutDictionary(ctx context.Context, n int64, text []byte) error {
	defer s.packer.Renew()
	return s.changeOne(ctx, `INSERT INTO jurat.dictionaries SELECT $1::bigint, $2::bytea WHERE $1 = (SELECT coalesce(max(n), 0) + 1 FROM jurat.dictionaries)`, n, text)
}

// Pack implements storage.Store.
func (s *Store) Pack(ctx context.Context, rows []storage.Row) error { return s.packer.Pack(ctx, rows) }
