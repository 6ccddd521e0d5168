package installation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/archive"
	"jurat/internal/backup"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/storage"
	"jurat/internal/stamping"
	"jurat/jurattest"
)

// sealMany seals records. Every tenth is in a chain.
func sealMany(t testing.TB, i *installation.Installation, n int) {
	t.Helper()
	signers, err := i.Keys.Signers(t.Context(), evidence.RoleAgent, "courier")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for k := range 32 {
		wg.Go(func() {
			for m := k; m < n; m += 32 {
				text := fmt.Sprintf(`{"agent_id":"courier","request_id":"r-%d","timestamp":"2024-01-31T16:15:00Z","model":"m","model_version":"1","prompt":%q,"response":"r","parameters":{}}`,
					m, strings.Repeat("May I send the parcel? ", 20))
				d, err := evidence.ParseDraft([]byte(text))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := i.Ledger.Seal(context.Background(), d, signers); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// contents returns every record of a log, as files.
func contents(t testing.TB, i *installation.Installation) (all []string) {
	t.Helper()
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		doc, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d %s", r.Index, doc))
	}
	return all
}

func entries(t testing.TB, i *installation.Installation) (all []string) {
	t.Helper()
	size, err := i.Ledger.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range i.Ledger.Entries(t.Context(), 0, size) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(e))
	}
	return all
}

func tomorrow() archive.Order {
	return archive.Order{Before: time.Now().AddDate(0, 0, 1)}
}

// wantWholeButStrays checks a log, but accepts stray files of an interrupted run, or of a run that another overtook:
// they do no harm.
func wantWholeButStrays(t *testing.T, c installation.Config) {
	t.Helper()
	damages, _, err := installation.Fsck(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range damages {
		if d.Kind != fsck.DamageStray {
			t.Errorf("damage: %v", d)
		}
	}
}

// TestArchive archives complete ranges. Every record must read as before.
func TestArchive(t *testing.T) {
	c, _ := made(t)
	i := open(t, c)
	i.Archivist.Most = 2 * storage.TileWidth
	sealMany(t, i, 3*storage.TileWidth+20)
	before, hashed := contents(t, i), entries(t, i)

	done, err := i.Archivist.Archive(t.Context(), archive.Order{Before: time.Now().AddDate(0, 0, -1)})
	if err != nil || len(done.Files) > 0 || !strings.Contains(done.Stops, "record 0 ") {
		t.Errorf("what is younger: %+v, %v", done, err)
	}
	dry := tomorrow()
	dry.DryRun = true
	done, err = i.Archivist.Archive(t.Context(), dry)
	if err != nil || len(done.Files) > 0 || done.To != 3*storage.TileWidth {
		t.Errorf("dry run: %+v, %v", done, err)
	}
	done, err = i.Archivist.Archive(t.Context(), tomorrow())
	if err != nil || len(done.Files) != 2 || done.To != 3*storage.TileWidth || done.Shed != 3*storage.TileWidth || done.Files[1].From != 2*storage.TileWidth {
		t.Errorf("%+v, %v", done, err)
	}
	if again, err := i.Archivist.Archive(t.Context(), tomorrow()); err != nil || len(again.Files) > 0 || again.Shed > 0 || again.From != done.To {
		t.Errorf("again: %+v, %v", again, err)
	}
	if rows, err := i.Ledger.KeptRows(t.Context(), 3, 1); err != nil || !rows[0].HasShed() || len(rows[0].Timestamps) > 0 {
		t.Errorf("the database has kept %+v, %v", rows, err)
	}
	if diff := cmp.Diff(before, contents(t, i)); diff != "" {
		t.Errorf("records (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(hashed, entries(t, i)); diff != "" {
		t.Errorf("entries (-before +after):\n%s", diff)
	}
	for r, err := range i.Ledger.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Index%97 == 0 {
			wantProved(t, i, r.Record)
		}
	}
	wantWhole(t, c)
	list, err := i.Archivist.List(t.Context())
	if err != nil || len(list) != 2 || list[0].Problem != "" || list[0].Bytes == 0 || list[0].Stray {
		t.Errorf("Archives = %+v, %v", list, err)
	}
}

// TestArchiveKeepsLaterStamps renews time stamps of archived records. The new ones are in the database, and come after
// the archived ones.
func TestArchiveKeepsLaterStamps(t *testing.T) {
	c, _ := withOutside(t)
	i := open(t, c)
	sealMany(t, i, storage.TileWidth)
	if _, err := i.Archivist.Archive(t.Context(), tomorrow()); err != nil {
		t.Fatal(err)
	}
	rows, err := i.Ledger.RowsFrom(t.Context(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r := renew(t, i, stamping.RenewConfig{TSA: stamping.BuiltIn}); r.Records == 0 {
		t.Fatalf("%+v", r)
	}
	after, err := i.Ledger.RowsFrom(t.Context(), 0, 1)
	if err != nil || len(after[0].Timestamps) != len(rows[0].Timestamps)+1 || after[0].Timestamps[0].Kind != evidence.RFC3161 {
		t.Errorf("%d time stamps, %v; before %d", len(after[0].Timestamps), err, len(rows[0].Timestamps))
	}
	kept, err := i.Ledger.KeptRows(t.Context(), 0, 1)
	if err != nil || len(kept[0].Timestamps) != 1 || !kept[0].HasShed() {
		t.Errorf("the database has %+v, %v", kept, err)
	}
	wantWhole(t, c)
}

// TestArchiveStopsAtWaiting does not archive a record that waits for an authority, nor the records after it.
func TestArchiveStopsAtWaiting(t *testing.T) {
	c, tsa := withOutside(t)
	tsa.Be(jurattest.Refuses)
	i := open(t, c)
	sealMany(t, i, storage.TileWidth+1)
	done, err := i.Archivist.Archive(t.Context(), tomorrow())
	if err != nil || len(done.Files) > 0 || !strings.Contains(done.Stops, "waits for a time stamp") {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestArchiveMissing removes a file. Reading one of its records gives an error that names the file, never "not found".
// Sealing and a restart still work, and fsck names the file once. When the file is back, everything is as before.
func TestArchiveMissing(t *testing.T) {
	c, first := made(t)
	i := open(t, c)
	sealMany(t, i, storage.TileWidth-1)
	done, err := i.Archivist.Archive(t.Context(), tomorrow())
	if err != nil || len(done.Files) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	file := i.Archivist.Folder.Path(done.Files[0].File)
	doc := must(os.ReadFile(file))
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() error{
		"missing": func() error { return os.Remove(file) },
		"cut off": func() error { return os.WriteFile(file, doc[:len(doc)-1], 0o600) },
		"a flipped": func() error {
			bad := append([]byte{}, doc...)
			bad[len(bad)/3] ^= 1
			return os.WriteFile(file, bad, 0o600)
		},
		"empty": func() error { return os.WriteFile(file, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, doc, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			i := open(t, c)
			var failed error
			for _, err := range i.Ledger.Records(t.Context(), 0) {
				failed = errors.Join(failed, err)
			}
			if !errors.Is(failed, ledger.ErrArchive) || !strings.Contains(failed.Error(), done.Files[0].File) || errors.Is(failed, ledger.ErrNotFound) {
				t.Errorf("reading: %v", failed)
			}
			seal(t, i)
			if _, err := i.Ledger.Checkpoint(t.Context()); err != nil {
				t.Errorf("checkpoint: %v", err)
			}
			damages, _, err := installation.Fsck(t.Context(), c, nil)
			if err != nil || len(damages) == 0 {
				t.Errorf("fsck: %v, %v", damages, err)
			}
			for _, d := range damages {
				if d.Kind != fsck.DamageArchive || !strings.Contains(d.Detail, done.Files[0].File) {
					t.Errorf("fsck: %v", d)
				}
			}
		})
	}
	if err := os.WriteFile(file, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	i = open(t, c)
	if _, err := i.Ledger.Record(t.Context(), first.Payload.RecordID); err != nil {
		t.Error(err)
	}
	wantWhole(t, c)
}

// TestArchiveCrash crashes after each step, and continues. Every record can be read at every point, and the end is the
// same.
func TestArchiveCrash(t *testing.T) {
	c, _ := made(t)
	i := open(t, c)
	i.Archivist.Most = storage.TileWidth
	sealMany(t, i, 2*storage.TileWidth)
	before := contents(t, i)
	for n := 1; ; n++ {
		var err error
		crashed := crash(i, n, func() { _, err = i.Archivist.Archive(t.Context(), tomorrow()) })
		if err != nil {
			t.Fatal(err)
		}
		i.After(func(string) {})
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
		i = open(t, c)
		i.Archivist.Most = storage.TileWidth
		if diff := cmp.Diff(before, contents(t, i)); diff != "" {
			t.Errorf("after %d steps (-before +after):\n%s", n, diff)
		}
		damages, _, err := installation.Fsck(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range damages {
			if d.Kind != fsck.DamageStray {
				t.Errorf("after %d steps: %v", n, d)
			}
		}
		if !crashed {
			break
		}
	}
	done, err := i.Ledger.Archives(t.Context())
	if err != nil || len(done) != 2 || !done[0].Shed || !done[1].Shed {
		t.Errorf("%+v, %v", done, err)
	}
	wantWholeButStrays(t, c)
}

// archiverFolder, if set, makes this test binary a process that archives that folder and kills itself after a step.
const archiverFolder = "JURAT_TEST_ARCHIVE"

func archiveAndDie(dir, step string) error {
	i, err := installation.Open(context.Background(), installation.Config{Dir: dir})
	if err != nil {
		return err
	}
	i.After(func(done string) {
		if done == step {
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				panic(err)
			}
			if err := self.Kill(); err != nil {
				panic(err)
			}
			select {}
		}
	})
	if _, err := i.Archivist.Archive(context.Background(), tomorrow()); err != nil {
		return err
	}
	return errors.New("it was not killed")
}

// TestArchiveKilled kills processes that archive, two at a time, while others seal.
func TestArchiveKilled(t *testing.T) {
	c, _ := made(t)
	i := open(t, c)
	sealMany(t, i, 2*storage.TileWidth)
	for _, step := range []string{"archive written", "archive noted", "tile shed", "archive done"} {
		sealMany(t, i, storage.TileWidth) // the last two may have left work at every step
		var children []*exec.Cmd
		for range 2 {
			child := exec.CommandContext(t.Context(), must(os.Executable()))
			child.Env = append(os.Environ(), archiverFolder+"="+c.Dir, "JURAT_TEST_STEP="+step)
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
		sealMany(t, i, storage.TileWidth/2)
		killed := 0
		for _, child := range children {
			if err := child.Wait(); err == nil {
				t.Error("a process ended by itself")
			}
			if !child.ProcessState.Exited() {
				killed++
			}
		}
		if killed == 0 {
			t.Errorf("no process was killed after %q", step)
		}
		size, err := i.Ledger.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(len(contents(t, i))); got != size {
			t.Errorf("after %q %d records can be read of %d", step, got, size)
		}
	}
	if _, err := i.Archivist.Archive(t.Context(), tomorrow()); err != nil {
		t.Fatal(err)
	}
	files, err := i.Ledger.Archives(t.Context())
	if err != nil || len(files) == 0 || files[len(files)-1].To != 8*storage.TileWidth {
		t.Errorf("%+v, %v", files, err)
	}
	wantWholeButStrays(t, c)
}

// TestArchiveTwice archives several times at once, in one process and in two that opened the same folder, while records
// are sealed.
func TestArchiveTwice(t *testing.T) {
	c, _ := made(t)
	i, other := open(t, c), open(t, c)
	i.Archivist.Most, other.Archivist.Most = storage.TileWidth, storage.TileWidth
	sealMany(t, i, 3*storage.TileWidth)
	var wg sync.WaitGroup
	for _, one := range []*installation.Installation{i, other, i} {
		wg.Go(func() {
			if _, err := one.Archivist.Archive(context.Background(), tomorrow()); err != nil {
				t.Error(err)
			}
		})
	}
	sealMany(t, other, 50)
	wg.Wait()
	files, err := i.Ledger.Archives(t.Context())
	if err != nil || len(files) != 3 {
		t.Errorf("%+v, %v", files, err)
	}
	wantWholeButStrays(t, c)
}

// TestArchiveBackup copies and restores an installation with archives, and refuses a copy that lacks one.
func TestArchiveBackup(t *testing.T) {
	c, _ := made(t)
	i := open(t, c)
	sealMany(t, i, storage.TileWidth)
	if _, err := i.Archivist.Archive(t.Context(), tomorrow()); err != nil {
		t.Fatal(err)
	}
	before := contents(t, i)
	copied := filepath.Join(t.TempDir(), "copy")
	if _, err := backup.Make(t.Context(), c, backup.Order{To: copied}); err != nil {
		t.Fatal(err)
	}
	restored := installation.Config{Dir: filepath.Join(t.TempDir(), "restored")}
	if _, err := backup.Restore(t.Context(), restored, backup.RestoreOrder{From: copied, NoneLater: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, contents(t, open(t, restored))); diff != "" {
		t.Errorf("-copied +restored:\n%s", diff)
	}
	files, err := i.Ledger.Archives(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(i.Archivist.Folder.Path(files[0].File)); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Make(t.Context(), c, backup.Order{To: filepath.Join(t.TempDir(), "lacking")}); err == nil || !strings.Contains(err.Error(), files[0].File) {
		t.Errorf("a backup that lacks an archive file: %v", err)
	}
}
