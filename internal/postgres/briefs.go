package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"jurat/internal/ledger/storage"
)

// queueBriefs adds to a batch one statement for the briefs and one for their keys.
func queueBriefs(statements *pgx.Batch, briefs []storage.StoredBrief) {
	if len(briefs) == 0 {
		return
	}
	indexes, lines, names := make([]int64, len(briefs)), make([]string, len(briefs)), make([][]byte, len(briefs))
	var keys, places []int64
	for i := range briefs {
		b := &briefs[i]
		indexes[i], lines[i], names[i] = b.Index, string(b.Line), b.Names
		if names[i] == nil {
			names[i] = []byte{}
		}
		for _, key := range b.Keys {
			keys, places = append(keys, key), append(places, b.Index)
		}
	}
	statements.Queue(`INSERT INTO jurat.briefs (idx, line, names) SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[])
		ON CONFLICT (idx) DO UPDATE SET line = excluded.line, names = excluded.names`, indexes, lines, names)
	if len(keys) > 0 {
		statements.Queue(`INSERT INTO jurat.links (key, idx) SELECT * FROM unnest($1::bigint[], $2::bigint[]) ON CONFLICT DO NOTHING`, keys, places)
	}
}

// briefsReplaced counts how often briefs were replaced.
const briefsReplaced = `INSERT INTO jurat.meta VALUES ('briefs_replaced', '1') ON CONFLICT (name) DO UPDATE SET value = (jurat.meta.value::bigint + 1)::text`

// Briefs implements storage.Briefs.
func (s *Store) Briefs(ctx context.Context, q storage.BriefQuery) ([]storage.StoredBrief, error) {
	where, args := selected(q)
	names := `NULL::bytea`
	if q.Names {
		names = `b.names`
	}
	return reading(ctx, s, func() ([]storage.StoredBrief, error) {
		found, err := s.reads.Query(ctx, `SELECT r.idx, r.record_id, r.digest, coalesce(r.chain_id, ''), r.case_digest, b.line, `+names+`
			FROM jurat.records r LEFT JOIN jurat.briefs b ON b.idx = r.idx WHERE `+where+` ORDER BY r.idx`, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(found, scanBrief)
	})
}

// selected returns the condition of a query. The condition for the chains of trials is that of the index in
// log.sql.
func selected(q storage.BriefQuery) (where string, args []any) {
	switch {
	case q.At != nil:
		return `r.idx = ANY($1)`, []any{q.At}
	case q.Chain != "":
		return numberedInChain, []any{q.Chain, q.From, max(0, q.N)}
	case q.Trials:
		return `r.idx IN (SELECT idx FROM jurat.records WHERE chain_id >= 'trial-' AND chain_id < 'trial.' AND idx >= $1 ORDER BY idx LIMIT $2)`,
			[]any{q.From, max(0, q.N)}
	}
	return `r.idx >= $1 AND r.idx < $2`, []any{q.From, q.From + max(0, q.N)}
}

func scanBrief(found pgx.CollectableRow) (b storage.StoredBrief, err error) {
	var digest, submitted []byte
	var line *string
	if err := found.Scan(&b.Index, &b.RecordID, &digest, &b.ChainID, &submitted, &line, &b.Names); err != nil {
		return b, err
	}
	b.Digest, b.Case = storage.DigestIn(digest), storage.DigestIn(submitted)
	if line != nil {
		b.Line = []byte(*line)
	}
	return b, nil
}

// Places implements storage.Briefs.
func (s *Store) Places(ctx context.Context, q storage.Lookup) ([]int64, error) {
	places, err := reading(ctx, s, func() ([]int64, error) {
		found, err := s.reads.Query(ctx, `SELECT idx FROM jurat.records WHERE record_id = ANY($1::text[])
			UNION SELECT idx FROM jurat.records WHERE digest = ANY($2::bytea[])
			UNION SELECT idx FROM jurat.links WHERE key = ANY($3::bigint[]) ORDER BY idx LIMIT $4`, q.RecordIDs, digests(q.Digests), q.Keys, max(0, q.Most))
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(found, pgx.RowTo[int64])
	})
	return places, err
}

// BriefKeys implements storage.Briefs.
func (s *Store) BriefKeys(ctx context.Context, from, n int64) ([]storage.BriefKey, error) {
	return reading(ctx, s, func() ([]storage.BriefKey, error) {
		found, err := s.reads.Query(ctx, `SELECT idx, key FROM jurat.links WHERE idx >= $1 AND idx < $2 ORDER BY idx, key`, from, from+max(0, n))
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(found, pgx.RowToStructByPos[storage.BriefKey])
	})
}

// Replaced implements storage.Briefs.
func (s *Store) Replaced(ctx context.Context) (int64, error) { return s.number(ctx, "briefs_replaced") }

// number reads a number of the table meta; 0 if it has none of this name.
func (s *Store) number(ctx context.Context, name string) (int64, error) {
	return reading(ctx, s, func() (n int64, err error) {
		err = s.reads.QueryRow(ctx, `SELECT value::bigint FROM jurat.meta WHERE name = $1`, name).Scan(&n)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, nil
		}
		return n, err
	})
}

// PutBriefs implements storage.Briefs.
func (s *Store) PutBriefs(ctx context.Context, in storage.Range, briefs []storage.StoredBrief) error {
	return translate(s.transact(ctx, func(ctx context.Context, tx *transaction) error {
		if err := in.Check(briefs, tx.head); err != nil {
			return err
		}
		batch := new(pgx.Batch)
		batch.Queue(`DELETE FROM jurat.briefs WHERE idx >= $1 AND idx < $2`, in.From, in.To)
		batch.Queue(`DELETE FROM jurat.links WHERE idx >= $1 AND idx < $2`, in.From, in.To)
		queueBriefs(batch, briefs)
		if in.From < in.To {
			batch.Queue(briefsReplaced)
		}
		return tx.commit(ctx, batch)
	}))
}
