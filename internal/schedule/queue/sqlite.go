package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
	sqlite3 "modernc.org/sqlite/lib"

	"jurat/internal/sqlitefile"
)

// SQLite opens or makes a file for the processes of one machine. For the path "" it makes a database that only this
// process uses and that ends with it.
//
// A commit does not wait for the disk: after a crash of the machine, the last moments may be missing. They can be
// made again from the log. It passes on the errors of the file.
func SQLite(ctx context.Context, path string) (*Database, error) {
	d, err := openSQLite(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("opening the jobs in %s: %w", path, translate(err))
	}
	return d, nil
}

func openSQLite(ctx context.Context, path string) (*Database, error) {
	db, err := sqlitefile.Open(path, "synchronous(NORMAL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer: River's parallel calls wait here, instead of failing there
	driver := forgiving{riversqlite.New(db)}
	if err := migrateAgain(ctx, driver); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return NewDatabase(driver, Dialect{Trial: `json_extract(CAST(args AS TEXT), '$.trial')`, Close: db.Close,
		Number: func(ctx context.Context, query string, arg int64) (n int64, err error) {
			return n, db.QueryRowContext(ctx, strings.ReplaceAll(query, "$1", "?1"), arg).Scan(&n)
		}}), nil
}

// waitTime is how long a call to the database may take in all. One statement waits at most half as long for another
// process, and other calls of this process may come first.
const waitTime = 20 * time.Second

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, waitTime, ErrBusy)
}

// translate says what an error of the database means.
func (d *Database) translate(err error) error {
	if d.dialect.Explain != nil {
		err = d.dialect.Explain(err)
	}
	return translate(err)
}

// translate replaces SQLite's errors by ErrBusy and ErrNoSpace.
func translate(err error) error {
	switch code := sqlitefile.Code(err); {
	case code == sqlite3.SQLITE_BUSY, errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case code == sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// forgiving is River's driver for SQLite with a correction. If a job is gone when River stores its result, the driver
// drops the other jobs of the batch and returns a nil row, on which River panics.
type forgiving struct{ *riversqlite.Driver }

func (d forgiving) GetExecutor() riverdriver.Executor {
	return forgivingExecutor{d.Driver.GetExecutor()}
}

type forgivingExecutor struct{ riverdriver.Executor }

func (e forgivingExecutor) JobSetStateIfRunningMany(ctx context.Context, p *riverdriver.JobSetStateIfRunningManyParams) (rows []*rivertype.JobRow, err error) {
	for i := range p.ID {
		one, err := e.Executor.JobSetStateIfRunningMany(ctx, &riverdriver.JobSetStateIfRunningManyParams{ID: p.ID[i : i+1], Attempt: p.Attempt[i : i+1],
			ErrData: p.ErrData[i : i+1], FinalizedAt: p.FinalizedAt[i : i+1], MetadataDoMerge: p.MetadataDoMerge[i : i+1],
			MetadataUpdates: p.MetadataUpdates[i : i+1], Now: p.Now, ScheduledAt: p.ScheduledAt[i : i+1], Schema: p.Schema, State: p.State[i : i+1]})
		if err != nil {
			return nil, err
		}
		for _, row := range one {
			if row != nil {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// migrateAgain makes the tables. River uses several transactions for that, and SQLite has no lock that spans them. If
// two processes make the tables at once, one fails; at its next attempt it finds them.
func migrateAgain(ctx context.Context, driver riverdriver.Driver[*sql.Tx]) error {
	end := time.Now().Add(waitTime)
	var err error
	for range 20 {
		if err = Migrate(ctx, driver, ""); err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}
