package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"jurat/internal/ledger/storage"
)

// noteBriefs stores briefs of rows.
func (s *Store) noteBriefs(briefs []storage.StoredBrief) {
	for _, b := range briefs {
		b.Line, b.Names, b.Keys = bytes.Clone(b.Line), bytes.Clone(b.Names), slices.Clone(b.Keys)
		s.briefs[b.Index] = b
		for _, key := range b.Keys {
			s.byKey[key] = append(s.byKey[key], b.Index)
		}
	}
}

// Briefs implements storage.Briefs.
func (s *Store) Briefs(ctx context.Context, q storage.BriefQuery) (list []storage.StoredBrief, err error) {
	err = s.read(ctx, func() error {
		for _, i := range s.selected(q) {
			if i < 0 || i >= int64(len(s.rows)) {
				continue
			}
			row := &s.rows[i]
			b := storage.StoredBrief{Index: i, RecordID: row.RecordID, Digest: row.Digest, ChainID: row.ChainID, Case: row.Case, Line: bytes.Clone(s.briefs[i].Line)}
			if q.Names {
				b.Names = bytes.Clone(s.briefs[i].Names)
			}
			list = append(list, b)
		}
		return nil
	})
	return list, err
}

// selected returns the indexes that a query selects, in log order.
func (s *Store) selected(q storage.BriefQuery) []int64 {
	if q.Chain == "" && !q.Trials && q.N == 0 {
		at := slices.Clone(q.At)
		slices.Sort(at)
		return slices.Compact(at)
	}
	from, n := max(0, q.From), max(0, q.N)
	if q.Chain != "" || q.Trials {
		list := s.inTrials
		if q.Chain != "" {
			list = s.byChain[q.Chain]
		}
		first, _ := slices.BinarySearch(list, from)
		return list[first:min(int64(len(list)), int64(first)+n)]
	}
	var list []int64
	for i := from; i < from+n && i < int64(len(s.rows)); i++ {
		list = append(list, i)
	}
	return list
}

// Places implements storage.Briefs.
func (s *Store) Places(ctx context.Context, q storage.Lookup) (places []int64, err error) {
	err = s.read(ctx, func() error {
		for _, id := range q.RecordIDs {
			if i, ok := s.byID[id]; ok {
				places = append(places, i)
			}
		}
		for _, d := range q.Digests {
			if i, ok := s.byDigest[d]; ok {
				places = append(places, i)
			}
		}
		for _, key := range q.Keys {
			places = append(places, s.byKey[key]...)
		}
		places = storage.FirstPlaces(places, q.Most)
		return nil
	})
	return places, err
}

// BriefKeys implements storage.Briefs.
func (s *Store) BriefKeys(ctx context.Context, from, n int64) (list []storage.BriefKey, err error) {
	err = s.read(ctx, func() error {
		for key, indexes := range s.byKey {
			for _, i := range indexes {
				if i >= from && i < from+n {
					list = append(list, storage.BriefKey{Index: i, Key: key})
				}
			}
		}
		slices.SortFunc(list, func(a, b storage.BriefKey) int {
			return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Key, b.Key))
		})
		return nil
	})
	return list, err
}

// Briefed implements storage.Briefs.
func (s *Store) Briefed(ctx context.Context) (n int64, err error) {
	err = s.read(ctx, func() error {
		n = s.briefed
		return nil
	})
	return n, err
}

// Replaced implements storage.Briefs.
func (s *Store) Replaced(ctx context.Context) (n int64, err error) {
	err = s.read(ctx, func() error {
		n = s.replaced
		return nil
	})
	return n, err
}

// Unbriefed implements storage.Briefs.
func (s *Store) Unbriefed(ctx context.Context, from, to int64, n int) (list []storage.Range, err error) {
	err = s.read(ctx, func() error {
		for i := max(0, from); i < min(to, int64(len(s.rows))); i++ {
			last := len(list) - 1
			switch _, ok := s.briefs[i]; {
			case ok:
			case last >= 0 && list[last].To == i:
				list[last].To++
			case len(list) == n:
				return nil
			default:
				list = append(list, storage.Range{From: i, To: i + 1})
			}
		}
		return nil
	})
	return list, err
}

// PutBriefs implements storage.Briefs.
func (s *Store) PutBriefs(ctx context.Context, in storage.Range, briefs []storage.StoredBrief, done int64) error {
	return s.write(ctx, func() error {
		if err := in.Check(briefs, s.head); err != nil {
			return err
		}
		s.replaceBriefs(in, briefs)
		if in.From < in.To {
			s.replaced++
		}
		s.briefed = max(s.briefed, min(done, s.head.Size))
		return nil
	})
}

// replaceBriefs replaces the briefs of a range. The mutex is held.
func (s *Store) replaceBriefs(in storage.Range, briefs []storage.StoredBrief) {
	for i := in.From; i < in.To; i++ {
		delete(s.briefs, i)
	}
	for key, indexes := range s.byKey {
		left := slices.DeleteFunc(indexes, func(i int64) bool { return i >= in.From && i < in.To })
		if s.byKey[key] = left; len(left) == 0 {
			delete(s.byKey, key)
		}
	}
	s.noteBriefs(briefs)
}
