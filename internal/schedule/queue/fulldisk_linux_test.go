package queue_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"jurat/internal/disktest"
	"jurat/internal/schedule/queue"
)

// TestFullDisk checks that adding a job on a full disk returns ErrNoSpace, and works again with room.
func TestFullDisk(t *testing.T) {
	disktest.Run(t, 8, func(disk *disktest.Disk) {
		db, err := queue.SQLite(t.Context(), filepath.Join(disk.Path, "jobs.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		q := newQueue(t, queue.Config{Database: db, Work: (&worked{}).work})
		add(t, q, "trial-before")
		filler := filepath.Join(disk.Path, "filler")
		disk.Fill(t, filler)
		for n := 0; err == nil; n++ {
			if n == 10_000 {
				t.Fatal("the disk does not become full")
			}
			err = q.Add(t.Context(), fmt.Sprint("trial-", n))
		}
		if !errors.Is(err, queue.ErrNoSpace) {
			t.Errorf("adding: %v", err)
		}
		jobOf(t, q, "trial-before")
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		add(t, q, "trial-after")
	})
}
