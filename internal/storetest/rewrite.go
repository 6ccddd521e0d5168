package storetest

import (
	"fmt"

	"jurat/internal/ledger/storage"
)

// Content is the SQL that gives a record in SQLite this content, not compressed, as an attacker does who has the file:
// UPDATE records SET Content(row) WHERE idx = 4.
func Content(row *storage.Row) string {
	return fmt.Sprintf("dictionary = %d, stamps = %d, packed = x'%x'", storage.Plain, len(row.Timestamps), storage.Content(row))
}
