package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"jurat/internal/ledger/storage"
)

// atOnce is how many rows one statement stores: a statement costs as much as several rows.
var atOnce = [...]int{32, 8, 1}

// An inserter has one statement for each number of rows in atOnce.
type inserter struct {
	columns int
	texts   [len(atOnce)]string
}

// inserting makes an inserter. text is a statement without its rows.
func inserting(text, row string) inserter {
	i := inserter{columns: strings.Count(row, "?")}
	for k, n := range atOnce {
		i.texts[k] = text + row + strings.Repeat(`, `+row, n-1)
	}
	return i
}

var (
	insertBrief = inserting(`INSERT OR REPLACE INTO briefs (idx, line, names) VALUES `, `(?, ?, ?)`)
	insertLink  = inserting(`INSERT OR IGNORE INTO links (stretch, key, idx) VALUES `, `(?, ?, ?)`)
)

// briefsReplaced counts how often briefs were replaced.
const briefsReplaced = `INSERT INTO meta VALUES ('briefs_replaced', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)`

// insertBriefs stores briefs and their keys.
func (s *Store) insertBriefs(ctx context.Context, briefs []storage.StoredBrief) error {
	rows, links := make([]any, 0, 3*len(briefs)), make([]any, 0, 3*len(briefs)) // most records are linked in one way
	for i := range briefs {
		b := &briefs[i]
		rows = append(rows, b.Index, string(b.Line), notNull(b.Names))
		for _, key := range b.Keys {
			links = append(links, b.Index>>11, key, b.Index)
		}
	}
	if err := s.insertMany(ctx, &insertBrief, rows); err != nil {
		return fmt.Errorf("storing briefs: %w", err)
	}
	if err := s.insertMany(ctx, &insertLink, links); err != nil {
		return fmt.Errorf("storing keys of briefs: %w", err)
	}
	return nil
}

// insertMany inserts rows, with as few statements as there are.
func (s *Store) insertMany(ctx context.Context, i *inserter, values []any) error {
	for k, n := range atOnce {
		for n *= i.columns; len(values) >= n; values = values[n:] {
			if _, err := s.run(ctx, i.texts[k], values[:n]...); err != nil {
				return translate(err)
			}
		}
	}
	return nil
}

// Briefs implements storage.Briefs.
func (s *Store) Briefs(ctx context.Context, q storage.BriefQuery) ([]storage.StoredBrief, error) {
	where, args := selected(q)
	names := `NULL`
	if q.Names {
		names = `b.names`
	}
	return reading(ctx, s, func() (list []storage.StoredBrief, err error) {
		found, err := s.readers.QueryContext(ctx, fmt.Sprintf(`SELECT r.idx, r.record_id, r.digest, r.chain_id, r.case_digest, b.line, %s FROM records r LEFT JOIN briefs b ON b.idx = r.idx
			WHERE %s ORDER BY r.idx`, names, where), args...)
		if err != nil {
			return nil, err
		}
		err = scan(found, func() error {
			b, err := scanBrief(found)
			list = append(list, b)
			return err
		})
		return list, err
	})
}

// selected returns the condition of a query. It names the index of the trials' chains, because SQLite would not
// choose it by itself here.
func selected(q storage.BriefQuery) (where string, args []any) {
	switch {
	case q.At != nil:
		return `r.idx IN (SELECT value FROM json_each(?))`, []any{jsonOf(q.At)}
	case q.Chain != "":
		return numberedInChain, []any{q.Chain, q.From, max(0, q.N)}
	case q.Trials:
		return `r.idx IN (SELECT idx FROM records INDEXED BY records_in_trials WHERE chain_id >= 'trial-' AND chain_id < 'trial.' AND idx >= ? ORDER BY idx LIMIT +?)`,
			[]any{q.From, max(0, q.N)}
	}
	return `r.idx >= ? AND r.idx < ?`, []any{q.From, q.From + max(0, q.N)}
}

func jsonOf(list []int64) string {
	text := []byte{'['}
	for i, n := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, n, 10)
	}
	return string(append(text, ']'))
}

func scanBrief(rows *sql.Rows) (b storage.StoredBrief, err error) {
	var id any
	var digest, submitted []byte
	var chain, line sql.NullString
	if err := rows.Scan(&b.Index, &id, &digest, &chain, &submitted, &line, &b.Names); err != nil {
		return b, err
	}
	b.RecordID, b.ChainID = idIn(id), chain.String
	b.Digest, b.Case = storage.DigestIn(digest), storage.DigestIn(submitted)
	if line.Valid {
		b.Line = []byte(line.String)
	}
	return b, nil
}

// stretches lists all stretches, the oldest first.
const stretches = `WITH RECURSIVE stretch(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM stretch WHERE n < (SELECT max(idx) >> 11 FROM records)),
	wanted(v) AS (SELECT value FROM json_each(?1)) `

// Places implements storage.Briefs. Each way of naming records is one statement that reads at most q.Most places.
func (s *Store) Places(ctx context.Context, q storage.Lookup) ([]int64, error) {
	digests := make([]string, len(q.Digests))
	for i := range q.Digests {
		digests[i] = hex.EncodeToString(q.Digests[i][:])
	}
	return reading(ctx, s, func() (places []int64, err error) {
		for _, way := range []struct {
			query string
			named any
			n     int
		}{
			{`SELECT idx FROM json_each(?1) CROSS JOIN records ON record_id = ` + idListed + ` LIMIT +?2`, listed(q.RecordIDs), len(q.RecordIDs)},
			{stretches + `SELECT idx FROM stretch CROSS JOIN wanted CROSS JOIN records
				WHERE idx >> 11 = n AND substr(digest, 1, 8) = substr(unhex(v), 1, 8) AND digest = unhex(v) LIMIT +?2`, digests, len(digests)},
			{stretches + `SELECT DISTINCT idx FROM stretch CROSS JOIN wanted CROSS JOIN links WHERE stretch = n AND key = v LIMIT +?2`, q.Keys, len(q.Keys)},
		} {
			if way.n == 0 {
				continue
			}
			found, err := s.indexes(ctx, way.query, way.named, q.Most)
			if err != nil {
				return nil, err
			}
			places = append(places, found...)
		}
		return storage.FirstPlaces(places, q.Most), nil
	})
}

func (s *Store) indexes(ctx context.Context, query string, named any, most int) ([]int64, error) {
	list, err := json.Marshal(named)
	if err != nil {
		return nil, fmt.Errorf("encoding the search terms: %w", err)
	}
	rows, err := s.readers.QueryContext(ctx, query, string(list), max(0, most))
	if err != nil {
		return nil, err
	}
	var found []int64
	err = scan(rows, func() error {
		var index int64
		err := rows.Scan(&index)
		found = append(found, index)
		return err
	})
	return found, err
}

// BriefKeys implements storage.Briefs.
func (s *Store) BriefKeys(ctx context.Context, from, n int64) ([]storage.BriefKey, error) {
	return reading(ctx, s, func() (list []storage.BriefKey, err error) {
		rows, err := s.readers.QueryContext(ctx, `SELECT idx, key FROM links WHERE stretch BETWEEN ?1 >> 11 AND (?1 + ?2 - 1) >> 11 AND idx >= ?1 AND idx < ?1 + ?2
			ORDER BY idx, key`, from, max(0, n))
		if err != nil {
			return nil, err
		}
		err = scan(rows, func() error {
			var k storage.BriefKey
			err := rows.Scan(&k.Index, &k.Key)
			list = append(list, k)
			return err
		})
		return list, err
	})
}

// Replaced implements storage.Briefs.
func (s *Store) Replaced(ctx context.Context) (int64, error) { return s.number(ctx, "briefs_replaced") }

// number reads a number of the table meta; 0 if it has none of this name.
func (s *Store) number(ctx context.Context, name string) (int64, error) {
	return reading(ctx, s, func() (n int64, err error) {
		err = s.readers.QueryRowContext(ctx, `SELECT CAST(value AS INTEGER) FROM meta WHERE name = ?`, name).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, nil
		}
		return n, err
	})
}

// PutBriefs implements storage.Briefs.
func (s *Store) PutBriefs(ctx context.Context, in storage.Range, briefs []storage.StoredBrief) error {
	return s.transact(ctx, func(ctx context.Context) error {
		head, err := s.headNow(ctx)
		if err != nil {
			return err
		}
		if err := in.Check(briefs, head); err != nil {
			return err
		}
		for _, statement := range []string{
			`DELETE FROM briefs WHERE idx >= ?1 AND idx < ?2`,
			`DELETE FROM links WHERE stretch BETWEEN ?1 >> 11 AND ?2 >> 11 AND idx >= ?1 AND idx < ?2`,
		} {
			if _, err := s.writer.ExecContext(ctx, statement, in.From, in.To); err != nil {
				return translate(err)
			}
		}
		if err := s.insertBriefs(ctx, briefs); err != nil || in.From == in.To {
			return err
		}
		_, err = s.writer.ExecContext(ctx, briefsReplaced)
		return translate(err)
	})
}
