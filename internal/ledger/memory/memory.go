// Package memory keeps a log in memory, for tests and experiments. It behaves like a durable store and passes the
// same tests, but the log is gone when the process ends. Its errors are those that storage.Store names.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// Store is a storage.Store. It is safe for concurrent use.
type Store struct {
	writing chan struct{} // holds one element while a writer works: Plan runs meanwhile, and readers do not wait

	mu           sync.RWMutex // guards the members below
	head         storage.Head
	rows         []storage.Row
	hashes       []tlog.Hash
	byID         map[string]int64
	byDigest     map[evidence.Digest]int64
	byChain      map[string][]int64
	inTrials     []int64
	cases        map[evidence.Digest]int64 // number of submissions
	byActor      map[evidence.Digest][]int64
	bySubject    map[evidence.Digest][]int64
	waiting      map[debt]time.Time
	expiring     map[int64]string
	dictionaries [][]byte
	briefs       map[int64]storage.StoredBrief
	byKey        map[int64][]int64
	briefed      int64
	replaced     int64 // how often briefs were replaced
	checkpoint   string
	closed       bool
}

var _ storage.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{writing: make(chan struct{}, 1), head: storage.EmptyHead, byID: map[string]int64{},
		byDigest: map[evidence.Digest]int64{}, byChain: map[string][]int64{}, cases: map[evidence.Digest]int64{},
		byActor: map[evidence.Digest][]int64{}, bySubject: map[evidence.Digest][]int64{},
		waiting: map[debt]time.Time{}, briefs: map[int64]storage.StoredBrief{}, expiring: map[int64]string{}, byKey: map[int64][]int64{}}
}

// read runs f while nothing changes.
func (s *Store) read(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return storage.ErrClosed
	}
	return f()
}

// write runs f while no other call reads or writes.
func (s *Store) write(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return storage.ErrClosed
	}
	return f()
}

// Head implements storage.Store.
func (s *Store) Head(ctx context.Context) (head storage.Head, err error) {
	err = s.read(ctx, func() error {
		head = s.head
		return nil
	})
	return head, err
}

// Append implements storage.Store.
func (s *Store) Append(ctx context.Context, plan storage.Plan) error {
	if _, err := s.Head(ctx); err != nil { // closed, or the context is done
		return err
	}
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx = context.WithoutCancel(ctx)
	head, err := s.Head(ctx)
	if err != nil {
		return err
	}
	batch, err := plan(head, committed{ctx, s})
	if err != nil {
		return err
	}
	if err := batch.Check(head); err != nil {
		return err
	}
	if err := batch.MayCommit(); err != nil {
		return err
	}
	return s.write(ctx, func() error { return s.commit(&batch) })
}

// committed is what a plan reads.
type committed struct {
	ctx context.Context
	*Store
}

func (c committed) ReadHashes(indexes []int64) ([]tlog.Hash, error) { return c.Hashes(c.ctx, indexes) }

func (c committed) Find(q storage.Query) (storage.Found, error) {
	found := storage.NewFound()
	err := c.read(c.ctx, func() error {
		for _, id := range q.RecordIDs {
			if index, there := c.byID[id]; there {
				found.Places[id] = index
			}
		}
		for _, chain := range q.Chains {
			if n := len(c.byChain[chain]); n > 0 {
				found.Chains[chain] = int64(n)
			}
		}
		for _, digest := range q.Cases {
			if n := c.cases[digest]; n > 0 {
				found.Cases[digest] = n
			}
		}
		for _, tag := range q.Actors {
			if n := len(c.byActor[tag]); n > 0 {
				found.Actors[tag] = int64(n)
			}
		}
		for _, tag := range q.Subjects {
			if n := len(c.bySubject[tag]); n > 0 {
				found.Subjects[tag] = int64(n)
			}
		}
		return nil
	})
	return found, err
}

func (s *Store) commit(batch *storage.Batch) error {
	if err := s.duplicate(batch.Rows); err != nil {
		return err
	}
	if err := s.stamp(batch.Stamps); err != nil { // the last step that can fail, so that no batch is stored in part
		return err
	}
	for _, w := range batch.Waits {
		s.waiting[debt{w.Authority, w.Index}] = w.Since
	}
	for _, row := range batch.Rows {
		s.rows = append(s.rows, clone(row))
		s.byID[row.RecordID] = row.Index
		s.byDigest[row.Digest] = row.Index
		if row.ChainID != "" {
			s.byChain[row.ChainID] = append(s.byChain[row.ChainID], row.Index)
		}
		if strings.HasPrefix(row.ChainID, evidence.TrialPrefix) {
			s.inTrials = append(s.inTrials, row.Index)
		}
	}
	for _, row := range batch.Rows {
		if !row.Case.IsZero() {
			s.cases[row.Case]++
		}
		if row.Counts.ActorSeq > 0 {
			s.byActor[row.Actor] = append(s.byActor[row.Actor], row.Index)
		}
		if tag := row.Counts.Subject; row.Counts.SubjectSeq > 0 {
			s.bySubject[tag] = append(s.bySubject[tag], row.Index)
		}
	}
	s.noteBriefs(batch.Briefs)
	s.hashes = append(s.hashes, batch.Hashes...)
	s.head = batch.Next
	return nil
}

// duplicate returns a *storage.DuplicateError for a row whose record or payload is in the log, or earlier in the
// batch.
func (s *Store) duplicate(rows []storage.Row) error {
	ids, digests := map[string]storage.Row{}, map[evidence.Digest]storage.Row{}
	for _, row := range rows {
		if i, there := s.byID[row.RecordID]; there {
			ids[row.RecordID] = s.rows[i]
		}
		if i, there := s.byDigest[row.Digest]; there {
			digests[row.Digest] = s.rows[i]
		}
		if first, there := ids[row.RecordID]; there {
			return &storage.DuplicateError{RecordID: first.RecordID, Index: first.Index, Field: "record_id"}
		}
		if first, there := digests[row.Digest]; there {
			return &storage.DuplicateError{RecordID: first.RecordID, Index: first.Index, Field: "digest"}
		}
		ids[row.RecordID], digests[row.Digest] = row, row
	}
	return nil
}

// Rows implements storage.Store.
func (s *Store) Rows(ctx context.Context, from, n int64) (rows []storage.Row, err error) {
	err = s.read(ctx, func() error {
		size := int64(len(s.rows))
		from = min(max(0, from), size)
		for _, row := range s.rows[from : from+min(max(0, n), size-from)] {
			rows = append(rows, clone(row))
		}
		return nil
	})
	return rows, err
}

// RowsAt implements storage.Store.
func (s *Store) RowsAt(ctx context.Context, at []int64) (rows []storage.Row, err error) {
	err = s.read(ctx, func() error {
		for _, i := range s.selected(storage.BriefQuery{At: at}) {
			if i >= 0 && i < int64(len(s.rows)) {
				rows = append(rows, clone(s.rows[i]))
			}
		}
		return nil
	})
	return rows, err
}

// ByRecordID implements storage.Store.
func (s *Store) ByRecordID(ctx context.Context, id string) (row storage.Row, err error) {
	err = s.read(ctx, func() error {
		i, there := s.byID[id]
		if !there {
			return storage.ErrNotFound
		}
		row = clone(s.rows[i])
		return nil
	})
	return row, err
}

// ByDigest implements storage.Store.
func (s *Store) ByDigest(ctx context.Context, digest evidence.Digest) (row storage.Row, err error) {
	err = s.read(ctx, func() error {
		i, there := s.byDigest[digest]
		if !there {
			return storage.ErrNotFound
		}
		row = clone(s.rows[i])
		return nil
	})
	return row, err
}

// ByChain implements storage.Store.
func (s *Store) ByChain(ctx context.Context, chainID string) (rows []storage.Row, err error) {
	err = s.read(ctx, func() error {
		for _, i := range s.byChain[chainID] {
			rows = append(rows, clone(s.rows[i]))
		}
		if rows == nil {
			return storage.ErrNotFound
		}
		return nil
	})
	return rows, err
}

// InChain implements storage.Store.
func (s *Store) InChain(ctx context.Context, chainID string, from, n int64) (rows []storage.Row, err error) {
	return s.listed(ctx, func() []int64 { return s.byChain[chainID] }, from, n)
}

// OfActor implements storage.Store.
func (s *Store) OfActor(ctx context.Context, actor evidence.Digest, from, n int64) (rows []storage.Row, err error) {
	return s.listed(ctx, func() []int64 { return s.byActor[actor] }, from, n)
}

// About implements storage.Store.
func (s *Store) About(ctx context.Context, subject evidence.Digest, from, n int64) (rows []storage.Row, err error) {
	return s.listed(ctx, func() []int64 { return s.bySubject[subject] }, from, n)
}

// listed returns the first n of the listed rows from index from on.
func (s *Store) listed(ctx context.Context, list func() []int64, from, n int64) (rows []storage.Row, err error) {
	err = s.read(ctx, func() error {
		for _, i := range list() {
			if i >= from && int64(len(rows)) < n {
				rows = append(rows, clone(s.rows[i]))
			}
		}
		return nil
	})
	return rows, err
}

// LastOfChain implements storage.Store.
func (s *Store) LastOfChain(ctx context.Context, chainID string) (row storage.Row, err error) {
	err = s.read(ctx, func() error {
		chain := s.byChain[chainID]
		if len(chain) == 0 {
			return storage.ErrNotFound
		}
		row = clone(s.rows[chain[len(chain)-1]])
		return nil
	})
	return row, err
}

// Hashes implements storage.Store.
func (s *Store) Hashes(ctx context.Context, indexes []int64) (hashes []tlog.Hash, err error) {
	err = s.read(ctx, func() error {
		for _, i := range indexes {
			if i < 0 || i >= int64(len(s.hashes)) {
				return fmt.Errorf("hash %d: %w", i, storage.ErrNotFound)
			}
			hashes = append(hashes, s.hashes[i])
		}
		return nil
	})
	return hashes, err
}

// Checkpoint implements storage.Store.
func (s *Store) Checkpoint(ctx context.Context) (checkpoint string, err error) {
	err = s.read(ctx, func() error {
		checkpoint = s.checkpoint
		return nil
	})
	return checkpoint, err
}

// SetCheckpoint implements storage.Store.
func (s *Store) SetCheckpoint(ctx context.Context, old, next string) error {
	return s.write(ctx, func() error {
		if s.checkpoint != old {
			return storage.ErrConflict
		}
		s.checkpoint = next
		return nil
	})
}

// Close implements storage.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// clone copies a row, so that the store and its callers share no memory.
func clone(row storage.Row) storage.Row {
	row.Payload, row.Entry = bytes.Clone(row.Payload), bytes.Clone(row.Entry)
	row.Signatures = slices.Clone(row.Signatures)
	for i, signature := range row.Signatures {
		row.Signatures[i] = bytes.Clone(signature)
	}
	row.Timestamps = slices.Clone(row.Timestamps)
	for i, t := range row.Timestamps {
		row.Timestamps[i].Token = bytes.Clone(t.Token)
	}
	return row
}
