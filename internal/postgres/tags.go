package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// queueTags adds to a batch one statement for the counts of actors and subjects of those rows that have them.
func queueTags(statements *pgx.Batch, rows []storage.Row) {
	var indexes, actorSeqs []int64
	var subjectSeqs []*int64
	var actors, subjects [][]byte
	for i := range rows {
		row := &rows[i]
		if row.Counts.ActorSeq == 0 {
			continue
		}
		var subjectSeq *int64
		if row.Counts.SubjectSeq > 0 {
			subjectSeq = &row.Counts.SubjectSeq
		}
		indexes, actorSeqs, actors = append(indexes, row.Index), append(actorSeqs, row.Counts.ActorSeq), append(actors, row.Actor[:])
		subjectSeqs, subjects = append(subjectSeqs, subjectSeq), append(subjects, optional(row.Counts.Subject))
	}
	if len(indexes) > 0 {
		statements.Queue(`INSERT INTO jurat.tags (idx, actor_seq, subject_seq, actor, subject)
			SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[])`, indexes, actorSeqs, subjectSeqs, actors, subjects)
	}
}

// numbered selects the places of the first $3 rows, from place $2 on, of those that name has numbered in log order under $1, from 1 on. It
// finds the first one by bisection: reading from number 1 on would take as long as there are numbers.
func numbered(table, name, number string) string {
	return strings.NewReplacer("TABLE", "jurat."+table, "NAME", name, "NUMBER", number).Replace(`r.idx IN (
		WITH RECURSIVE search(low, high) AS (
			SELECT 1::bigint, coalesce(max(NUMBER), 0)::bigint + 1 FROM TABLE WHERE NAME = $1
			UNION ALL SELECT CASE WHEN m.idx < $2 THEN (low + high) / 2 + 1 ELSE low END, CASE WHEN m.idx < $2 THEN high ELSE (low + high) / 2 END
				FROM search LEFT JOIN TABLE m ON m.NAME = $1 AND m.NUMBER = (low + high) / 2 WHERE low < high)
		SELECT idx FROM TABLE WHERE NAME = $1 AND NUMBER >= (SELECT max(low) FROM search) AND idx >= $2 ORDER BY NUMBER LIMIT $3)`)
}

var (
	numberedInChain = numbered("records", "chain_id", "chain_seq")
	numberedActor   = numbered("tags", "actor", "actor_seq")
	numberedSubject = numbered("tags", "subject", "subject_seq")
)

// OfActor implements storage.Store. Its order is that of the log, because the log counts an actor's records in it.
func (s *Store) OfActor(ctx context.Context, actor evidence.Digest, from, n int64) ([]storage.Row, error) {
	return s.rows(ctx, numberedActor, actor[:], from, max(0, n))
}

// About implements storage.Store.
func (s *Store) About(ctx context.Context, subject evidence.Digest, from, n int64) ([]storage.Row, error) {
	return s.rows(ctx, numberedSubject, subject[:], from, max(0, n))
}
