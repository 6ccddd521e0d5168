package installation

import (
	"context"
	"fmt"
	"path/filepath"

	"jurat/internal/postgres"
	"jurat/internal/schedule/queue"
)

// Jobs opens the queue of trials: in the shared database, or in a file of its own on one machine. The queue is polled
// often, and a file of its own keeps that away from writers of the ledger. The ledger can rebuild a queue that is
// lost. It returns ledger.ErrReadOnly, wrapped, if the ledger cannot be written, and the errors of queue.SQLite or
// postgres.Jobs.
func (i *Installation) Jobs(ctx context.Context) (*queue.Database, error) {
	if i.pool != nil {
		return postgres.Jobs(ctx, i.pool)
	}
	if err := i.Ledger.ReadOnly(); err != nil {
		return nil, fmt.Errorf("holding trials: %w", err)
	}
	return queue.SQLite(ctx, filepath.Join(i.Dir, jobsFile))
}
