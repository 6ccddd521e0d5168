package storage

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"jurat/evidence"
)

// SQL is what the stores in SQL databases have in common: the statements, and what their rows mean. It has the methods of Store, but for
// Close and Reclaim. A store embeds it, and adds what differs between databases: opening, closing, checking, and giving room back.
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

// An Engine is one kind of database. Its errors are those that Store names, and ErrNotUnique.
type Engine interface {
	// Read calls read with what is committed, and again if a connection broke.
	Read(ctx context.Context, read func(Reader) error) error
	// Write calls write in a transaction that excludes all other writers, and commits unless write returns an error. Once
	// the transaction has begun, nothing is cancelled: see Log.Append.
	Write(ctx context.Context, write func(context.Context, Writer) error) error
	// Admit is called for each packed batch before it is written. It returns what its rows have in Dialect.Columns, and
	// the statements that come after all others. After its error nothing is written.
	Admit(head Head, batch *Batch) (columns [][]any, last []Statement, err error)
}

// A Dialect is what the tables of an engine have in their own way. Most members are parts of statements.
type Dialect struct {
	Head     string                     // the statement that reads the head: its size and root; no row: EmptyHead
	Hashes   string                     // the statement that reads the hashes at the places in the list $1, each with its place
	Columns  []string                   // of table records, beside those that all engines have
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

	// HashAt returns the place of a hash of the tree, and which one it is there.
	HashAt func(index int64) (place int64, n int)
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

// bytesOf are digests as an argument.
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
