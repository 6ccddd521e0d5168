package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"jurat/internal/ledger/storage"
)

// Snapshot calls f with the log as it is at one moment, whatever is appended, stamped or signed meanwhile: everything that f reads it
// reads in one transaction. It can only read, one thing after the other, and keeps nobody from writing; but the server cleans up
// nothing that was replaced since, as long as f lasts.
func (s *Store) Snapshot(ctx context.Context, f func(storage.Store) error) error {
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// However long whoever reads takes between two questions, and whatever the server allows others.
		if _, err := tx.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true)`); err != nil {
			return err
		}
		frozen := newStore(s.pool)
		frozen.reads = tx
		defer frozen.Close()
		return f(frozen)
	})
	if err != nil {
		return fmt.Errorf("reading the log as of one moment: %w", translate(err))
	}
	return nil
}
