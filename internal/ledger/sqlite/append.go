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
		head, err := s.headNow(ctx)
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

// headNow reads the head in the running transaction.
func (s *Store) headNow(ctx context.Context) (storage.Head, error) {
	statement, err := s.statement(ctx, selectHead)
	if err != nil {
		return storage.Head{}, translate(err)
	}
	return scanHead(statement.QueryRowContext(ctx))
}

// committed is what a plan reads, inside its transaction.
type committed struct {
	ctx context.Context
	*Store
}

func (c committed) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	return readHashes(c.ctx, c, indexes)
}

// QueryContext runs a statement in the transaction.
func (c committed) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	statement, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

func (c committed) Find(q storage.Query) (storage.Found, error) {
	found := storage.NewFound()
	// The last count of a chain, case, actor or subject is their length, because the log counts without gaps.
	if err := c.findPlaces(q.RecordIDs, found.Places); err != nil {
		return found, err
	}
	for _, chain := range q.Chains {
		if err := look(c, `SELECT chain_seq FROM records WHERE chain_id = ? ORDER BY chain_seq DESC LIMIT 1`, chain, found.Chains, chain); err != nil {
			return found, err
		}
	}
	for _, digest := range q.Cases {
		if err := look(c, `SELECT case_seq FROM records WHERE case_digest = ? ORDER BY case_seq DESC LIMIT 1`, digest[:], found.Cases, digest); err != nil {
			return found, err
		}
	}
	for _, tag := range q.Actors {
		if err := look(c, `SELECT actor_seq FROM tags WHERE actor = (SELECT n FROM actors WHERE tag = ?) ORDER BY actor_seq DESC LIMIT 1`, tag[:], found.Actors, tag); err != nil {
			return found, err
		}
	}
	for _, tag := range q.Subjects {
		if err := look(c, `SELECT subject_seq FROM tags WHERE subject = (SELECT n FROM actors WHERE tag = ?) ORDER BY subject_seq DESC LIMIT 1`, tag[:], found.Subjects, tag); err != nil {
			return found, err
		}
	}
	return found, nil
}

// findPlaces adds the places of the records that exist. It uses one statement for all: a statement costs more than a
// lookup.
func (c committed) findPlaces(ids []string, found map[string]int64) error {
	list, err := json.Marshal(listed(ids))
	if err != nil {
		return fmt.Errorf("encoding record ids: %w", err)
	}
	rows, err := c.QueryContext(c.ctx, `SELECT record_id, idx FROM json_each(?) CROSS JOIN records ON record_id = `+idListed, string(list))
	if err != nil {
		return translate(err)
	}
	return scan(rows, func() error {
		var id any
		var index int64
		if err := rows.Scan(&id, &index); err != nil {
			return err
		}
		found[idIn(id)] = index
		return nil
	})
}

// look adds the number that a statement finds, if any.
func look[K comparable](c committed, query string, argument any, found map[K]int64, key K) error {
	var n int64
	err := c.find(c.ctx, query, []any{argument}, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	found[key] = n
	return translate(err)
}

const (
	insertRecord = `INSERT INTO records (idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, dictionary, stamps, packed)
		VALUES (?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?)`
	insertHashes = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?3)
		INSERT INTO hashes (idx, hash) SELECT ?1 + i, substr(?2, 32 * i + 1, 32) FROM n`
)

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
		if _, err := s.run(ctx, insertHashes, first, joined, len(batch.Hashes)); err != nil {
			return fmt.Errorf("storing hashes %d to %d: %w", first, first+int64(len(batch.Hashes))-1, translate(err))
		}
	}
	if err := s.insertBriefs(ctx, batch.Briefs); err != nil {
		return err
	}
	if err := s.insertOutbox(ctx, batch); err != nil {
		return err
	}
	_, err := s.run(ctx, `UPDATE head SET size = ?, root = ?`, batch.Next.Size, batch.Next.Root[:])
	s.mover.add(volume(batch))
	return translate(err)
}

func (s *Store) insertRow(ctx context.Context, row *storage.Row) error {
	_, err := s.run(ctx, insertRecord, row.Index, idOf(row.RecordID), row.Digest[:], row.ChainID, row.Counts.ChainSeq,
		optional(row.Case), row.Counts.CaseSeq, row.Packed.Dictionary, row.Packed.Timestamps, row.Packed.Blob)
	if breaksUnique(err) {
		return s.duplicate(ctx, row)
	}
	if err != nil {
		return fmt.Errorf("storing record %s: %w", row.RecordID, translate(err))
	}
	for i := row.Packed.Timestamps; i < len(row.Timestamps); i++ { // of a copied row
		t := row.Timestamps[i]
		if _, err := s.run(ctx, `INSERT INTO timestamps (idx, position, kind, token) VALUES (?, ?, ?, ?)`, row.Index, i, string(t.Kind), t.Token); err != nil {
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
	if err := s.writer.QueryRowContext(ctx, `SELECT idx FROM records WHERE record_id = ?`, idOf(row.RecordID)).Scan(&d.Index); err != nil {
		return fmt.Errorf("looking for the existing record %s: %w", row.RecordID, translate(err))
	}
	return d
}

// SetCheckpoint implements storage.Store.
func (s *Store) SetCheckpoint(ctx context.Context, old, next string) error {
	return s.transact(ctx, func(ctx context.Context) error {
		return s.changeOne(ctx, `UPDATE head SET checkpoint = ? WHERE checkpoint = ?`, next, old)
	})
}

// A querier is a transaction, or connections for reading.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

const selectHead = `SELECT size, root FROM head`

func scanHead(row *sql.Row) (storage.Head, error) {
	var head storage.Head
	var root []byte
	if err := row.Scan(&head.Size, &root); err != nil {
		return head, translate(err)
	}
	return head, errors.Join(head.Check(), storage.Fixed(head.Root[:], root))
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
		err := storage.Fixed(hash[:], stored)
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
