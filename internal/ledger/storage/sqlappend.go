package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// duplicateTime is how long Append looks for the record that is in the log already.
const duplicateTime = 30 * time.Second

func (s *SQL) Append(ctx context.Context, plan Plan) error {
	var rows []Row
	err := s.engine.Write(ctx, func(ctx context.Context, w Writer) error {
		head, err := w.Head(ctx)
		if err != nil {
			return err
		}
		batch, err := plan(head, committed{w, s, ctx})
		if err != nil {
			return err
		}
		if err := batch.Check(head); err != nil {
			return err
		}
		rows = batch.Rows
		if err := s.packer.pack(ctx, rows); err != nil {
			return err
		}
		if err := s.put(ctx, w, head, &batch); err != nil {
			return err
		}
		return batch.MayCommit()
	})
	if errors.Is(err, ErrNotUnique) {
		return s.duplicate(context.WithoutCancel(ctx), rows, err)
	}
	return err
}

// committed is what a plan reads, inside its transaction.
type committed struct {
	Writer
	sql *SQL
	ctx context.Context
}

func (c committed) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	return c.sql.hashes(c.ctx, c.Writer, indexes)
}

// Find implements Committed. The last count of a chain, case, actor or subject is its length, because the log counts
// without gaps.
func (c committed) Find(q Query) (Found, error) {
	found := NewFound()
	var statements []Statement
	if len(q.RecordIDs) > 0 {
		statements = append(statements, places(q.RecordIDs, found.Places))
	}
	if len(q.Chains) > 0 {
		last := lastOf("text", "records", "chain_id", "chain_seq", "c.value")
		statements = append(statements, numbers(last, q.Chains, func(id string) string { return id }, found.Chains))
	}
	tag := c.sql.dialect.TagIn("c.value")
	for _, by := range []struct {
		digests []evidence.Digest
		found   map[evidence.Digest]int64
		text    string
	}{
		{q.Cases, found.Cases, lastOf("bytea", "records", "case_digest", "case_seq", "c.value")},
		{q.Actors, found.Actors, lastOf("bytea", "tags", "actor", "actor_seq", tag)},
		{q.Subjects, found.Subjects, lastOf("bytea", "tags", "subject", "subject_seq", tag)},
	} {
		if len(by.digests) > 0 {
			statements = append(statements, numbers(by.text, bytesOf(by.digests), digestIn, by.found))
		}
	}
	return found, c.Run(c.ctx, statements...)
}

// places reads the places of the records that exist.
func places(ids []string, found map[string]int64) Statement {
	return numbers(`SELECT record_id, idx FROM jurat.records WHERE record_id = ANY($1::text[])`, idsOf(ids), func(id ID) string { return string(id) }, found)
}

// lastOf reads the last number under each value of the list $1, or -1.
func lastOf(kind, table, name, number, value string) string {
	return `SELECT c.value, coalesce((SELECT ` + number + ` FROM jurat.` + table + ` WHERE ` + name + ` = ` + value + ` ORDER BY ` + number + ` DESC LIMIT 1), -1)
		FROM unnest($1::` + kind + `[]) AS c(value)`
}

// numbers reads a number for each key that has one.
func numbers[C any, K comparable](text string, list any, key func(C) K, found map[K]int64) Statement {
	return Statement{Text: text, Args: []any{list}, Row: func(scan Scan) error {
		var column C
		var n int64
		err := scan(&column, &n)
		if n >= 0 {
			found[key(column)] = n
		}
		return err
	}}
}

// inserters store rows of the tables to which batches add.
type inserters struct{ records, timestamps, tags, briefs, links, waiting inserter }

func (d *Dialect) inserters() inserters {
	columns := `records (idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, dictionary, stamps, packed`
	values := `($1, $2, $3, $4, $5, $6, $7, $8, $9, $10`
	const common = 10
	for i, column := range d.Columns {
		columns, values = columns+`, `+column, values+`, $`+strconv.Itoa(common+1+i)
	}
	return inserters{
		records:    inserting(common+len(d.Columns), columns+`)`, values+`)`, ``),
		timestamps: inserting(4, `timestamps (idx, position, kind, token)`, `($1, $2, $3, $4)`, ``),
		tags:       inserting(5, `tags (idx, actor_seq, subject_seq, actor, subject)`, `($1, $2, $3, `+d.TagIn(`$4`)+`, `+d.TagIn(`$5`)+`)`, ``),
		briefs:     inserting(3, `briefs (idx, line, names)`, `($1, $2, $3)`, ` ON CONFLICT (idx) DO UPDATE SET line = excluded.line, names = excluded.names`),
		links:      inserting(2, `links (`+d.Link+`)`, `(`+d.LinkRow+`)`, ` ON CONFLICT DO NOTHING`),
		waiting:    inserting(3, `waiting (authority, idx, since)`, `($1, $2, $3)`, ``),
	}
}

// put stores a batch. Late time stamps come first, because they can find that another writer was first.
func (s *SQL) put(ctx context.Context, w Writer, head Head, batch *Batch) error {
	more, last, err := s.engine.Admit(head, batch)
	if err != nil {
		return err
	}
	if err := s.stamp(ctx, w, batch.Stamps); err != nil {
		return err
	}
	var rows, late, waits []any
	for i := range batch.Rows {
		row := &batch.Rows[i]
		var chain any
		if row.ChainID != "" {
			chain = row.ChainID
		}
		rows = append(rows, row.Index, ID(row.RecordID), row.Digest[:], chain, row.Counts.ChainSeq, optional(row.Case), row.Counts.CaseSeq,
			row.Packed.Dictionary, row.Packed.Timestamps, row.Packed.Blob)
		if more != nil {
			rows = append(rows, more[i]...)
		}
		for n := row.Packed.Timestamps; n < len(row.Timestamps); n++ { // of a copied row
			late = append(late, row.Index, n, string(row.Timestamps[n].Kind), row.Timestamps[n].Token)
		}
	}
	for _, wait := range batch.Waits {
		waits = append(waits, wait.Authority, wait.Index, wait.Since.UnixMilli())
	}
	statements := slices.Concat(s.insert.records.rows(rows), s.insert.timestamps.rows(late), s.tags(batch.Rows),
		s.briefs(batch.Briefs), s.insert.waiting.rows(waits), last)
	return w.Queue(ctx, statements...)
}

// tags returns the statements that store the counts of actors and subjects of those rows that have them.
func (s *SQL) tags(rows []Row) (statements []Statement) {
	var values []any
	known := map[evidence.Digest]bool{{}: true}
	for i := range rows {
		row := &rows[i]
		if row.Counts.ActorSeq == 0 {
			continue
		}
		var subjectSeq any
		if row.Counts.SubjectSeq > 0 {
			subjectSeq = row.Counts.SubjectSeq
		}
		for _, tag := range []*evidence.Digest{&row.Actor, &row.Counts.Subject} {
			if !known[*tag] && s.dialect.NewTag != "" {
				statements = append(statements, Statement{Text: s.dialect.NewTag, Args: []any{tag[:]}})
			}
			known[*tag] = true
		}
		values = append(values, row.Index, row.Counts.ActorSeq, subjectSeq, row.Actor[:], optional(row.Counts.Subject))
	}
	return append(statements, s.insert.tags.rows(values)...)
}

// duplicate returns a DuplicateError for the first row that exists already, in the log or earlier in the batch.
func (s *SQL) duplicate(ctx context.Context, rows []Row, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, duplicateTime)
	defer cancel()
	ids, found := make([]string, len(rows)), map[string]int64{}
	for i := range rows {
		ids[i] = rows[i].RecordID
	}
	err := s.engine.Read(ctx, func(from Reader) error { return from.Run(ctx, places(ids, found)) })
	if err != nil {
		return fmt.Errorf("looking for the existing record: %w", err)
	}
	for i := range rows {
		if index, there := found[rows[i].RecordID]; there {
			return &DuplicateError{RecordID: rows[i].RecordID, Index: index, Field: "record_id"}
		}
		found[rows[i].RecordID] = rows[i].Index
	}
	return fmt.Errorf("%w: a key is in the database or in its index twice: %w", ErrDamaged, cause)
}
