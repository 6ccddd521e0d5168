package sealer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// TestNothingTornStaysOnAFullDisk: of a call whose intent did not get room, nothing is in the file, and those before and after it are there whole.
func TestNothingTornStaysOnAFullDisk(t *testing.T) {
	rig.OnDisk(t, 1, func(disk *rig.Disk) {
		for _, durable := range []bool{true, false} {
			path := filepath.Join(disk.Path, fmt.Sprint("journal-", durable))
			j := must.Get(openJournal(path, func(string) {}))(t)
			var began []string
			for n := 0; ; n++ {
				id := fmt.Sprintf("%03d", n)
				if err := j.begin(t.Context(), &intent{RecordID: id, Path: strings.Repeat("x", 50_000)}, durable); err != nil {
					break
				}
				began = append(began, id)
			}
			must.Fail(t, nil)(readWhole(path))
			info, err := j.file.Stat()
			if err != nil || info.Size() != j.size || len(began) < 5 {
				t.Errorf("%d calls, %d bytes of whole lines in a file of %d, %v", len(began), j.size, info.Size(), err)
			}
			must.Say(t, j.repair(), "", "the journal is written anew on a disk without room for it")
			disk.Resize(t, 5)
			must.Do(t, j.repair())
			must.Do(t, j.begin(t.Context(), &intent{RecordID: "then"}, durable))
			left, err := readWhole(path)
			ids := idsOf(left)
			slices.Sort(ids)
			must.Hold(t, err == nil && slices.Equal(ids, append(began, "then")), "%v, %v; want %v and one more", ids, err, began)
			must.Fail(t, nil)(j.close())
			must.Do(t, os.Remove(path))
			disk.Resize(t, 1)
		}
	})
}
