package installation

import (
	"context"
	"fmt"
	"path/filepath"

	"jurat/internal/schedule"
)

// jobsSchema is where the jobs are in a database that is shared: beside the ledger, and not among its tables.
const jobsSchema = "jurat_jobs"

// Jobs opens what says which trials are to be held: in the database that is shared, or on one machine in a file of its own, so that who looks
// for jobs again and again, and who leads, is never in the way of who appends to the ledger. Nothing is lost with it.
func (i *Installation) Jobs(ctx context.Context) (*schedule.Database, error) {
	if i.pool != nil {
		return schedule.Postgres(ctx, i.pool, jobsSchema)
	}
	if err := i.Ledger.ReadOnly(); err != nil {
		return nil, fmt.Errorf("holding trials: %w", err)
	}
	return schedule.SQLite(ctx, filepath.Join(i.Dir, jobsFile))
}
