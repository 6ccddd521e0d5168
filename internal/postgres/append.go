package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// Append implements storage.Store.
func (s *Store) Append(ctx context.Context, plan storage.Plan) error {
	var rows []storage.Row
	err := s.transact(ctx, func(ctx context.Context, tx *transaction) error {
		batch, err := plan(tx.head, committed{ctx, tx})
		if err != nil {
			return err
		}
		if err := batch.Check(tx.head); err != nil {
			return err
		}
		rows = batch.Rows
		if err := s.packer.Pack(ctx, rows); err != nil {
			return err
		}
		if err := s.stamp(ctx, tx, batch.Stamps); err != nil {
			return err
		}
		if err := batch.MayCommit(); err != nil {
			return err
		}
		return tx.commit(ctx, inserts(&batch))
	})
	if breaksUnique(err) {
		return s.duplicate(ctx, rows, err)
	}
	return translate(err)
}

// committed is what a plan reads, inside its transaction.
type committed struct {
	ctx context.Context
	tx  *transaction
}

func (c committed) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes, err := readHashes(c.ctx, c.tx.conn, indexes)
	return hashes, translate(err)
}

// Find implements storage.Committed. The last count of a chain or case is its length, because the log counts without
// gaps.
func (c committed) Find(q storage.Query) (storage.Found, error) {
	found := storage.NewFound()
	batch := new(pgx.Batch)
	if len(q.RecordIDs) > 0 {
		batch.Queue(`SELECT record_id, idx FROM jurat.records WHERE record_id = ANY($1)`, q.RecordIDs).Query(func(rows pgx.Rows) error {
			return collect(rows, func(id string, n int64) { found.Places[id] = n })
		})
	}
	if len(q.Chains) > 0 {
		batch.Queue(`SELECT c.id, r.chain_seq FROM unnest($1::text[]) AS c(id), LATERAL
			(SELECT chain_seq FROM jurat.records WHERE chain_id = c.id ORDER BY chain_seq DESC LIMIT 1) r`, q.Chains).Query(func(rows pgx.Rows) error {
			return collect(rows, func(id string, n int64) { found.Chains[id] = n })
		})
	}
	if len(q.Cases) > 0 {
		batch.Queue(`SELECT c.digest, r.case_seq FROM unnest($1::bytea[]) AS c(digest), LATERAL
			(SELECT case_seq FROM jurat.records WHERE case_digest = c.digest ORDER BY case_seq DESC LIMIT 1) r`, digests(q.Cases)).Query(func(rows pgx.Rows) error {
			return collect(rows, func(digest []byte, n int64) { found.Cases[evidence.Digest(digest)] = n })
		})
	}
	if len(q.Actors) > 0 {
		batch.Queue(`SELECT c.tag, r.actor_seq FROM unnest($1::bytea[]) AS c(tag), LATERAL
			(SELECT actor_seq FROM jurat.tags WHERE actor = c.tag ORDER BY actor_seq DESC LIMIT 1) r`, digests(q.Actors)).Query(func(rows pgx.Rows) error {
			return collect(rows, func(tag []byte, n int64) { found.Actors[evidence.Digest(tag)] = n })
		})
	}
	if len(q.Subjects) > 0 {
		batch.Queue(`SELECT c.tag, r.subject_seq FROM unnest($1::bytea[]) AS c(tag), LATERAL
			(SELECT subject_seq FROM jurat.tags WHERE subject = c.tag ORDER BY subject_seq DESC LIMIT 1) r`, digests(q.Subjects)).Query(func(rows pgx.Rows) error {
			return collect(rows, func(tag []byte, n int64) { found.Subjects[evidence.Digest(tag)] = n })
		})
	}
	if batch.Len() == 0 {
		return found, nil
	}
	return found, translate(c.tx.conn.SendBatch(c.ctx, batch).Close())
}

// collect reads rows of two columns.
func collect[K, V any](rows pgx.Rows, add func(K, V)) error {
	var key K
	var value V
	_, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
		add(key, value)
		return nil
	})
	return err
}

func digests(list []evidence.Digest) [][]byte {
	raw := make([][]byte, len(list))
	for i := range list {
		raw[i] = list[i][:]
	}
	return raw
}

// columns of a record, in the order of values.
const columns = `idx, chain_seq, case_seq, record_id, digest, chain_id, case_digest, root, hashes, dictionary, stamps, packed, counted`

// insertRecords are statements that insert this many rows each. One statement costs as much as several records.
var insertRecords = []struct {
	rows int
	text string
}{{64, insertOf(64)}, {8, insertOf(8)}, {1, insertOf(1)}}

func insertOf(rows int) string {
	width := strings.Count(columns, ",") + 1
	list := make([]string, rows)
	for i := range list {
		parameters := make([]string, width)
		for j := range parameters {
			parameters[j] = fmt.Sprintf("$%d", i*width+j+1)
		}
		list[i] = "(" + strings.Join(parameters, ", ") + ")"
	}
	return `INSERT INTO jurat.records (` + columns + `) VALUES ` + strings.Join(list, ", ")
}

// inserts are the statements that store a batch and notify all listeners.
func inserts(batch *storage.Batch) *pgx.Batch {
	statements := new(pgx.Batch)
	all := values(batch)
	width := len(all) / max(1, len(batch.Rows))
	for _, insert := range insertRecords {
		for n := insert.rows * width; n > 0 && len(all) >= n; all = all[n:] {
			statements.Queue(insert.text, all[:n]...)
		}
	}
	for i := range batch.Rows {
		row := &batch.Rows[i]
		for n := row.Packed.Timestamps; n < len(row.Timestamps); n++ { // of a copied row
			t := row.Timestamps[n]
			statements.Queue(`INSERT INTO jurat.timestamps (idx, position, kind, token) VALUES ($1, $2, $3, $4)`, row.Index, n, string(t.Kind), t.Token)
		}
	}
	queueTags(statements, batch.Rows)
	queueBriefs(statements, batch.Briefs)
	for _, w := range batch.Waits {
		statements.Queue(`INSERT INTO jurat.waiting (authority, idx, since) VALUES ($1, $2, $3)`, w.Authority, w.Index, w.Since.UnixMilli())
	}
	statements.Queue(`SELECT pg_notify('` + channel + `', '')`)
	return statements
}

// values are the columns of all records, concatenated.
func values(batch *storage.Batch) []any {
	all := make([]any, 0, len(batch.Rows)*(strings.Count(columns, ",")+1))
	rest := batch.Hashes
	for i := range batch.Rows {
		row := &batch.Rows[i]
		hashes := make([]byte, 0, completes(row.Index)*tlog.HashSize)
		for range completes(row.Index) {
			hashes = append(hashes, rest[0][:]...)
			rest = rest[1:]
		}
		var root []byte
		if i == len(batch.Rows)-1 {
			root = batch.Next.Root[:]
		}
		all = append(all, row.Index, row.Counts.ChainSeq, row.Counts.CaseSeq, row.RecordID, row.Digest[:], pgtype.Text{String: row.ChainID, Valid: row.ChainID != ""},
			optional(row.Case), root, hashes, row.Packed.Dictionary, row.Packed.Timestamps, row.Packed.Blob, row.Counts.ActorSeq > 0)
	}
	return all
}

// completes returns how many hashes of the tree the record at index completes: its own, and one for each subtree that
// ends with it. They are consecutive in the tree's storage order, and are stored with the record, by level.
func completes(index int64) int { return 1 + bits.TrailingZeros64(uint64(index)+1) }

// optional returns NULL for the zero digest.
func optional(d evidence.Digest) []byte {
	if d.IsZero() {
		return nil
	}
	return d[:]
}

// duplicate returns a storage.DuplicateError for the first row that exists already, in the log or earlier in the
// batch.
func (s *Store) duplicate(ctx context.Context, rows []storage.Row, cause error) error {
	ids, payloads := make([]string, len(rows)), make([]evidence.Digest, len(rows))
	for i := range rows {
		ids[i], payloads[i] = rows[i].RecordID, rows[i].Digest
	}
	byID, byDigest := map[string]storage.Row{}, map[evidence.Digest]storage.Row{}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitAnswer)
	defer cancel()
	known, err := s.pool.Query(ctx, `SELECT record_id, digest, idx FROM jurat.records WHERE record_id = ANY($1) OR digest = ANY($2)`, ids, digests(payloads))
	if err != nil {
		return fmt.Errorf("looking for the existing record: %w", translate(err))
	}
	var row storage.Row
	var digest []byte
	if _, err := pgx.ForEachRow(known, []any{&row.RecordID, &digest, &row.Index}, func() error {
		row.Digest = evidence.Digest(digest)
		byID[row.RecordID], byDigest[row.Digest] = row, row
		return nil
	}); err != nil {
		return fmt.Errorf("looking for the existing record: %w", translate(err))
	}
	for _, row := range rows {
		if first, there := byID[row.RecordID]; there {
			return &storage.DuplicateError{RecordID: first.RecordID, Index: first.Index, Field: "record_id"}
		}
		if first, there := byDigest[row.Digest]; there {
			return &storage.DuplicateError{RecordID: first.RecordID, Index: first.Index, Field: "digest"}
		}
		byID[row.RecordID], byDigest[row.Digest] = row, row
	}
	return fmt.Errorf("%w: a key is in the database or in its index twice: %w", storage.ErrDamaged, cause)
}

// SetCheckpoint implements storage.Store.
func (s *Store) SetCheckpoint(ctx context.Context, old, next string) error {
	return s.changeOne(ctx, `UPDATE jurat.head SET checkpoint = $1 WHERE checkpoint = $2`, next, old)
}

// changeOne runs a statement in a transaction. It returns storage.ErrConflict, and changes nothing, unless the statement changes one row.
func (s *Store) changeOne(ctx context.Context, statement string, args ...any) error {
	return translate(s.transact(ctx, func(ctx context.Context, tx *transaction) error {
		tag, err := tx.conn.Exec(ctx, statement, args...)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return storage.ErrConflict
		}
		return tx.commit(ctx, new(pgx.Batch))
	}))
}

func scanHead(row pgx.Row) (storage.Head, error) {
	head := storage.EmptyHead
	var root []byte
	err := row.Scan(&head.Size, &root)
	if errors.Is(err, pgx.ErrNoRows) {
		return storage.EmptyHead, nil
	}
	if err != nil {
		return head, err
	}
	if root == nil {
		return head, fmt.Errorf("%w: the last record, %d, is not the end of a batch: the records after it are missing", storage.ErrDamaged, head.Size-1)
	}
	return head, errors.Join(head.Check(), storage.Fixed(head.Root[:], root))
}

// readHashes returns the hashes in the order of their indexes. Each is stored with the record that completes it. It
// returns storage.ErrNotFound for a hash outside the log, and storage.ErrDamaged if a record lacks one.
func readHashes(ctx context.Context, q querier, indexes []int64) ([]tlog.Hash, error) {
	if len(indexes) == 0 {
		return nil, nil
	}
	records, levels := make([]int64, len(indexes)), make([]int, len(indexes))
	for i, index := range indexes {
		if index < 0 {
			return nil, fmt.Errorf("hash %d: %w", index, storage.ErrNotFound)
		}
		level, n := tlog.SplitStoredHashIndex(index)
		records[i], levels[i] = (n+1)<<level-1, level
	}
	rows, err := q.Query(ctx, `SELECT idx, hashes FROM jurat.records WHERE idx = ANY($1)`, records)
	if err != nil {
		return nil, err
	}
	found := make(map[int64][]byte, len(indexes))
	if err := collect(rows, func(record int64, hashes []byte) { found[record] = hashes }); err != nil {
		return nil, err
	}
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		stored, there := found[records[i]]
		if !there {
			return nil, fmt.Errorf("hash %d: %w", index, storage.ErrNotFound)
		}
		if at := levels[i] * tlog.HashSize; at+tlog.HashSize <= len(stored) {
			copy(hashes[i][:], stored[at:])
			continue
		}
		return nil, fmt.Errorf("%w: record %d has %d bytes of hashes", storage.ErrDamaged, records[i], len(stored))
	}
	return hashes, nil
}
