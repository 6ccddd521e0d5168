package memory

import (
	"context"

	"jurat/internal/ledger/storage"
)

// Dictionary implements storage.Store.
func (s *Store) Dictionary(ctx context.Context, n int64) (text []byte, err error) {
	err = s.read(ctx, func() error {
		if n < 1 || n > int64(len(s.dictionaries)) {
			return storage.ErrNotFound
		}
		text = s.dictionaries[n-1]
		return nil
	})
	return text, err
}

// NewestDictionary implements storage.Store.
func (s *Store) NewestDictionary(ctx context.Context) (n int64, err error) {
	err = s.read(ctx, func() error {
		n = int64(len(s.dictionaries))
		return nil
	})
	return n, err
}

// PutDictionary implements storage.Store.
func (s *Store) PutDictionary(ctx context.Context, n int64, text []byte) error {
	return s.write(ctx, func() error {
		if n != int64(len(s.dictionaries))+1 {
			return storage.ErrConflict
		}
		s.dictionaries = append(s.dictionaries, text)
		return nil
	})
}

// Pack implements storage.Store: this store packs nothing.
func (s *Store) Pack(ctx context.Context, _ []storage.Row) error { return ctx.Err() }
