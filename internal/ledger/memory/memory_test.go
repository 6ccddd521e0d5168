package memory_test

import (
	"testing"

	"jurat/internal/ledger/memory"
	"jurat/internal/ledger/storage"
	"jurat/internal/ledger/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storage.Store { return memory.New() })
}
