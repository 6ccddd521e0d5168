package queue

import (
	"context"
	"log/slog"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

// A Database stores jobs. It is safe for concurrent use, also by several processes.
type Database struct {
	dialect Dialect
	exec    riverdriver.Executor
	client  func(*river.Config) (client, error)
}

// A Dialect holds what River's driver does not say of a database.
type Dialect struct {
	Schema string // the schema of River's tables; "": the default schema
	Trial  string // SQL expression for the trial of a job
	// Number returns the only number in the answer to a query, in which $1 stands for arg.
	Number func(ctx context.Context, query string, arg int64) (int64, error)
	// Explain wraps an error of the database in one that says its meaning; nil: errors are passed on.
	Explain func(error) error
	// Close closes the connections that were opened for the jobs.
	Close func() error
}

// NewDatabase returns the database of a driver, after Migrate.
func NewDatabase[T any](driver riverdriver.Driver[T], d Dialect) *Database {
	return &Database{dialect: d, exec: driver.GetExecutor(), client: func(c *river.Config) (client, error) { return river.NewClient(driver, c) }}
}

// Close closes the connections that were opened for the jobs. Its errors are those of closing them.
func (d *Database) Close() error { return d.dialect.Close() }

// A client is the part of a river.Client that is used here. The type of river.Client depends on the database.
type client interface {
	Start(context.Context) error
	Stop(context.Context) error
	InsertMany(context.Context, []river.InsertManyParams) ([]*rivertype.JobInsertResult, error)
	JobList(context.Context, *river.JobListParams) (*river.JobListResult, error)
	JobDelete(context.Context, int64) (*rivertype.JobRow, error)
}

// Migrate makes River's tables in a schema ("": the default one), or brings them up to date. It passes on the errors
// of the database.
func Migrate[T any](ctx context.Context, driver riverdriver.Driver[T], schema string) error {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
