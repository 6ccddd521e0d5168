package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// A debt is a time stamp that a record waits for.
type debt struct {
	authority string
	index     int64
}

// stamp adds time stamps to the rows that wait for them, all or none. It returns storage.ErrConflict, wrapped, if a
// row does not wait.
func (s *Store) stamp(stamps []storage.Stamp) error {
	settled := map[debt]bool{}
	for _, stamp := range stamps {
		d := debt{stamp.Authority, stamp.Index}
		if d.authority == "" {
			continue
		}
		if _, waits := s.waiting[d]; !waits || settled[d] {
			return fmt.Errorf("record %d does not wait for %s: %w", stamp.Index, stamp.Authority, storage.ErrConflict)
		}
		settled[d] = true
	}
	for _, stamp := range stamps {
		delete(s.waiting, debt{stamp.Authority, stamp.Index})
		s.addTimestamp(stamp.Index, stamp.Timestamp)
	}
	return nil
}

func (s *Store) addTimestamp(index int64, t evidence.Timestamp) {
	row := &s.rows[index]
	if slices.ContainsFunc(row.Timestamps, func(has evidence.Timestamp) bool { return has.Kind == t.Kind && bytes.Equal(has.Token, t.Token) }) {
		return
	}
	t.Token = bytes.Clone(t.Token)
	row.Timestamps = append(row.Timestamps, t)
}

// Waiting implements storage.Store.
func (s *Store) Waiting(ctx context.Context, authority string, from, n int64) (waits []storage.Wait, err error) {
	err = s.read(ctx, func() error {
		for d, since := range s.waiting {
			if d.authority == authority && d.index >= from {
				waits = append(waits, storage.Wait{Index: d.index, Authority: authority, Since: since})
			}
		}
		slices.SortFunc(waits, func(a, b storage.Wait) int { return cmp.Compare(a.Index, b.Index) })
		waits = waits[:min(max(0, n), int64(len(waits)))]
		return nil
	})
	return waits, err
}

// Owing implements storage.Store.
func (s *Store) Owing(ctx context.Context) (owing []storage.Owed, err error) {
	err = s.read(ctx, func() error {
		sums := map[string]storage.Owed{}
		for d, since := range s.waiting {
			sum := sums[d.authority]
			if sum.Records == 0 || since.Before(sum.Since) {
				sum.Since = since
			}
			sums[d.authority] = storage.Owed{Authority: d.authority, Records: sum.Records + 1, Since: sum.Since}
		}
		for _, authority := range slices.Sorted(maps.Keys(sums)) {
			owing = append(owing, sums[authority])
		}
		return nil
	})
	return owing, err
}

// Forget implements storage.Store.
func (s *Store) Forget(ctx context.Context, authority string) (n int64, err error) {
	err = s.write(ctx, func() error {
		maps.DeleteFunc(s.waiting, func(d debt, _ time.Time) bool {
			given := d.authority == authority && len(s.rows[d.index].Timestamps) > 0
			if given {
				n++
			}
			return given
		})
		return nil
	})
	return n, err
}
