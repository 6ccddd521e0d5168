package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"jurat/internal/ledger/storage"
)

// Snapshot calls f with the log as it is at one moment: everything that f reads comes from one transaction. f can
// only read, and must make one call at a time. Writers continue meanwhile, but the server keeps all replaced row
// versions until f returns.
func (s *Store) Snapshot(ctx context.Context, f func(storage.Store) error) error {
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// f may take any time between two reads, whatever limits the server sets for others.
		if _, err := tx.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true)`); err != nil {
			return err
		}
		frozen := newStore(s.pool)
		frozen.reads = tx
		defer frozen.Close()
		return f(frozen)
	})
	if err != nil {
		return fmt.Errorf("reading a snapshot of the log: %w", translate(err))
	}
	return nil
}
