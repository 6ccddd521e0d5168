package sqlite

import (
	"context"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

var insertTag = inserting(`INSERT INTO tags (idx, actor, actor_seq, subject, subject_seq) VALUES `, `(?, (SELECT n FROM actors WHERE tag = ?), ?, (SELECT n FROM actors WHERE tag = ?), ?)`)

// insertTags stores the counts of actors and subjects of those rows that have them.
func (s *Store) insertTags(ctx context.Context, rows []storage.Row) error {
	values, new := make([]any, 0, insertTag.columns*len(rows)), map[evidence.Digest]bool{{}: true}
	for i := range rows {
		row := &rows[i]
		if row.Counts.ActorSeq == 0 {
			continue
		}
		var subjectSeq any
		if row.Counts.SubjectSeq > 0 {
			subjectSeq = row.Counts.SubjectSeq
		}
		for _, tag := range []evidence.Digest{row.Actor, row.Counts.Subject} {
			if new[tag] {
				continue
			}
			new[tag] = true
			if _, err := s.run(ctx, `INSERT OR IGNORE INTO actors (tag) VALUES (?)`, tag[:]); err != nil {
				return fmt.Errorf("storing tags of actors: %w", translate(err))
			}
		}
		values = append(values, row.Index, row.Actor[:], row.Counts.ActorSeq, optional(row.Counts.Subject), subjectSeq)
	}
	err := s.insertMany(ctx, &insertTag, values)
	if err == nil {
		return nil
	}
	if breaksUnique(err) {
		if err := s.logged(ctx, rows); err != nil {
			return err
		}
		err = fmt.Errorf("%w: a number of an actor or a subject is in the log already: %w", storage.ErrDamaged, err)
	}
	return fmt.Errorf("storing counts of actors: %w", err)
}

// logged returns a storage.DuplicateError for the first row that is in the log, or earlier in the batch.
func (s *Store) logged(ctx context.Context, rows []storage.Row) error {
	earlier := map[string]int64{}
	for i := range rows {
		row := &rows[i]
		if index, there := earlier[row.RecordID]; there {
			return &storage.DuplicateError{RecordID: row.RecordID, Index: index, Field: "record_id"}
		}
		earlier[row.RecordID] = row.Index
		err := s.duplicate(ctx, row)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		return err
	}
	return nil
}
