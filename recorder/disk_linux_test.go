package recorder_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/disktest"
	"jurat/internal/installation"
	"jurat/internal/must"
	"jurat/recorder"
)

// onFullDisk fills the disk under a recorder, twice, and makes room again.
func onFullDisk(t *testing.T, mode recorder.Mode) {
	disktest.Run(t, 24, func(disk *disktest.Disk) {
		folder, filling := filepath.Join(disk.Path, "data"), filepath.Join(disk.Path, "filling")
		g := newGate(t, recorder.Options{Folder: folder, Mode: mode})
		g.padding = strings.Repeat(" indeed", 20_000)
		if _, whole := g.ask("before"); !whole {
			t.Fatal("no call passes")
		}
		for _, round := range []string{"first", "second"} {
			disk.Fill(t, filling)
			g.troubled(round)
			must.Do(t, os.Remove(filling))
			g.recovers(round + " again")
		}
		g.end()
		g.check(installation.Config{Dir: folder})
	})
}

// TestClosedOnFullDisk: on a full disk no client gets the end of an unsealed call, and new calls are refused. With free space calls pass again, and the log has each call once.
func TestClosedOnFullDisk(t *testing.T) { onFullDisk(t, recorder.Closed) }

// TestPassingOnFullDisk: on a full disk all calls of open mode pass. With free space each is in the log, or counted as missed.
func TestPassingOnFullDisk(t *testing.T) { onFullDisk(t, recorder.Passing) }
