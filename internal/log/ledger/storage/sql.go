package storage

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// SQL is what the stores in SQL databases have in common: the statements, and what their rows mean. It has the methods of Store, but for
// Close, Check and Reclaim. A store embeds it, and adds what differs between databases: opening, closing, checking, and giving room back.
//
// The statements are PostgreSQL's, with numbered parameters, and the tables are in the schema jurat. An engine for
// another database spells them in its own way.
type SQL struct {
	engine  Engine
	dialect Dialect
	packer  *packer
	insert  inserters
}

// NewSQL returns what a store embeds.
func NewSQL(engine Engine, dialect Dialect) *SQL {
	s := &SQL{engine: engine, dialect: dialect, insert: dialect.inserters()}
	s.packer = &packer{from: s, known: map[int64]*codec{}}
	return s
}

// Probe implements Store, for a database that does not tell. So do the three methods that follow.
func (s *SQL) Probe(context.Context) error { return nil }

func (s *SQL) ReadOnly() error { return nil }

func (s *SQL) InPlace() error { return nil }

func (s *SQL) Listen(context.Context, func()) error { return nil }

// An Engine is one kind of database. Its errors are those that Store names, and ErrNotUnique.
type Engine interface {
	// Read calls read with what is committed, and again if a connection broke.
	Read(ctx context.Context, read func(Reader) error) error
	// Write calls write in a transaction that excludes all other writers, and commits unless write returns an error. Once
	// the transaction has begun, nothing is cancelled: see Store.Append.
	Write(ctx context.Context, write func(context.Context, Writer) error) error
	// Admit is called for each packed batch before it is written. It returns the statements that come after all others.
	// After its error nothing is written.
	Admit(batch *Batch) (last []Statement, err error)
}

// A Dialect is what the tables of an engine have in their own way. Most members are parts of statements.
type Dialect struct {
	Tag      func(column string) string // the tag for which a column of table tags stands
	TagIn    func(tag string) string    // reverses Tag
	NewTag   string                     // the statement that stores the tag $1 unless it is there; "": none is needed
	Trials   string                     // table records, read by the index for the chains of trials
	ByDigest string                     // the condition for the row r with the digest $1
	Link     string                     // the columns of table links
	LinkRow  string                     // their values, for the key $1 of row $2
	LinksIn  string                     // the condition for the links of the rows from $1 to before $2
	LinksOf  string                     // the condition for the links of the rows in the list $1
	Empty    string                     // the statement that replaces the content of row $1, if it is noted for act $4, by dictionary $2 and blob $3
	Emptied  []string                   // statements that come after all of those

	// Places returns statements that together find the places of what a Lookup selects.
	Places func(ids []ID, digests [][]byte, keys []int64, most int) []Statement
}

// A Reader runs statements, in one message if the database is on another machine. They are called back in order.
type Reader interface {
	Run(ctx context.Context, statements ...Statement) error
}

// A Writer is a transaction.
type Writer interface {
	Reader
	// Head returns the head of the log when the transaction began.
	Head(ctx context.Context) (Head, error)
	// Queue runs statements now or with the COMMIT. They have no Row and no Changed.
	Queue(ctx context.Context, statements ...Statement) error
}

// A Statement of SQL. Its arguments are nil, numbers, strings, bytes, an ID, or lists of these. The engine may change
// Args.
type Statement struct {
	Text    string
	Args    []any
	Row     func(Scan) error    // called for each row that is found
	Changed func(n int64) error // called with the number of rows that were changed
}

// Scan reads the columns of a row; a record's id into an *ID.
type Scan func(into ...any) error

// An ID is a record id, which an engine may store in a form of its own.
type ID string

// listOf reads something from each row that a statement finds.
func listOf[T any](ctx context.Context, s *SQL, row func(Scan, *T) error, text string, args ...any) (list []T, err error) {
	err = s.engine.Read(ctx, func(from Reader) error {
		list = nil // of a connection that broke
		return from.Run(ctx, Statement{Text: text, Args: args, Row: func(scan Scan) error {
			var one T
			err := row(scan, &one)
			list = append(list, one)
			return err
		}})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// one reads the row of a statement that finds one at most. It returns ErrNotFound if there is none.
func one[T any](ctx context.Context, s *SQL, text string, args ...any) (found T, err error) {
	list, err := listOf(ctx, s, func(scan Scan, into *T) error { return scan(into) }, text, args...)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return found, err
	}
	return list[0], nil
}

// changing expects a number of changed rows, and returns ErrConflict for another.
func changing(want int) func(int64) error {
	return func(n int64) error {
		if n != int64(want) {
			return fmt.Errorf("%d of %d rows: %w", int64(want)-n, want, ErrConflict)
		}
		return nil
	}
}

// change runs a statement in a transaction of its own. It returns ErrConflict, and changes nothing, if the statement
// does not change this many rows.
func (s *SQL) change(ctx context.Context, rows int, text string, args ...any) error {
	return s.engine.Write(ctx, func(ctx context.Context, w Writer) error {
		return w.Run(ctx, Statement{Text: text, Args: args, Changed: changing(rows)})
	})
}

// atOnce is how many rows one statement stores: a statement costs as much as several rows.
var atOnce = [...]int{64, 8, 1}

// An inserter has a statement for each number of rows in atOnce, and makes it when it is first needed.
type inserter struct {
	columns int
	texts   [len(atOnce)]func() string
}

var parameter = regexp.MustCompile(`\$\d+`)

// inserting makes an inserter. row are the values of a row, in which the parameters are numbered.
func inserting(columns int, into, row, conflict string) inserter {
	i := inserter{columns: columns}
	for k, n := range atOnce {
		i.texts[k] = sync.OnceValue(func() string {
			rows := make([]string, n)
			for at := range rows {
				rows[at] = parameter.ReplaceAllStringFunc(row, func(p string) string {
					number, _ := strconv.Atoi(p[1:]) // digits, by the pattern
					return "$" + strconv.Itoa(at*columns+number)
				})
			}
			return "INSERT INTO jurat." + into + " VALUES " + strings.Join(rows, ", ") + conflict
		})
	}
	return i
}

// rows returns the statements that store rows, from their values one after the other.
func (i *inserter) rows(values []any) (statements []Statement) {
	for k, n := range atOnce {
		for n *= i.columns; n > 0 && len(values) >= n; values = values[n:] {
			statements = append(statements, Statement{Text: i.texts[k](), Args: values[:n:n]})
		}
	}
	return statements
}

// digestIn is the digest in a column. It is zero if there is none, and for another length: such a row does not open as
// a record, and the rows beside it can still be read.
func digestIn(column []byte) (d evidence.Digest) {
	if len(column) == len(d) {
		copy(d[:], column)
	}
	return d
}

// optional returns NULL for the zero digest.
func optional(d evidence.Digest) any {
	if d.IsZero() {
		return nil
	}
	return d[:]
}

func bytesOf(digests []evidence.Digest) [][]byte {
	list := make([][]byte, len(digests))
	for i := range digests {
		list[i] = digests[i][:]
	}
	return list
}

func idsOf(texts []string) []ID {
	list := make([]ID, len(texts))
	for i, text := range texts {
		list[i] = ID(text)
	}
	return list
}

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
		return s.put(ctx, w, &batch)
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

// Find implements Committed.
func (c committed) Find(q Query) (Found, error) { return c.sql.find(c.ctx, c.Writer, q) }

// find looks for everything in one statement, because each costs more than what it finds. The last count of a chain, case, actor or subject is its
// length, because the log counts without gaps.
func (s *SQL) find(ctx context.Context, from Reader, q Query) (Found, error) {
	found := NewFound()
	var texts []string
	var args []any
	var notes []func(key string, n int64)
	look := func(list any, text string, note func(key string, n int64)) {
		args, notes = append(args, list), append(notes, note)
		texts = append(texts, fmt.Sprintf(text, len(args)))
	}
	if len(q.RecordIDs) > 0 {
		look(idsOf(q.RecordIDs), `SELECT %[1]d, record_id, idx FROM jurat.records WHERE record_id = ANY($%[1]d::text[])`, func(id string, n int64) { found.Places[id] = n })
	}
	if len(q.Chains) > 0 {
		look(q.Chains, lastOf("text", "value", "records", "chain_id", "chain_seq", "value"), func(id string, n int64) { found.Chains[id] = n })
	}
	tag := s.dialect.TagIn("value")
	for _, by := range []struct {
		digests []evidence.Digest
		found   map[evidence.Digest]int64
		text    string
	}{
		{q.Cases, found.Cases, lastOf("bytea", "encode(value, 'hex')", "records", "case_digest", "case_seq", "value")},
		{q.Actors, found.Actors, lastOf("bytea", "encode(value, 'hex')", "tags", "actor", "actor_seq", tag)},
		{q.Subjects, found.Subjects, lastOf("bytea", "encode(value, 'hex')", "tags", "subject", "subject_seq", tag)},
	} {
		if len(by.digests) > 0 {
			look(bytesOf(by.digests), by.text, func(key string, n int64) {
				digest, _ := hex.DecodeString(key) // the database has written it
				by.found[digestIn(digest)] = n
			})
		}
	}
	if len(texts) == 0 {
		return found, nil
	}
	return found, from.Run(ctx, Statement{Text: strings.Join(texts, ` UNION ALL `), Args: args, Row: func(scan Scan) error {
		var which int
		var key ID
		var n int64
		err := scan(&which, &key, &n)
		if err == nil && n >= 0 {
			notes[which-1](string(key), n)
		}
		return err
	}})
}

// lastOf reads the last number under each value of a list, or -1. The list is the argument with the number with which the statement is formatted.
func lastOf(kind, key, table, name, number, value string) string {
	return `SELECT %[1]d, ` + key + `, coalesce((SELECT ` + number + ` FROM jurat.` + table + ` WHERE ` + name + ` = ` + value + ` ORDER BY ` + number + ` DESC LIMIT 1), -1)
		FROM unnest($%[1]d::` + kind + `[]) AS c(value)`
}

// inserters store rows of the tables to which batches add.
type inserters struct{ records, timestamps, tags, briefs, links, waiting inserter }

func (d *Dialect) inserters() inserters {
	return inserters{
		records: inserting(10, `records (idx, record_id, digest, chain_id, chain_seq, case_digest, case_seq, dictionary, stamps, packed)`,
			`($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, ``),
		timestamps: inserting(4, `timestamps (idx, position, kind, token)`, `($1, $2, $3, $4)`, ``),
		tags: inserting(7, `tags (idx, root, hashes, actor_seq, subject_seq, actor, subject)`,
			`($1, $2, $3, nullif($4::bigint, 0), nullif($5::bigint, 0), `+d.TagIn(`$6`)+`, `+d.TagIn(`$7`)+`)`, ``),
		briefs:  inserting(3, `briefs (idx, line, names)`, `($1, $2, $3)`, ` ON CONFLICT (idx) DO UPDATE SET line = excluded.line, names = excluded.names`),
		links:   inserting(2, `links (`+d.Link+`)`, `(`+d.LinkRow+`)`, ` ON CONFLICT DO NOTHING`),
		waiting: inserting(3, `waiting (authority, idx, since)`, `($1, $2, $3)`, ``),
	}
}

// put stores a batch. Late time stamps come first, because they can find that another writer was first.
func (s *SQL) put(ctx context.Context, w Writer, batch *Batch) error {
	last, err := s.engine.Admit(batch)
	if err == nil {
		err = s.counted(ctx, w, batch)
	}
	if err == nil {
		err = s.stamp(ctx, w, batch.Stamps)
	}
	if err != nil {
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
		for n := row.Packed.Timestamps; n < len(row.Timestamps); n++ { // of a copied row
			late = append(late, row.Index, n, string(row.Timestamps[n].Kind), row.Timestamps[n].Token)
		}
	}
	for _, wait := range batch.Waits {
		waits = append(waits, wait.Authority, wait.Index, wait.Since.UnixMilli())
	}
	statements := slices.Concat(s.insert.records.rows(rows), s.insert.timestamps.rows(late), s.tags(batch),
		s.briefs(batch.Briefs), s.insert.waiting.rows(waits), last)
	return w.Queue(ctx, statements...)
}

// counted returns an error for a row without a count, such as of an older program, in a log that has counted an actor.
func (s *SQL) counted(ctx context.Context, w Writer, batch *Batch) error {
	at := slices.IndexFunc(batch.Rows, func(row Row) bool { return row.Counts.ActorSeq == 0 })
	if at < 0 || batch.Copied {
		return nil
	}
	return w.Run(ctx, Statement{Text: `SELECT idx FROM jurat.tags WHERE actor IS NOT NULL LIMIT 1`, Row: func(Scan) error {
		return fmt.Errorf("the log counts actors, and record %d is not counted", batch.Rows[at].Index)
	}})
}

// tags returns the statements that store beside the rows their hashes, the root of the batch, and the counts of actors and subjects of those that have
// them. A tag is stored with its first count; of a log that is copied, and may be damaged, with any.
func (s *SQL) tags(batch *Batch) (statements []Statement) {
	var values []any
	known := map[evidence.Digest]bool{}
	store := func(seq int64, tag *evidence.Digest) {
		if s.dialect.NewTag != "" && (seq == 1 || batch.Copied && seq > 1 && !known[*tag]) {
			statements, known[*tag] = append(statements, Statement{Text: s.dialect.NewTag, Args: []any{tag[:]}}), true
		}
	}
	rest := batch.Hashes
	for i := range batch.Rows {
		row := &batch.Rows[i]
		var hashes []byte
		for range 1 + bits.TrailingZeros64(uint64(row.Index)+1) { // its own, and those of the subtrees that end with it
			hashes, rest = append(hashes, rest[0][:]...), rest[1:]
		}
		var root any
		if i == len(batch.Rows)-1 {
			root = batch.Next.Root[:]
		}
		store(row.Counts.ActorSeq, &row.Actor)
		store(row.Counts.SubjectSeq, &row.Counts.Subject)
		values = append(values, row.Index, root, hashes, row.Counts.ActorSeq, row.Counts.SubjectSeq, optional(row.Actor), optional(row.Counts.Subject))
	}
	return append(statements, s.insert.tags.rows(values)...)
}

// duplicate returns a DuplicateError for the first row that exists already, in the log or earlier in the batch.
func (s *SQL) duplicate(ctx context.Context, rows []Row, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, duplicateTime)
	defer cancel()
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].RecordID
	}
	var found map[string]int64
	err := s.engine.Read(ctx, func(from Reader) error {
		places, err := s.find(ctx, from, Query{RecordIDs: ids})
		found = places.Places
		return err
	})
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
