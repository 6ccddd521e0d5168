package memory_test

import (
	"testing"

	"jurat/internal/ledger/memory"
	"jurat/internal/ledger/storage"
	"jurat/internal/storetest"
)

func TestStore(t *testing.T) {
	storetest.Log(t, func(*testing.T) storage.Store { return memory.New() })
}
