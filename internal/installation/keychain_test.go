package installation_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
)

// TestContradictoryKeyChain: an installation whose log contradicts itself about keys does not open, since it is unclear who may sign. It
// can still be examined.
func TestContradictoryKeyChain(t *testing.T) {
	c, i := anew(t)
	for _, name := range []string{"b", "c"} {
		_, key := ownKey(t, false)
		succeeds(t, i.Registrar.Register(t.Context(), evidence.RoleAgent, name, []keys.OwnerKey{key}, time.Time{}, because))
	}
	for range 20 { // beyond what opening the log reads
		sealQuickly(t, i)
	}
	succeeds(t, i.Close())
	db := must(sql.Open("sqlite", filepath.Join(c.Dir, "jurat.db")))
	defer db.Close()
	for _, statement := range []string{`DROP TRIGGER records_stay`, `DELETE FROM records WHERE idx = 0`} {
		must(db.ExecContext(t.Context(), statement))
	}
	wantError(t, "opened", ledger.ErrDamaged, errorOf(installation.Open(t.Context(), c)))
	finds(t, c, fsck.DamageKeyEvents)
	finds(t, c, fsck.DamageMissingRow)
}
