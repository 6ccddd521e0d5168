package queue

import (
	"context"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
)

const (
	Name        = inQueue
	StartLease  = startLease
	MostStopped = mostStopped
)

// Executor returns what the jobs of a database are stored with.
func Executor(d *Database) riverdriver.Executor { return d.exec }

// Schema returns the schema of River's tables.
func Schema(d *Database) string { return d.dialect.Schema }

// TakeOverAfter takes over abandoned jobs that were begun so long ago.
func (q *Queue) TakeOverAfter(ctx context.Context, after time.Duration) error {
	return q.takeOver(ctx, after, 0)
}

// Insert adds any job, also a malformed one.
func (q *Queue) Insert(ctx context.Context, args river.JobArgs) error {
	_, err := q.client.InsertMany(ctx, []river.InsertManyParams{{Args: args}})
	return err
}
