package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"jurat/internal/ledger/storage"
)

// Check implements storage.Checker. It reports server settings under which a crash of the server's machine can damage
// committed data, pages that the server found damaged, and indexes that differ from their tables. With the extension
// amcheck in the database, Check uses it for the indexes. Otherwise it compares every index with its table.
func (s *Store) Check(ctx context.Context) (complaints []string, err error) {
	err = engine{s}.Read(ctx, func(storage.Reader) error {
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if complaints, err = settingsAndPages(ctx, tx); err != nil {
				return err
			}
			more, err := indexes(ctx, tx)
			complaints = append(complaints, more...)
			return err
		})
	})
	return complaints, err
}

func settingsAndPages(ctx context.Context, tx pgx.Tx) ([]string, error) {
	return texts[string](ctx, tx, `SELECT format('the server runs with %s=off: when its machine crashes, what is committed can be lost or damaged', name)
			FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'
		UNION ALL SELECT format('the server has found %s damaged pages in this database, the last at %s', checksum_failures, checksum_last_failure)
			FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0
		UNION ALL SELECT format('the index %s is not valid', i.indexrelid::regclass)
			FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'jurat'::regnamespace AND NOT (i.indisvalid AND i.indisready)
		UNION ALL SELECT format('the table of counts has a row for place %s, which has no record', idx)
			FROM jurat.tags g WHERE NOT EXISTS (SELECT 1 FROM jurat.records r WHERE r.idx = g.idx)`)
}

// texts reads the only column of a query's rows.
func texts[T any](ctx context.Context, from interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}, query string, args ...any) ([]T, error) {
	rows, err := from.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// An index of the log, and what its table says that it must contain.
type index struct {
	name   string
	fields string // the sort key
	table  string
	where  string
}

func indexes(ctx context.Context, tx pgx.Tx) (complaints []string, err error) {
	rows, err := tx.Query(ctx, `SELECT i.indexrelid::regclass::text, c.oid::regclass::text, coalesce(pg_get_expr(i.indpred, i.indrelid), 'true'),
			(SELECT string_agg(pg_get_indexdef(i.indexrelid, n, true), ', ' ORDER BY n) FROM generate_series(1, i.indnkeyatts) n)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'jurat'::regnamespace AND c.relname IN ('records', 'timestamps', 'waiting', 'expiring', 'briefs', 'links', 'tags') ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	var list []index
	var x index
	if _, err := pgx.ForEachRow(rows, []any{&x.name, &x.table, &x.where, &x.fields}, func() error {
		list = append(list, x)
		return nil
	}); err != nil {
		return nil, err
	}
	var amcheck string // the schema of the extension
	err = tx.QueryRow(ctx, `SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'amcheck'`).Scan(&amcheck)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	for _, x := range list {
		complaint, err := x.check(ctx, tx, amcheck)
		if err != nil {
			return complaints, fmt.Errorf("checking index %s: %w", x.name, err)
		}
		if complaint != "" {
			complaints = append(complaints, complaint)
		}
	}
	return complaints, nil
}

// check compares an index with its table.
func (x *index) check(ctx context.Context, tx pgx.Tx, amcheck string) (complaint string, err error) {
	nested, err := tx.Begin(ctx) // so that an error does not end the transaction
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, nested.Rollback(ctx)) }()
	if amcheck != "" {
		_, err = nested.Exec(ctx, `SELECT `+pgx.Identifier{amcheck, "bt_index_check"}.Sanitize()+`($1::text::regclass, true)`, x.name)
		var failure *pgconn.PgError
		if !errors.As(err, &failure) || failure.Code != "42501" { // without the right to use amcheck, compare instead
			return x.complain(err)
		}
		if nested, err = again(ctx, tx, nested); err != nil {
			return "", err
		}
	}
	table, err := x.sum(ctx, nested, true)
	if err != nil {
		return x.complain(err)
	}
	own, err := x.sum(ctx, nested, false)
	if err != nil {
		return x.complain(err)
	}
	if own != table {
		return fmt.Sprintf("the index %s has %d rows where the table has %d, or others: rebuild it with REINDEX", x.name, own.rows, table.rows), nil
	}
	return "", nil
}

func again(ctx context.Context, tx, nested pgx.Tx) (pgx.Tx, error) {
	if err := nested.Rollback(ctx); err != nil {
		return nil, err
	}
	return tx.Begin(ctx)
}

// complain returns a complaint if the server's error reports damage, and otherwise the error.
func (x *index) complain(err error) (string, error) {
	if errors.Is(translate(err), storage.ErrDamaged) {
		return fmt.Sprintf("the index %s: %v", x.name, err), nil
	}
	return "", err
}

// A sum identifies the rows that were read, and their order.
type sum struct {
	rows int64
	hash int64
}

// sum reads all rows in the order of the index: sorted from the table, or through the index.
func (x *index) sum(ctx context.Context, tx pgx.Tx, fromTable bool) (s sum, err error) {
	for _, setting := range []string{"enable_seqscan", "enable_sort"} {
		if _, err := tx.Exec(ctx, `SELECT set_config($1, $2, true)`, setting, onOff(fromTable)); err != nil {
			return s, err
		}
	}
	for _, setting := range []string{"enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"} {
		on := !fromTable && setting == "enable_indexscan"
		if _, err := tx.Exec(ctx, `SELECT set_config($1, $2, true)`, setting, onOff(on)); err != nil {
			return s, err
		}
	}
	// QueryExecModeExec plans the statement anew each time. A prepared statement without parameters keeps its first
	// plan.
	err = tx.QueryRow(ctx, `SELECT count(*), coalesce(bit_xor(hashtextextended(r::text, n)), 0) FROM
		(SELECT idx AS r, row_number() OVER () AS n FROM (SELECT idx FROM `+x.table+` WHERE `+x.where+` ORDER BY `+x.fields+`) rows) numbered`, pgx.QueryExecModeExec).Scan(&s.rows, &s.hash)
	return s, err
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
