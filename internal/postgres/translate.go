package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"jurat/internal/ledger/storage"
)

// isBroken reports whether an error is about the connection, not an answer of the store.
func isBroken(err error) bool {
	return isCut(err) && !errors.Is(err, storage.ErrDamaged) && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrClosed)
}

// translate replaces PostgreSQL's errors by those of package storage and of this package.
func translate(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return storage.ErrNotFound
	}
	var failure *pgconn.PgError
	if !errors.As(err, &failure) {
		return Explain(err)
	}
	meaning := map[string]error{
		"23505": storage.ErrNotUnique,
		"53100": storage.ErrDiskFull,
		"25006": storage.ErrReadOnly, // a standby, or default_transaction_read_only
		"XX001": storage.ErrDamaged,
		"XX002": storage.ErrDamaged,
		"42P01": ErrNoTables, // or these tables do not exist
		"3F000": ErrNoTables,
	}[failure.Code]
	if meaning == nil || errors.Is(err, meaning) {
		return Explain(err)
	}
	return fmt.Errorf("%w: %w", meaning, err)
}
