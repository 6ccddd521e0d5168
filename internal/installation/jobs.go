package installation

import (
	"context"
	"fmt"
	"path/filepath"

	"jurat/internal/schedule"
)

// jobsSchema is the schema of the queue in a shared database. The ledger's tables are in another schema.
const jobsSchema = "jurat_jobs"

// Jobs opens the queue of trials: in the shared database, or in a file of its own on one machine. The queue is polled often, and a file of
// its own keeps that away from writers of the ledger. The ledger can rebuild a queue that is lost.
func (i *Installation) Jobs(ctx context.Context) (*schedule.Database, error) {
	if i.pool != nil {
		return schedule.Postgres(ctx, i.pool, jobsSchema)
	}
	if err := i.Ledger.ReadOnly(); err != nil {
		return nil, fmt.Errorf("holding trials: %w", err)
	}
	return schedule.SQLite(ctx, filepath.Join(i.Dir, jobsFile))
}
