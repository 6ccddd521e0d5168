package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// Append implements storage.Store.
func (s *Store) Append(ctx context.Context, plan storage.Plan) error {
	return s.transact(ctx, func(ctx context.Context) error {
		head, err := scanHead(s.headNow.QueryRowContext(ctx))
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
		if err := s.packer.Pack(ctx, batch.Rows); err != nil {
			return err
		}
		if err := s.makeWay(&batch); err != nil {
			return err
		}
		if err := s.insert(ctx, head, &batch); err != nil {
			return err
		}
		return batch.MayCommit()
	})
}

// committed is what a plan reads, inside its transaction.
type committed struct {
	ctx context.Context
	*Store
}

func (c committed) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	return readHashes(c.ctx, c.writer, indexes)
}

func (c committed) Find(q storage.Query) (storage.Found, error) {
	found := storage.NewFound()
	if err := c.findPlaces(q.RecordIDs, found.Places); err != nil {
		return found, err
	}
	for _, chain := range q.Chains {
		if err := look(c, c.inChain, chain, found.Chains, chain); err != nil {
			return found, err
		}
	}
	for _, digest := range q.Cases {
		if err := look(c, c.ofCase, digest[:], found.Cases, digest); err != nil {
			return found, err
		}
	}
	for _, tag := range q.Actors {
		if err := look(c, c.ofActor, tag[:], found.Actors, tag); err != nil {
			return found, err
		}
	}
	for _, tag := range q.Subjects {
		if err := look(c, c.ofSubject, tag[:], found.Subjects, tag); err != nil {
			return found, err
		}
	}
	return found, nil
}

// findPlaces adds the places of the records that exist. It uses one statement for all: a statement costs more than a
// lookup.
func (c committed) findPlaces(ids []string, found map[string]int64) error {
	list, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("encoding record ids: %w", err)
	}
	rows, err := c.places.QueryContext(c.ctx, string(list))
	if err != nil {
		return translate(err)
	}
	return scan(rows, func() error {
		var id string
		var index int64
		if err := rows.Scan(&id, &index); err != nil {
			return err
		}
		found[id] = index
		return nil
	})
}

// look adds the number that a statement finds, if any.
func look[K comparable](c committed, query *sql.Stmt, argument any, found map[K]int64, key K) error {
	var n int64
	err := query.QueryRowContext(c.ctx, argument).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	found[key] = n
	return translate(err)
}

func (s *Store) insert(ctx context.Context, head storage.Head, batch *storage.Batch) error {
	if err := s.insertTags(ctx, batch.Rows); err != nil { // before the rows: see tags.sql
		return err
	}
	for i := range batch.Rows {
		if err := s.insertRow(ctx, &batch.Rows[i]); err != nil {
			return err
		}
	}
	first := tlog.StoredHashCount(head.Size)
	joined := make([]byte, 0, len(batch.Hashes)*tlog.HashSize)
	for i := range batch.Hashes {
		joined = append(joined, batch.Hashes[i][:]...)
	}
	if len(batch.Hashes) > 0 { // in one statement: a statement costs more than the rows that it inserts
		if _, err := s.hashes.ExecContext(ctx, first, joined, len(batch.Hashes)); err != nil {
			return fmt.Errorf("storing hashes %d to %d: %w", first, first+int64(len(batch.Hashes))-1, translate(err))
		}
	}
	if err := s.insertBriefs(ctx, batch.Briefs); err != nil {
		return err
	}
	if err := s.insertOutbox(ctx, batch); err != nil {
		return err
	}
	_, err := s.head.ExecContext(ctx, batch.Next.Size, batch.Next.Root[:])
	s.mover.add(volume(batch))
	return translate(err)
}

func (s *Store) insertRow(ctx context.Context, row *storage.Row) error {
	_, err := s.record.ExecContext(ctx, row.Index, row.RecordID, row.Digest[:], row.ChainID, row.Counts.ChainSeq,
		optional(row.Case), row.Counts.CaseSeq, row.Packed.Dictionary, row.Packed.Timestamps, row.Packed.Blob)
	if breaksUnique(err) {
		return s.duplicate(ctx, row)
	}
	if err != nil {
		return fmt.Errorf("storing record %s: %w", row.RecordID, translate(err))
	}
	for i := row.Packed.Timestamps; i < len(row.Timestamps); i++ { // of a copied row
		t := row.Timestamps[i]
		if _, err := s.timestamp.ExecContext(ctx, row.Index, i, string(t.Kind), t.Token); err != nil {
			return fmt.Errorf("storing time stamp of record %s: %w", row.RecordID, translate(err))
		}
	}
	return nil
}

// notNull returns empty bytes instead of nil.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// optional returns NULL for the zero digest.
func optional(d evidence.Digest) any {
	if d.IsZero() {
		return nil
	}
	return d[:]
}

// duplicate returns a storage.DuplicateError that names the existing row.
func (s *Store) duplicate(ctx context.Context, row *storage.Row) error {
	d := &storage.DuplicateError{RecordID: row.RecordID, Field: "record_id"}
	if err := s.writer.QueryRowContext(ctx, `SELECT idx FROM records WHERE record_id = ?`, row.RecordID).Scan(&d.Index); err != nil {
		return fmt.Errorf("looking for the existing record %s: %w", row.RecordID, translate(err))
	}
	return d
}

// SetCheckpoint implements storage.Store.
func (s *Store) SetCheckpoint(ctx context.Context, old, next string) error {
	return s.transact(ctx, func(ctx context.Context) error {
		result, err := s.writer.ExecContext(ctx, `UPDATE head SET checkpoint = ? WHERE checkpoint = ?`, next, old)
		if err != nil {
			return translate(err)
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return errors.Join(storage.ErrConflict, err)
		}
		return nil
	})
}

// A querier is a connection, or a pool of them.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

const selectHead = `SELECT size, root FROM head`

func scanHead(row *sql.Row) (storage.Head, error) {
	var head storage.Head
	var root []byte
	if err := row.Scan(&head.Size, &root); err != nil {
		return head, translate(err)
	}
	return head, errors.Join(head.Check(), fixed(head.Root[:], root))
}

// readHashes returns the hashes in the order of their indexes. It returns storage.ErrNotFound if one is missing.
func readHashes(ctx context.Context, q querier, indexes []int64) ([]tlog.Hash, error) {
	if len(indexes) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(indexes)
	if err != nil {
		return nil, fmt.Errorf("encoding indexes: %w", err)
	}
	rows, err := q.QueryContext(ctx, `SELECT idx, hash FROM hashes WHERE idx IN (SELECT value FROM json_each(?))`, string(list))
	if err != nil {
		return nil, translate(err)
	}
	found := make(map[int64]tlog.Hash, len(indexes))
	err = scan(rows, func() error {
		var index int64
		var stored []byte
		if err := rows.Scan(&index, &stored); err != nil {
			return err
		}
		var hash tlog.Hash
		err := fixed(hash[:], stored)
		found[index] = hash
		return err
	})
	if err != nil {
		return nil, err
	}
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		hash, there := found[index]
		if !there {
			return nil, fmt.Errorf("hash %d: %w", index, storage.ErrNotFound)
		}
		hashes[i] = hash
	}
	return hashes, nil
}

// scan calls each for every row, and closes the rows.
func scan(rows *sql.Rows, each func() error) error {
	defer rows.Close()
	for rows.Next() {
		if err := each(); err != nil {
			return translate(err)
		}
	}
	return translate(rows.Err())
}

// fixed copies a blob whose length the tables guarantee, and returns storage.ErrDamaged for another length.
func fixed(to, from []byte) error {
	if len(from) != len(to) {
		return fmt.Errorf("%w: a hash has %d bytes", storage.ErrDamaged, len(from))
	}
	copy(to, from)
	return nil
}
