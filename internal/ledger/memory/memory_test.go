package memory_test

import (
	"testing"

	"jurat/internal/ledger"
	"jurat/internal/ledger/memory"
	"jurat/internal/ledger/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) ledger.Store { return memory.New() })
}
