package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/log/lock"
)

// Stops reports whether a trial that is conducted here asks no more jurors.
func (d *Scheduler) Stops(id string) bool {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	s := d.queue.here[id]
	return s != nil && s.Err() != nil
}

// HoldReading delays reading the log for watchers of a trial until begin is called. read returns how many records were
// read for them.
func HoldReading(d *Scheduler, id string) (begin func(), read func() int) {
	s := d.join(id, nil)
	s.reading.Lock()
	return s.reading.Unlock, func() int {
		s.reading.Lock()
		defer s.reading.Unlock()
		return s.view.Records
	}
}

// tableAt opens the table in a file, or in the database at a URL.
func tableAt(ctx context.Context, where string) (*Table, func(), error) {
	if !strings.HasPrefix(where, "postgres") {
		table, err := OpenTable(ctx, nil, where)
		return table, func() { table.Close() }, err
	}
	pool, err := pgxpool.New(ctx, where)
	if err != nil {
		return nil, nil, err
	}
	table, err := OpenTable(ctx, pool, "")
	return table, pool.Close, err
}

// Hold works on the trials of a table until it is killed. It prints when it begins, and when it loses a trial.
func Hold(ctx context.Context, where string) error {
	table, _, err := tableAt(ctx, where)
	if err != nil {
		return err
	}
	q := newQueue(Config{Table: table, Lease: testLease}.complete(), func(ctx context.Context, trial string, _ <-chan struct{}) error {
		fmt.Println("begins", trial)
		<-ctx.Done()
		fmt.Println("loses", trial, errors.Is(context.Cause(ctx), lock.ErrLost))
		return final{errors.New("too late")}
	})
	if err := q.start(ctx, ctx); err != nil {
		return err
	}
	select {}
}

// testLease is the lease of processes that are killed in tests.
const testLease = 400 * time.Millisecond
