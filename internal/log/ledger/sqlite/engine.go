package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/plural"
	"jurat/internal/log/ledger/storage"
)

// dialect is what the tables have in their own way: see schema.sql.
var dialect = storage.Dialect{
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

func (w writer) Head(ctx context.Context) (storage.Head, error) { return storage.HeadIn(ctx, w) }

func (e engine) Admit(batch *storage.Batch) (last []storage.Statement, err error) {
	return nil, e.makeWay(batch)
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

func into(to any) func(storage.Scan) error {
	return func(scan storage.Scan) error { return scan(to) }
}

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

var numbered = regexp.MustCompile(`\?\d+`)

func spell(text string) string {
	for _, s := range spellings {
		text = s.form.ReplaceAllString(text, s.with)
	}
	for i, p := range numbered.FindAllString(text, -1) {
		if p != "?"+strconv.Itoa(i+1) {
			return text
		}
	}
	return numbered.ReplaceAllString(text, `?`) // a number is a name, which the driver seeks among all others: this took a third of storing 64 rows
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

// errBusy means that another connection holds the lock that is needed.
var errBusy = errors.New("the database is locked")

// lockTime is how long a transaction waits for its turn. Other transactions take milliseconds, unless Reclaim
// rewrites the file. A process that holds the lock longer has probably stopped, and waiting longer would not help.
const lockTime = 20 * time.Second

// transact runs f in a transaction that excludes every other writer. The context ends the wait for the transaction to
// begin; then transact returns the context's error, or storage.ErrBusy after lockTime. After that nothing is
// cancelled, so that the outcome is known: f takes about a millisecond.
func (s *Store) transact(ctx context.Context, f func(context.Context) error) error {
	waiting, cancel := context.WithTimeoutCause(ctx, s.lockTime, errWaited)
	defer cancel()
	if err := s.enter(waiting); err != nil {
		return err
	}
	defer s.writing.Release()
	if err := s.retry(waiting, func() error { return s.exec("BEGIN IMMEDIATE") }); err != nil {
		return s.judge(err)
	}
	// Before the transaction nothing is written to files that were moved. After it nothing is acknowledged there.
	err := errors.Join(s.InPlace(), s.pace())
	// A crash from here to COMMIT leaves at most frames in the write-ahead log without a commit frame. The next
	// process that opens the file ignores them.
	if err == nil {
		err = f(context.WithoutCancel(ctx))
	}
	if err == nil {
		// A crash during COMMIT leaves all or nothing: the transaction counts once its commit frame is on disk. If
		// COMMIT fails, every running process ignores the transaction. One exception: writing failed after the commit
		// frame, and the machine crashes before the next transaction overwrites it. Then the transaction may be found
		// complete. The caller got an error, and learns the outcome by the record's id.
		err = s.exec("COMMIT")
	}
	if err != nil {
		// SQLite has rolled back some failed transactions itself. Then ROLLBACK fails, which does no harm.
		_ = s.exec("ROLLBACK")
	} else {
		err = s.InPlace()
	}
	return s.judge(err)
	// A crash from here on finds the transaction in the write-ahead log. SQLite moves it into the database file, and
	// can be interrupted there and repeat it at any point.
}

// errWaited is the cause that ends the wait for a turn.
var errWaited = fmt.Errorf("it took longer than %v", lockTime)

// enter waits for this process's turn to write. It returns storage.ErrReadOnly, storage.ErrBusy or storage.ErrClosed,
// wrapped, or the context's error.
func (s *Store) enter(ctx context.Context) error {
	if s.readOnly != nil {
		return s.readOnly
	}
	err := s.writing.Acquire(ctx)
	if err != nil && isLate(context.Cause(ctx)) {
		return fmt.Errorf("%w: other transactions of this process also wait for the lock%s: %w", storage.ErrBusy, s.holder(), err)
	}
	if err == nil && s.closed.Load() {
		s.writing.Release()
		err = storage.ErrClosed
	}
	return err
}

// exec takes no context: an interrupted COMMIT or ROLLBACK would leave the transaction open.
func (s *Store) exec(statement string) error {
	return s.prepared.Run(context.Background(), storage.Statement{Text: statement})
}

// retry repeats try while another process has the database locked. After lockTime it returns storage.ErrBusy, and
// names the process.
func (s *Store) retry(ctx context.Context, try func() error) error {
	err := retry(ctx, try)
	if isLate(err) {
		return fmt.Errorf("%w: waiting for the lock on %s%s: %w", storage.ErrBusy, s.path, s.holder(), err)
	}
	return err
}

// isLate reports whether a wait for a turn ended because its time was over.
func isLate(err error) bool {
	return errors.Is(err, errWaited) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, storage.ErrBusy)
}

// retry repeats try while another process has the database locked, until the context ends. The pauses are short, like
// transactions, and random, so that two processes do not stay in step.
func retry(ctx context.Context, try func() error) error {
	for longest := 200 * time.Microsecond; ; longest = min(2*longest, 10*time.Millisecond) {
		err := try()
		if !errors.Is(err, errBusy) {
			return err
		}
		pause := time.NewTimer(rand.N(longest))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("waiting for another process: %w", context.Cause(ctx))
		}
	}
}

// translate replaces SQLite's errors by those of package storage.
func translate(err error) error {
	var failure *sqlite.Error
	if errors.Is(err, sql.ErrNoRows) {
		return storage.ErrNotFound
	}
	if !errors.As(err, &failure) {
		return err
	}
	meaning := map[int]error{
		sqlite3.SQLITE_BUSY:     errBusy,
		sqlite3.SQLITE_LOCKED:   errBusy,
		sqlite3.SQLITE_FULL:     storage.ErrDiskFull,
		sqlite3.SQLITE_READONLY: storage.ErrReadOnly,
		sqlite3.SQLITE_PERM:     fs.ErrPermission,
		sqlite3.SQLITE_CORRUPT:  storage.ErrDamaged,
		sqlite3.SQLITE_NOTADB:   storage.ErrDamaged,
	}[failure.Code()&0xff]
	if failure.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		meaning = storage.ErrNotUnique
	}
	if meaning == nil || errors.Is(err, meaning) {
		return err
	}
	return fmt.Errorf("%w: %w", meaning, err)
}

// header is how long a database is at least.
const header = 100

// An opened is a file as this process opened it.
type opened struct {
	path string
	is   atomicfile.ID
}

// remember notes which files are open. The caller has run a transaction, so SQLite has made those beside the database.
func (s *Store) remember() error {
	for _, path := range []string{s.path, s.path + "-wal", s.path + "-shm"} {
		is, _, err := atomicfile.Look(path)
		if err != nil {
			return err
		}
		s.files = append(s.files, opened{path, is})
	}
	return nil
}

// InPlace implements storage.Store. SQLite goes on writing to files that were removed, renamed or replaced, and reports success: what it commits there is
// in no file that a later process opens.
func (s *Store) InPlace() error {
	for _, f := range s.files {
		now, size, err := atomicfile.Look(f.path)
		switch {
		case err == nil && f.path == s.path && size < header:
			return fmt.Errorf("%w: %s was cut off", storage.ErrMoved, f.path)
		case err == nil && now.Same(f.is):
		case err == nil:
			return fmt.Errorf("%w: another file is now at %s", storage.ErrMoved, f.path)
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s is gone", storage.ErrMoved, f.path)
		default:
			return fmt.Errorf("%w: %w", storage.ErrMoved, err)
		}
	}
	return nil
}

// Check implements storage.Store: SQLite reads every page and compares every index with its table. SQLite does not
// report a missing index, so Check looks for the indexes by which rows are found.
func (s *Store) Check(ctx context.Context) (complaints []string, err error) {
	strays, unique, digests := 0, 0, 0
	err = engine{s}.Read(ctx, func(from storage.Reader) error {
		return from.Run(ctx,
			storage.Statement{Text: `PRAGMA integrity_check`, Row: func(scan storage.Scan) error {
				var line string
				err := scan(&line)
				if line != "ok" {
					complaints = append(complaints, line)
				}
				return err
			}},
			storage.Statement{Text: `SELECT (SELECT count(*) FROM tags WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.idx = tags.idx)),
				(SELECT count(*) FROM pragma_index_list('records') l, pragma_index_info(l.name) i WHERE l."unique" AND i.name = 'record_id'),
				(SELECT count(*) FROM pragma_index_list('records') WHERE name = 'records_by_digest')`,
				Row: func(scan storage.Scan) error { return scan(&strays, &unique, &digests) }})
	})
	if err != nil {
		return complaints, err
	}
	if strays > 0 {
		complaints = append(complaints, fmt.Sprintf("the table of counts has %s without a record", plural.Of(strays, "row")))
	}
	if unique*digests != 1 {
		complaints = append(complaints, "the table of records lacks an index for finding its rows")
	}
	return complaints, nil
}
