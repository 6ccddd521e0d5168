package postgres

import (
	"context"

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

// OfActor implements storage.Store. Its order is that of the log, because the log counts an actor's records in it.
func (s *Store) OfActor(ctx context.Context, actor evidence.Digest, from, n int64) ([]storage.Row, error) {
	return s.rows(ctx, `r.idx IN (SELECT idx FROM jurat.tags WHERE actor = $1 AND idx >= $2 ORDER BY actor_seq LIMIT $3)`, actor[:], from, max(0, n))
}

// About implements storage.Store.
func (s *Store) About(ctx context.Context, subject evidence.Digest, from, n int64) ([]storage.Row, error) {
	return s.rows(ctx, `r.idx IN (SELECT idx FROM jurat.tags WHERE subject = $1 AND idx >= $2 ORDER BY subject_seq LIMIT $3)`, subject[:], from, max(0, n))
}
