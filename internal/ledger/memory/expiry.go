package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"jurat/internal/ledger/storage"
)

// PutExpiring implements storage.Store.
func (s *Store) PutExpiring(ctx context.Context, act string, indexes []int64) error {
	return s.write(ctx, func() error {
		for _, index := range indexes {
			if index < 0 || index >= int64(len(s.rows)) || s.waits(index) || s.expiring[index] != "" && s.expiring[index] != act {
				return fmt.Errorf("row %d: %w", index, storage.ErrConflict)
			}
		}
		for _, index := range indexes {
			s.expiring[index] = act
		}
		return nil
	})
}

func (s *Store) waits(index int64) bool {
	for d := range s.waiting {
		if d.index == index {
			return true
		}
	}
	return false
}

// Expiring implements storage.Store.
func (s *Store) Expiring(ctx context.Context, from, n int64) (list []storage.Expiring, err error) {
	err = s.read(ctx, func() error {
		for index, act := range s.expiring {
			if index >= from {
				list = append(list, storage.Expiring{Index: index, Act: act})
			}
		}
		slices.SortFunc(list, func(a, b storage.Expiring) int { return int(a.Index - b.Index) })
		list = list[:min(int64(len(list)), max(0, n))]
		return nil
	})
	return list, err
}

// Expire implements storage.Store.
func (s *Store) Expire(ctx context.Context, act string, rows []storage.Row, briefs []storage.StoredBrief) error {
	return s.write(ctx, func() error {
		for _, r := range rows {
			if s.expiring[r.Index] != act {
				return fmt.Errorf("row %d: %w", r.Index, storage.ErrConflict)
			}
		}
		for i, r := range rows {
			s.rows[r.Index] = clone(r)
			delete(s.expiring, r.Index)
			s.replaceBriefs(storage.Range{From: r.Index, To: r.Index + 1}, briefs[i:i+1])
		}
		s.replaced++
		return nil
	})
}

// DropExpiring implements storage.Store.
func (s *Store) DropExpiring(ctx context.Context, act string) error {
	return s.write(ctx, func() error {
		maps.DeleteFunc(s.expiring, func(_ int64, of string) bool { return of == act })
		return nil
	})
}

// Reclaim implements storage.Store: there is nothing to free.
func (s *Store) Reclaim(ctx context.Context, _ func(done, total int64)) error { return ctx.Err() }
