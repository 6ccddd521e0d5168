package schedule

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"jurat/internal/log/ledger"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// TestFullDisk checks that a full disk is named when a trial is queued, that the others can still be read, and that queueing works again with room.
func TestFullDisk(t *testing.T) {
	rig.OnDisk(t, 8, func(disk *rig.Disk) {
		q := openQueue(t, filepath.Join(disk.Path, "work.db"), &worked{}, Config{})
		put(t, q, none, "trial-before")
		filler := filepath.Join(disk.Path, "filler")
		disk.Fill(t, filler)
		var err error
		for n := 0; err == nil; n++ {
			must.Need(t, n != 10_000, "the disk does not become full")
			err = q.put(t.Context(), none, fmt.Sprint("trial-", n))
		}
		must.Want(t, err, ledger.ErrDiskFull)
		await(t, q, "trial-before", func(_ turn, has bool) bool { return has })
		must.Do(t, os.Remove(filler))
		put(t, q, none, "trial-after")
	})
}
