package memory

import (
	"context"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// Archives implements storage.Store.
func (s *Store) Archives(ctx context.Context) (list []storage.Archived, err error) {
	err = s.read(ctx, func() error {
		list = slices.Clone(s.archives)
		return nil
	})
	return list, err
}

// PutArchive implements storage.Store.
func (s *Store) PutArchive(ctx context.Context, old evidence.Digest, next storage.Archived) error {
	return s.write(ctx, func() error {
		if err := next.Check(s.head); err != nil {
			return err
		}
		if !old.IsZero() {
			i := slices.IndexFunc(s.archives, func(a storage.Archived) bool {
				return a.From == next.From && a.To == next.To && a.Digest == old
			})
			if i < 0 {
				return storage.ErrConflict
			}
			s.archives[i] = next
			return nil
		}
		var end int64
		if n := len(s.archives); n > 0 {
			end = s.archives[n-1].To
		}
		if next.From != end {
			return storage.ErrConflict
		}
		s.archives = append(s.archives, next)
		return nil
	})
}

// Shed implements storage.Store.
func (s *Store) Shed(ctx context.Context, rows []storage.Shedding) error {
	return s.write(ctx, func() error {
		for _, r := range rows {
			if err := s.mayShed(r.Index); err != nil {
				return fmt.Errorf("row %d: %w", r.Index, err)
			}
		}
		for _, r := range rows {
			row := &s.rows[r.Index]
			if row.HasShed() {
				continue
			}
			row.Payload, row.Signatures, row.Packed = nil, nil, storage.Packed{}
			row.Timestamps = row.Timestamps[min(r.Timestamps, len(row.Timestamps)):]
		}
		return nil
	})
}

func (s *Store) mayShed(index int64) error {
	if index < 0 || index >= int64(len(s.rows)) {
		return storage.ErrNotFound
	}
	for d := range s.waiting {
		if d.index == index {
			return storage.ErrConflict
		}
	}
	for _, a := range s.archives {
		if a.From <= index && index < a.To {
			return nil
		}
	}
	return storage.ErrConflict
}
