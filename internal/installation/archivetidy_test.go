package installation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"jurat/internal/archive"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
)

// strays returns the files in the archive folder that the database does not name.
func strays(t *testing.T, i *installation.Installation) (names []string) {
	t.Helper()
	list, err := i.Archivist.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.Stray {
			names = append(names, f.File)
		}
	}
	return names
}

// leaveStray interrupts a run after it has written a file.
func leaveStray(t *testing.T, i *installation.Installation) string {
	t.Helper()
	if !crash(i, 1, func() { i.Archivist.Archive(t.Context(), tomorrow()) }) {
		t.Fatal("no file was written")
	}
	i.After(func(string) {})
	left := strays(t, i)
	if len(left) != 1 {
		t.Fatalf("it left %v", left)
	}
	return left[0]
}

// TestTidyArchives sets aside the files of an interrupted run. The next run archives the same records.
func TestTidyArchives(t *testing.T) {
	c, _ := made(t)
	i := open(t, c)
	sealMany(t, i, storage.TileWidth)
	left := leaveStray(t, i)
	if done, err := i.Archivist.Tidy(t.Context(), true); err != nil || !slices.Equal(done.SetAside, []string{left}) || len(strays(t, i)) != 1 {
		t.Errorf("dry run: %+v, %v", done, err)
	}
	if done, err := i.Archivist.Tidy(t.Context(), false); err != nil || !slices.Equal(done.SetAside, []string{left}) || len(strays(t, i)) != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := os.Stat(filepath.Join(i.Archivist.Folder.Path("aside"), left)); err != nil {
		t.Error(err)
	}
	wantWhole(t, c)
	if _, err := i.Archivist.Archive(t.Context(), tomorrow()); err != nil {
		t.Fatal(err)
	}
	if done, err := i.Archivist.Tidy(t.Context(), false); err != nil || len(done.SetAside)+len(done.Kept) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
	wantWhole(t, c)
}

// TestTidyDrafts sets aside unfinished files that no process writes any longer, and keeps those that one may be writing.
func TestTidyDrafts(t *testing.T) {
	c, _ := made(t)
	i := open(t, c)
	sealMany(t, i, storage.TileWidth)
	if _, err := i.Archivist.Archive(t.Context(), tomorrow()); err != nil {
		t.Fatal(err)
	}
	old, young := i.Archivist.Folder.Path(".new-1"), i.Archivist.Folder.Path(".new-2")
	for _, path := range []string{old, young} {
		if err := os.WriteFile(path, []byte("half of"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	twoDaysAgo := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(old, twoDaysAgo, twoDaysAgo); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		if done, err := i.Archivist.Tidy(t.Context(), dryRun); err != nil || !slices.Equal(done.SetAside, []string{".new-1"}) {
			t.Errorf("dry run %v: %+v, %v", dryRun, done, err)
		}
		if _, err := os.Stat(old); (err == nil) != dryRun {
			t.Errorf("dry run %v: %v", dryRun, err)
		}
	}
	for _, path := range []string{young, filepath.Join(i.Archivist.Folder.Path("aside"), ".new-1")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	wantWhole(t, c)
}

// TestTidyWhileArchiving: tidying never removes a file that a run has just written, here or on another machine. No run writes during
// tidying.
func TestTidyWhileArchiving(t *testing.T) {
	folder, _ := made(t)
	machine := machines(t)
	shared, archives := machine(), t.TempDir()
	shared.Archives = archives
	if err := installation.Create(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	second := machine()
	second.Archives = archives
	for name, c := range map[string][2]installation.Config{"a folder": {folder, folder}, "a database": {shared, second}} {
		t.Run(name, func(t *testing.T) {
			one, other := open(t, c[0]), open(t, c[1])
			sealMany(t, one, storage.TileWidth)
			written, goOn, archived := make(chan struct{}), make(chan struct{}), make(chan error)
			one.After(func(step string) {
				if step == "archive written" {
					close(written)
					<-goOn
				}
			})
			go func() {
				_, err := one.Archivist.Archive(context.Background(), tomorrow())
				archived <- err
			}()
			<-written
			for _, i := range []*installation.Installation{one, other} {
				if done, err := i.Archivist.Tidy(t.Context(), false); !errors.Is(err, archive.ErrArchiving) || len(strays(t, i)) != 1 {
					t.Errorf("%+v, %v", done, err)
				}
			}
			close(goOn)
			if err := <-archived; err != nil {
				t.Fatal(err)
			}
			if done, err := other.Archivist.Tidy(t.Context(), false); err != nil || len(done.SetAside) > 0 {
				t.Errorf("%+v, %v", done, err)
			}
			wantWhole(t, c[0])
		})
	}
}

// TestTidyKeeps: tidying keeps what may be the only copy.
func TestTidyKeeps(t *testing.T) {
	c, _ := made(t)
	i := open(t, c)
	sealMany(t, i, storage.TileWidth)
	left := leaveStray(t, i)
	doc := must(os.ReadFile(i.Archivist.Folder.Path(left)))

	another, _ := made(t)
	j := open(t, another)
	if err := os.MkdirAll(filepath.Dir(j.Archivist.Folder.Path(left)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(j.Archivist.Folder.Path(left), doc, 0o600); err != nil {
		t.Fatal(err)
	}
	if done, err := j.Archivist.Tidy(t.Context(), false); err != nil || len(done.SetAside) > 0 || len(done.Kept) != 1 {
		t.Errorf("of another log: %+v, %v", done, err)
	}
	if err := os.WriteFile(i.Archivist.Folder.Path(left), doc[:len(doc)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if done, err := i.Archivist.Tidy(t.Context(), false); err != nil || len(done.SetAside) > 0 || len(done.Kept) != 1 {
		t.Errorf("damaged: %+v, %v", done, err)
	}
}

// TestTidyKeepsWhatAnActNames: an interrupted deletion is finished. Its files are not removed before that.
func TestTidyKeepsWhatAnActNames(t *testing.T) {
	_, i, alone, _, _ := aYearAgo(t)
	if !crash(i, 2, func() { i.Archivist.Expire(t.Context(), expireOrder()) }) { // after the steps "written" and "sealed"
		t.Fatal("nothing was deleted")
	}
	i.After(func(string) {})
	if done, err := i.Archivist.Tidy(t.Context(), false); err != nil || len(done.SetAside) > 0 || len(done.Kept) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err := i.Archivist.Expire(t.Context(), expireOrder()); err != nil || done.Finished != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	wantExpired(t, i, alone)
	files, err := i.Ledger.Archives(t.Context())
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	// While an archive that the log needs is missing, stray files may be the only copy.
	if err := os.Rename(i.Archivist.Folder.Path(files[0].File), i.Archivist.Folder.Path(files[0].File)+".away"); err != nil {
		t.Fatal(err)
	}
	if done, err := i.Archivist.Tidy(t.Context(), false); !errors.Is(err, ledger.ErrArchive) {
		t.Errorf("%+v, %v", done, err)
	}
}
