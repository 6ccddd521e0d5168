package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/internal/ledger/storage"
)

// dialect is what the tables have in their own way: see schema.sql.
var dialect = storage.Dialect{
	Head:   `SELECT size, root FROM head`,
	Hashes: `SELECT idx, hash FROM hashes WHERE idx = ANY($1::bigint[])`,
	HashAt: func(index int64) (place int64, n int) { return index, 0 },
	Tag:    func(column string) string { return `(SELECT tag FROM actors WHERE n = ` + column + `)` },
	TagIn:  func(tag string) string { return `(SELECT n FROM actors WHERE tag = ` + tag + `)` },
	NewTag: `INSERT INTO actors (tag) VALUES ($1) ON CONFLICT DO NOTHING`,
	Trials: `records INDEXED BY records_in_trials`, // SQLite would not choose it by itself
	ByDigest: `r.idx = (
		WITH RECURSIVE stretch(n) AS (SELECT max(idx) >> 11 FROM records UNION ALL SELECT n - 1 FROM stretch WHERE n > 0)
		SELECT idx FROM stretch CROSS JOIN records WHERE idx >> 11 = n AND substr(digest, 1, 8) = substr($1, 1, 8) AND digest = $1 LIMIT 1)`,
	Link:    `stretch, key, idx`,
	LinkRow: `$2 >> 11, $1, $2`,
	LinksIn: `stretch BETWEEN $1 >> 11 AND ($2 - 1) >> 11 AND idx >= $1 AND idx < $2`,
	LinksOf: `stretch IN (SELECT value >> 11 FROM json_each($1)) AND idx = ANY($1::bigint[])`,
	// See table emptied.
	Empty: `INSERT INTO emptied SELECT idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, $2, $3
		FROM records WHERE idx = $1 AND EXISTS (SELECT 1 FROM expiring WHERE expiring.idx = $1 AND act = $4)`,
	Emptied: []string{
		`PRAGMA defer_foreign_keys = 1`, // until the rows are inserted again
		`DELETE FROM timestamps WHERE idx IN (SELECT idx FROM emptied)`,
		`DELETE FROM records WHERE idx IN (SELECT idx FROM emptied)`,
		`INSERT INTO records (idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, dictionary, stamps, packed)
			SELECT idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, dictionary, 0, packed FROM emptied`,
		`DELETE FROM emptied`,
	},
	Places: func(ids []storage.ID, digests [][]byte, keys []int64, most int) (ways []storage.Statement) {
		for _, way := range []struct {
			list any
			n    int
			text string
		}{
			{ids, len(ids), `SELECT idx FROM unnest($1::text[]) AS c(value) CROSS JOIN records ON record_id = c.value LIMIT $2`},
			{digests, len(digests), stretches + `SELECT idx FROM stretch CROSS JOIN unnest($1::bytea[]) AS c(value) CROSS JOIN records
				WHERE idx >> 11 = stretch.n AND substr(digest, 1, 8) = substr(c.value, 1, 8) AND digest = c.value LIMIT $2`},
			{keys, len(keys), stretches + `SELECT DISTINCT idx FROM stretch CROSS JOIN unnest($1::bigint[]) AS c(value) CROSS JOIN links
				WHERE stretch = stretch.n AND links.key = c.value LIMIT $2`},
		} {
			if way.n > 0 {
				ways = append(ways, storage.Statement{Text: way.text, Args: []any{way.list, most}})
			}
		}
		return ways
	},
}

// stretches lists all stretches, the oldest first.
const stretches = `WITH RECURSIVE stretch(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM stretch WHERE n < (SELECT max(idx) >> 11 FROM records)) `

// engine is a Store as a storage.Engine.
type engine struct{ *Store }

// Read implements storage.Engine. It returns storage.ErrClosed after Close, also if read fails because of it.
func (e engine) Read(ctx context.Context, read func(storage.Reader) error) error {
	if e.closed.Load() {
		return storage.ErrClosed
	}
	if err := errors.Join(ctx.Err(), e.InPlace()); err != nil { // a connection that is opened now would read another database
		return err
	}
	err := read(e.reader)
	if err != nil && e.closed.Load() {
		return storage.ErrClosed
	}
	return err
}

func (e engine) Write(ctx context.Context, write func(context.Context, storage.Writer) error) error {
	return e.transact(ctx, func(ctx context.Context) error { return write(ctx, writer{e.Store}) })
}

// A writer is the running transaction.
type writer struct{ s *Store }

func (w writer) Run(ctx context.Context, statements ...storage.Statement) error {
	return w.s.prepared.Run(ctx, statements...)
}

func (w writer) Queue(ctx context.Context, statements ...storage.Statement) error {
	return w.s.prepared.Run(ctx, statements...)
}

func (w writer) Head(ctx context.Context) (storage.Head, error) { return w.s.HeadIn(ctx, w) }

// insertHashes is one statement for all hashes: a statement costs more than the rows that it inserts.
const insertHashes = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $3)
	INSERT INTO hashes (idx, hash) SELECT $1 + i, substr($2, 32 * i + 1, 32) FROM n`

func (e engine) Admit(head storage.Head, batch *storage.Batch) (_ [][]any, last []storage.Statement, err error) {
	if err := e.makeWay(batch); err != nil {
		return nil, nil, err
	}
	e.mover.add(volume(batch))
	joined := make([]byte, 0, len(batch.Hashes)*tlog.HashSize)
	for i := range batch.Hashes {
		joined = append(joined, batch.Hashes[i][:]...)
	}
	if len(batch.Hashes) > 0 {
		last = append(last, storage.Statement{Text: insertHashes, Args: []any{tlog.StoredHashCount(head.Size), joined, len(batch.Hashes)}})
	}
	return nil, append(last, storage.Statement{Text: `UPDATE head SET size = $1, root = $2`, Args: []any{batch.Next.Size, batch.Next.Root[:]}}), nil
}

// A runner is a storage.Reader on a connection, or on several. It prepares each statement once: there are few, and
// SQLite takes longer to parse one than to run it.
type runner struct {
	on interface {
		PrepareContext(context.Context, string) (*sql.Stmt, error)
	}
	prepared sync.Map // *sql.Stmt by their texts
}

func (r *runner) Run(ctx context.Context, statements ...storage.Statement) error {
	for i := range statements {
		if err := r.run(ctx, &statements[i]); err != nil {
			return translate(err)
		}
	}
	return nil
}

func (r *runner) run(ctx context.Context, s *storage.Statement) error {
	prepared, err := r.statement(ctx, s.Text)
	if err == nil {
		err = packArgs(s.Args)
	}
	if err != nil {
		return err
	}
	if s.Row == nil {
		result, err := prepared.ExecContext(ctx, s.Args...)
		if err != nil || s.Changed == nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		return s.Changed(n)
	}
	rows, err := prepared.QueryContext(ctx, s.Args...)
	if err != nil {
		return err
	}
	return each(rows, func() error { return s.Row(func(into ...any) error { return scan(rows, into) }) })
}

// into reads a row of one column.
func into(to any) func(storage.Scan) error {
	return func(scan storage.Scan) error { return scan(to) }
}

// each calls do for every row, and closes the rows.
func each(rows *sql.Rows, do func() error) error {
	defer rows.Close()
	for rows.Next() {
		if err := do(); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (r *runner) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if known, ok := r.prepared.Load(text); ok {
		return known.(*sql.Stmt), nil
	}
	made, err := r.on.PrepareContext(ctx, spell(text))
	if err != nil {
		return nil, err
	}
	known, was := r.prepared.LoadOrStore(text, made)
	if was {
		err = made.Close() // another goroutine prepared the same statement
	}
	return known.(*sql.Stmt), err
}

// close closes all statements.
func (r *runner) close() (err error) {
	r.prepared.Range(func(_, made any) bool {
		err = errors.Join(err, made.(*sql.Stmt).Close())
		return true
	})
	return err
}

// A list is an argument in JSON. Bytes are in hexadecimal there, after an x if the list may also have texts, which come
// after a t.
const (
	textIn  = `iif(substr(value, 1, 1) = 'x', unhex(substr(value, 2)), substr(value, 2))`
	bytesIn = `unhex(value)`
)

// spellings are what SQLite writes in another way than PostgreSQL.
var spellings = []struct {
	form *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\bjurat\.`), ``},
	{regexp.MustCompile(`= ANY\(\$(\d+)::bigint\[\]\)`), `IN (SELECT value FROM json_each(?$1))`},
	{regexp.MustCompile(`= ANY\(\$(\d+)::text\[\]\)`), `IN (SELECT ` + textIn + ` FROM json_each(?$1))`},
	{regexp.MustCompile(`unnest\(\$(\d+)::bigint\[\]\) AS c\(value\)`), `json_each(?$1) AS c`},
	{regexp.MustCompile(`unnest\(\$(\d+)::text\[\]\) AS c\(value\)`), `(SELECT ` + textIn + ` AS value FROM json_each(?$1)) AS c`},
	{regexp.MustCompile(`unnest\(\$(\d+)::bytea\[\]\) AS c\(value\)`), `(SELECT ` + bytesIn + ` AS value FROM json_each(?$1)) AS c`},
	{regexp.MustCompile(`encode\((\w+), 'hex'\)`), `hex($1)`},
	{regexp.MustCompile(`::\w+`), ``},
	{regexp.MustCompile(`LIMIT \$`), `LIMIT +$$`}, // without the plus, SQLite plans for the value that is bound, and parses the statement anew for each
	{regexp.MustCompile(`\$(\d+)`), `?$1`},
}

// spell writes a statement for SQLite.
func spell(text string) string {
	for _, s := range spellings {
		text = s.form.ReplaceAllString(text, s.with)
	}
	return text
}

// packArgs replaces arguments by those that SQLite has.
func packArgs(args []any) (err error) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case storage.ID:
			args[i] = idOf(string(arg))
		case []int64:
			args[i] = jsonOf(arg)
		case []string:
			args[i], err = jsonOfEach(arg, func(text string) string { return "t" + text })
		case [][]byte:
			args[i], err = jsonOfEach(arg, hex.EncodeToString)
		case []storage.ID:
			args[i], err = jsonOfEach(arg, listed)
		}
		if err != nil {
			return fmt.Errorf("encoding a list for a statement: %w", err)
		}
	}
	return nil
}

func jsonOfEach[T any](list []T, text func(T) string) (string, error) {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = text(list[i])
	}
	b, err := json.Marshal(texts)
	return string(b), err
}

// scan reads the columns of a row.
func scan(rows *sql.Rows, into []any) error {
	for i := range into {
		if id, is := into[i].(*storage.ID); is {
			into[i] = (*packedID)(id)
		}
	}
	return rows.Scan(into...)
}

// idOf is a record id as the tables have it: of a UUID its bytes, and any other text as it is.
func idOf(id string) any {
	if b, err := hex.DecodeString(strings.ReplaceAll(id, "-", "")); err == nil && idIn(b) == id {
		return b
	}
	return id
}

// idIn is the record id in a column, or "" if it is of a form that this package does not write.
func idIn(column any) string {
	switch id := column.(type) {
	case string:
		return id
	case []byte:
		if b := hex.EncodeToString(id); len(b) == 32 {
			return b[:8] + "-" + b[8:12] + "-" + b[12:16] + "-" + b[16:20] + "-" + b[20:]
		}
	}
	return ""
}

// packedID is a sql.Scanner.
type packedID storage.ID

func (id *packedID) Scan(column any) error {
	*id = packedID(idIn(column))
	return nil
}

// listed is a record id in a list: see textIn.
func listed(id storage.ID) string {
	if b, is := idOf(string(id)).([]byte); is {
		return "x" + hex.EncodeToString(b)
	}
	return "t" + string(id)
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
