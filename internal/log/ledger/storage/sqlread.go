package storage

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

func (s *SQL) Head(ctx context.Context) (head Head, err error) {
	err = s.engine.Read(ctx, func(from Reader) error {
		head, err = HeadIn(ctx, from)
		return err
	})
	return head, err
}

// HeadIn reads the head in a transaction or on a connection.
func HeadIn(ctx context.Context, from Reader) (Head, error) {
	head := EmptyHead
	return head, from.Run(ctx, ReadHead(&head))
}

// selectHead reads the size and the root. The root is NULL if the last row is not the end of a batch: those after it are missing.
const selectHead = `SELECT idx + 1, root FROM jurat.tags ORDER BY idx DESC LIMIT 1`

// ReadHead returns the statement that reads the head.
func ReadHead(head *Head) Statement {
	return Statement{Text: selectHead, Row: func(scan Scan) error {
		var root []byte
		if err := scan(&head.Size, &root); err != nil {
			return err
		}
		if len(root) != len(head.Root) {
			return fmt.Errorf("%w: the log has %d records, and its root %d bytes: its last batch is not whole", ErrDamaged, head.Size, len(root))
		}
		copy(head.Root[:], root)
		return head.Check()
	}}
}

func (s *SQL) Checkpoint(ctx context.Context) (string, error) {
	return one[string](ctx, s, `SELECT checkpoint FROM jurat.head`)
}

func (s *SQL) SetCheckpoint(ctx context.Context, old, next string) error {
	return s.change(ctx, 1, `UPDATE jurat.head SET checkpoint = $1 WHERE checkpoint = $2`, next, old)
}

func (s *SQL) Hashes(ctx context.Context, indexes []int64) (hashes []tlog.Hash, err error) {
	err = s.engine.Read(ctx, func(from Reader) error {
		hashes, err = s.hashes(ctx, from, indexes)
		return err
	})
	return hashes, err
}

// hashes returns ErrDamaged if there are fewer hashes at a place than there should be. Each hash is with the record that completes it, by level.
func (s *SQL) hashes(ctx context.Context, from Reader, indexes []int64) ([]tlog.Hash, error) {
	hashes, places, at := make([]tlog.Hash, len(indexes)), make([]int64, len(indexes)), make([]int, len(indexes))
	for i, index := range indexes {
		if index < 0 {
			return nil, fmt.Errorf("hash %d: %w", index, ErrNotFound)
		}
		level, n := tlog.SplitStoredHashIndex(index)
		places[i], at[i] = (n+1)<<level-1, level
	}
	if len(indexes) == 0 {
		return nil, nil
	}
	found := make(map[int64][]byte, len(indexes))
	if err := from.Run(ctx, Statement{Text: `SELECT idx, hashes FROM jurat.tags WHERE idx = ANY($1::bigint[])`, Args: []any{places}, Row: func(scan Scan) error {
		var place int64
		var stored []byte
		err := scan(&place, &stored)
		found[place] = stored
		return err
	}}); err != nil {
		return nil, err
	}
	for i, index := range indexes {
		stored, there := found[places[i]]
		if !there {
			return nil, fmt.Errorf("hash %d: %w", index, ErrNotFound)
		}
		if len(stored) < (at[i]+1)*tlog.HashSize {
			return nil, fmt.Errorf("%w: hash %d is in %d bytes", ErrDamaged, index, len(stored))
		}
		copy(hashes[i][:], stored[at[i]*tlog.HashSize:])
	}
	return hashes, nil
}

func (s *SQL) Rows(ctx context.Context, from, n int64) ([]Row, error) {
	return s.rows(ctx, `r.idx >= $1 AND r.idx < $2`, from, from+n)
}

func (s *SQL) RowsAt(ctx context.Context, at []int64) ([]Row, error) {
	return s.rows(ctx, `r.idx = ANY($1::bigint[])`, at)
}

func (s *SQL) ByRecordID(ctx context.Context, id string) (Row, error) {
	return first(s.rows(ctx, `r.record_id = $1`, ID(id)))
}

func (s *SQL) ByDigest(ctx context.Context, digest evidence.Digest) (Row, error) {
	return first(s.rows(ctx, s.dialect.ByDigest, digest[:]))
}

func (s *SQL) ByChain(ctx context.Context, chainID string) ([]Row, error) {
	return some(s.rows(ctx, `r.chain_id = $1`, chainID))
}

func (s *SQL) LastOfChain(ctx context.Context, chainID string) (Row, error) {
	return first(s.rows(ctx, `r.idx = (SELECT idx FROM jurat.records WHERE chain_id = $1 ORDER BY chain_seq DESC LIMIT 1)`, chainID))
}

func (s *SQL) InChain(ctx context.Context, chainID string, from, n int64) ([]Row, error) {
	return s.rows(ctx, numberedInChain, chainID, from, max(0, n))
}

// OfActor implements Records. Its order is that of the log, because the log counts an actor's records in it.
func (s *SQL) OfActor(ctx context.Context, actor evidence.Digest, from, n int64) ([]Row, error) {
	return s.rows(ctx, numbered("tags", "actor", "actor_seq", s.dialect.TagIn("$1")), actor[:], from, max(0, n))
}

func (s *SQL) About(ctx context.Context, subject evidence.Digest, from, n int64) ([]Row, error) {
	return s.rows(ctx, numbered("tags", "subject", "subject_seq", s.dialect.TagIn("$1")), subject[:], from, max(0, n))
}

var numberedInChain = numbered("records", "chain_id", "chain_seq", "$1")

// numbered selects the places of the first $3 rows, from place $2 on, of those that name has numbered in log order under
// a value, from 1 on. It finds the first one by bisection: reading from number 1 on would take as long as there are
// numbers.
func numbered(table, name, number, value string) string {
	return strings.NewReplacer("TABLE", "jurat."+table, "NAME", name, "NUMBER", number, "VALUE", value).Replace(`r.idx IN (
		WITH RECURSIVE search(low, high) AS (
			SELECT 1::bigint, coalesce(max(NUMBER), 0)::bigint + 1 FROM TABLE WHERE NAME = VALUE
			UNION ALL SELECT CASE WHEN m.idx < $2 THEN (low + high) / 2 + 1 ELSE low END, CASE WHEN m.idx < $2 THEN high ELSE (low + high) / 2 END
				FROM search LEFT JOIN TABLE m ON m.NAME = VALUE AND m.NUMBER = (low + high) / 2 WHERE low < high)
		SELECT idx FROM TABLE WHERE NAME = VALUE AND NUMBER >= (SELECT max(low) FROM search) AND idx >= $2 ORDER BY NUMBER LIMIT $3)`)
}

// selectRows reads records with their late time stamps in one statement, so that both come from one state of the
// database. The stamps come from their index in order: an aggregate that sorts takes SQLite as long as half of the rest.
func (s *SQL) selectRows(where string) string {
	return `SELECT r.idx, r.record_id, r.digest, coalesce(r.chain_id, ''), r.chain_seq, r.case_digest, r.case_seq, r.dictionary, r.stamps, r.packed,
		coalesce((SELECT string_agg(stamp, ',') FROM
			(SELECT encode(token, 'hex') || ' ' || kind AS stamp FROM jurat.timestamps t WHERE t.idx = r.idx ORDER BY position) AS late), ''),
		` + s.dialect.Tag("g.actor") + `, coalesce(g.actor_seq, 0), ` + s.dialect.Tag("g.subject") + `, coalesce(g.subject_seq, 0)
		FROM jurat.records r LEFT JOIN jurat.tags g ON g.idx = r.idx WHERE ` + where + ` ORDER BY r.idx`
}

func (s *SQL) rows(ctx context.Context, where string, args ...any) ([]Row, error) {
	rows, err := listOf(ctx, s, scanRow, s.selectRows(where), args...)
	if err == nil {
		err = s.packer.unpackAll(ctx, rows)
	}
	return rows, err
}

// scanRow reads a record that is still packed. It leaves out a digest of the wrong length: such a row does not open as a
// record, and the rows beside it can still be read.
func scanRow(scan Scan, row *Row) error {
	var digest, submitted, actor, about []byte
	var late string
	err := scan(&row.Index, (*ID)(&row.RecordID), &digest, &row.ChainID, &row.Counts.ChainSeq, &submitted, &row.Counts.CaseSeq,
		&row.Packed.Dictionary, &row.Packed.Timestamps, &row.Packed.Blob, &late, &actor, &row.Counts.ActorSeq, &about, &row.Counts.SubjectSeq)
	if err != nil {
		return err
	}
	row.Digest, row.Case, row.Actor, row.Counts.Subject = digestIn(digest), digestIn(submitted), digestIn(actor), digestIn(about)
	if late == "" {
		return nil
	}
	for stamp := range strings.SplitSeq(late, ",") {
		text, kind, _ := strings.Cut(stamp, " ")
		token, err := hex.DecodeString(text)
		if err != nil { // a kind that this program does not write
			kind, token = stamp, nil
		}
		row.Timestamps = append(row.Timestamps, evidence.Timestamp{Kind: evidence.TimestampKind(kind), Token: token})
	}
	return nil
}

func first(rows []Row, err error) (Row, error) {
	if rows, err = some(rows, err); err != nil {
		return Row{}, err
	}
	return rows[0], nil
}

func some(rows []Row, err error) ([]Row, error) {
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	return rows, err
}

func (s *SQL) Dictionary(ctx context.Context, n int64) ([]byte, error) {
	return one[[]byte](ctx, s, `SELECT substr(text, 1, $1) FROM jurat.dictionaries WHERE n = $2`, MaxDictionary+1, n)
}

func (s *SQL) NewestDictionary(ctx context.Context) (int64, error) {
	return one[int64](ctx, s, `SELECT coalesce(max(n), 0) FROM jurat.dictionaries`)
}

func (s *SQL) PutDictionary(ctx context.Context, n int64, text []byte) error {
	defer s.packer.renew()
	return s.change(ctx, 1, `INSERT INTO jurat.dictionaries SELECT $1::bigint, $2::bytea
		WHERE $1 = (SELECT coalesce(max(n), 0) + 1 FROM jurat.dictionaries)`, n, text)
}

func (s *SQL) Pack(ctx context.Context, rows []Row) error { return s.packer.pack(ctx, rows) }

// briefsReplaced counts how often briefs were replaced.
const briefsReplaced = `INSERT INTO jurat.meta VALUES ('briefs_replaced', '1')
	ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(meta.value AS bigint) + 1 AS text)`

func (s *SQL) briefs(briefs []StoredBrief) []Statement {
	rows, links := make([]any, 0, 3*len(briefs)), make([]any, 0, 2*len(briefs)) // most records are linked in one way
	for i := range briefs {
		b := &briefs[i]
		names := b.Names
		if names == nil {
			names = []byte{} // not NULL
		}
		rows = append(rows, b.Index, string(b.Line), names)
		for _, key := range b.Keys {
			links = append(links, key, b.Index)
		}
	}
	return append(s.insert.briefs.rows(rows), s.insert.links.rows(links)...)
}

func (s *SQL) Briefs(ctx context.Context, q BriefQuery) ([]StoredBrief, error) {
	where, args := s.selected(q)
	names := `NULL`
	if q.Names {
		names = `b.names`
	}
	return listOf(ctx, s, scanBrief, `SELECT r.idx, r.record_id, r.digest, coalesce(r.chain_id, ''), r.case_digest, b.line, `+names+`::bytea
		FROM jurat.records r LEFT JOIN jurat.briefs b ON b.idx = r.idx WHERE `+where+` ORDER BY r.idx`, args...)
}

func (s *SQL) selected(q BriefQuery) (where string, args []any) {
	switch {
	case q.At != nil:
		return `r.idx = ANY($1::bigint[])`, []any{q.At}
	case q.Chain != "":
		return numberedInChain, []any{q.Chain, q.From, max(0, q.N)}
	case q.Trials: // the condition is that of the index
		return `r.idx IN (SELECT idx FROM ` + s.dialect.Trials + ` WHERE chain_id >= 'trial-' AND chain_id < 'trial.' AND idx >= $1 ORDER BY idx LIMIT $2)`,
			[]any{q.From, max(0, q.N)}
	}
	return `r.idx >= $1 AND r.idx < $2`, []any{q.From, q.From + max(0, q.N)}
}

func scanBrief(scan Scan, b *StoredBrief) error {
	var digest, submitted []byte
	var line *string
	err := scan(&b.Index, (*ID)(&b.RecordID), &digest, &b.ChainID, &submitted, &line, &b.Names)
	b.Digest, b.Case = digestIn(digest), digestIn(submitted)
	if line != nil {
		b.Line = []byte(*line)
	}
	return err
}

func (s *SQL) Places(ctx context.Context, q Lookup) (places []int64, err error) {
	statements := s.dialect.Places(idsOf(q.RecordIDs), bytesOf(q.Digests), q.Keys, max(0, q.Most))
	for i := range statements {
		statements[i].Row = func(scan Scan) error {
			var place int64
			err := scan(&place)
			places = append(places, place)
			return err
		}
	}
	err = s.engine.Read(ctx, func(from Reader) error {
		places = nil // of a connection that broke
		return from.Run(ctx, statements...)
	})
	return firstPlaces(places, q.Most), err
}

func (s *SQL) BriefKeys(ctx context.Context, from, n int64) ([]BriefKey, error) {
	return listOf(ctx, s, func(scan Scan, k *BriefKey) error { return scan(&k.Index, &k.Key) },
		`SELECT idx, key FROM jurat.links WHERE `+s.dialect.LinksIn+` ORDER BY idx, key`, from, from+max(0, n))
}

func (s *SQL) Replaced(ctx context.Context) (int64, error) {
	return one[int64](ctx, s, `SELECT coalesce(max(CAST(value AS bigint)), 0) FROM jurat.meta WHERE name = 'briefs_replaced'`)
}

func (s *SQL) PutBriefs(ctx context.Context, in Range, briefs []StoredBrief) error {
	return s.engine.Write(ctx, func(ctx context.Context, w Writer) error {
		head, err := w.Head(ctx)
		if err != nil {
			return err
		}
		if err := in.Check(briefs, head); err != nil {
			return err
		}
		statements := append([]Statement{
			{Text: `DELETE FROM jurat.briefs WHERE idx >= $1 AND idx < $2`, Args: []any{in.From, in.To}},
			{Text: `DELETE FROM jurat.links WHERE ` + s.dialect.LinksIn, Args: []any{in.From, in.To}},
		}, s.briefs(briefs)...)
		if in.From < in.To {
			statements = append(statements, Statement{Text: briefsReplaced})
		}
		return w.Queue(ctx, statements...)
	})
}

// insertLate adds a time stamp after the earlier ones of its record, unless the record has it already.
const insertLate = `INSERT INTO jurat.timestamps (idx, position, kind, token)
	SELECT $1, coalesce((SELECT max(position) + 1 FROM jurat.timestamps WHERE idx = $1), stamps), $2, $3 FROM jurat.records
	WHERE idx = $1 AND NOT EXISTS (SELECT 1 FROM jurat.timestamps WHERE idx = $1 AND kind = $2 AND token = $3)`

// stamp removes what is no longer waited for, and adds the time stamps. It returns ErrConflict if another writer was
// first.
func (s *SQL) stamp(ctx context.Context, w Writer, stamps []Stamp) error {
	if len(stamps) == 0 {
		return nil
	}
	sealed, err := s.sealedWith(ctx, w, stamps)
	if err != nil {
		return err
	}
	var statements []Statement
	for i := range stamps {
		stamp := &stamps[i]
		if stamp.Authority != "" {
			statements = append(statements, Statement{Text: `DELETE FROM jurat.waiting WHERE authority = $1 AND idx = $2`, Args: []any{stamp.Authority, stamp.Index},
				Changed: func(n int64) error {
					if n != 1 {
						return fmt.Errorf("record %d does not wait for %s: %w", stamp.Index, stamp.Authority, ErrConflict)
					}
					return nil
				}})
		}
		if row := sealed[stamp.Index]; !row.HasTimestamp(stamp.Timestamp) {
			statements = append(statements, Statement{Text: insertLate, Args: []any{stamp.Index, string(stamp.Timestamp.Kind), stamp.Timestamp.Token}})
		}
	}
	return w.Run(ctx, statements...)
}

// sealedWith returns, by their places, the rows of late time stamps with the stamps that they were sealed with.
func (s *SQL) sealedWith(ctx context.Context, w Writer, stamps []Stamp) (map[int64]Row, error) {
	places, sealed := make([]int64, len(stamps)), map[int64]Row{}
	for i := range stamps {
		places[i] = stamps[i].Index
	}
	var rows []Row
	const query = `SELECT idx, dictionary, stamps, packed FROM jurat.records WHERE idx = ANY($1::bigint[])`
	err := w.Run(ctx, Statement{Text: query, Args: []any{places}, Row: func(scan Scan) error {
		var row Row
		err := scan(&row.Index, &row.Packed.Dictionary, &row.Packed.Timestamps, &row.Packed.Blob)
		rows = append(rows, row)
		return err
	}})
	if err == nil {
		err = s.packer.unpackAll(ctx, rows)
	}
	for _, row := range rows {
		sealed[row.Index] = row
	}
	return sealed, err
}

func (s *SQL) Waiting(ctx context.Context, authority string, from, n int64) ([]Wait, error) {
	return listOf(ctx, s, func(scan Scan, w *Wait) error {
		var since int64
		err := scan(&w.Index, &since)
		w.Authority, w.Since = authority, time.UnixMilli(since).UTC()
		return err
	}, `SELECT idx, since FROM jurat.waiting WHERE authority = $1 AND idx >= $2 ORDER BY idx LIMIT $3`, authority, from, max(0, n))
}

func (s *SQL) Owing(ctx context.Context) ([]Owed, error) {
	return listOf(ctx, s, func(scan Scan, o *Owed) error {
		var since int64
		err := scan(&o.Authority, &o.Records, &since)
		o.Since = time.UnixMilli(since).UTC()
		return err
	}, `SELECT authority, count(*), min(since) FROM jurat.waiting GROUP BY authority ORDER BY authority`)
}

func (s *SQL) Forget(ctx context.Context, authority string) (forgotten int64, err error) {
	err = s.engine.Write(ctx, func(ctx context.Context, w Writer) error {
		return w.Run(ctx, Statement{Text: `DELETE FROM jurat.waiting WHERE authority = $1 AND idx IN
			(SELECT r.idx FROM jurat.waiting w JOIN jurat.records r ON r.idx = w.idx WHERE w.authority = $1
				AND (r.stamps > 0 OR EXISTS (SELECT 1 FROM jurat.timestamps t WHERE t.idx = r.idx)))`, Args: []any{authority},
			Changed: func(n int64) error { forgotten = n; return nil }})
	})
	return forgotten, err
}

func (s *SQL) PutExpiring(ctx context.Context, act string, indexes []int64) error {
	return s.change(ctx, len(indexes), `INSERT INTO jurat.expiring (idx, act) SELECT r.idx, $1 FROM jurat.records r
		WHERE r.idx = ANY($2::bigint[]) AND NOT EXISTS (SELECT 1 FROM jurat.waiting w WHERE w.idx = r.idx)
		ON CONFLICT (idx) DO UPDATE SET act = excluded.act WHERE expiring.act = excluded.act`, act, indexes)
}

func (s *SQL) Expiring(ctx context.Context, from, n int64) ([]Expiring, error) {
	return listOf(ctx, s, func(scan Scan, e *Expiring) error { return scan(&e.Index, &e.Act) },
		`SELECT idx, act FROM jurat.expiring WHERE idx >= $1 ORDER BY idx LIMIT $2`, from, max(0, n))
}

func (s *SQL) Expire(ctx context.Context, act string, rows []Row, briefs []StoredBrief) error {
	if err := s.packer.pack(ctx, rows); err != nil {
		return err
	}
	var indexes []int64
	var empty []Statement
	for i := range rows {
		r := &rows[i]
		indexes = append(indexes, r.Index)
		empty = append(empty, Statement{Text: s.dialect.Empty, Args: []any{r.Index, r.Packed.Dictionary, r.Packed.Blob, act}, Changed: changing(1)})
	}
	for _, text := range s.dialect.Emptied {
		empty = append(empty, Statement{Text: text})
	}
	return s.engine.Write(ctx, func(ctx context.Context, w Writer) error {
		if err := w.Run(ctx, empty...); err != nil {
			return err
		}
		statements := append([]Statement{
			{Text: `DELETE FROM jurat.timestamps WHERE idx = ANY($1::bigint[])`, Args: []any{indexes}},
			{Text: `DELETE FROM jurat.briefs WHERE idx = ANY($1::bigint[])`, Args: []any{indexes}},
			{Text: `DELETE FROM jurat.links WHERE ` + s.dialect.LinksOf, Args: []any{indexes}},
			{Text: `DELETE FROM jurat.expiring WHERE idx = ANY($1::bigint[])`, Args: []any{indexes}},
			{Text: briefsReplaced},
		}, s.briefs(briefs)...)
		return w.Queue(ctx, statements...)
	})
}

func (s *SQL) DropExpiring(ctx context.Context, act string) error {
	return s.engine.Write(ctx, func(ctx context.Context, w Writer) error {
		return w.Queue(ctx, Statement{Text: `DELETE FROM jurat.expiring WHERE act = $1`, Args: []any{act}})
	})
}
