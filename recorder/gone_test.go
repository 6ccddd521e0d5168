package recorder_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"jurat/internal/installation"
	"jurat/internal/must"
	"jurat/recorder"
)

// TestFolderGone: while a recorder runs, its data folder or a file in it is removed, renamed or replaced. Nothing that is written then would be found again. In closed mode no answer passes whole; in open mode
// all pass, and Close says that they are in no log. Where everything is put back, calls pass again, and the log has each once.
func TestFolderGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the system lets nobody remove or rename files that are open")
	}
	for name, trouble := range map[string]struct {
		cause func(t *testing.T, folder string)
		undo  func(t *testing.T, folder string) // nil: the recorder cannot go on
	}{
		"the folder is removed": {func(t *testing.T, folder string) {
			must.Do(t, os.Rename(real(t, folder), folder+".away")) // the recorder writes there while it is removed
			must.Do(t, os.RemoveAll(folder+".away"))
		}, nil},
		"the folder is renamed": {func(t *testing.T, folder string) { must.Do(t, os.Rename(real(t, folder), folder+".away")) },
			func(t *testing.T, folder string) { must.Do(t, os.Rename(folder+".away", folder+".real")) }},
		"a copy is in the folder's place": {func(t *testing.T, folder string) {
			must.Do(t, os.CopyFS(folder+".copy", os.DirFS(real(t, folder))))
			must.Do(t, os.Rename(real(t, folder), folder+".away"))
			must.Do(t, os.Rename(folder+".copy", folder+".real"))
		}, func(t *testing.T, folder string) {
			must.Do(t, os.Rename(folder+".real", folder+".copy"))
			must.Do(t, os.Rename(folder+".away", folder+".real"))
		}},
		"a symbolic link leads to a copy": {func(t *testing.T, folder string) {
			must.Do(t, os.CopyFS(folder+".copy", os.DirFS(real(t, folder))))
			must.Do(t, os.Symlink(folder+".copy", folder+".new"))
			must.Do(t, os.Rename(folder+".new", folder))
		}, func(t *testing.T, folder string) {
			must.Do(t, os.Symlink(folder+".real", folder+".new"))
			must.Do(t, os.Rename(folder+".new", folder))
		}},
		"the database is removed": {func(t *testing.T, folder string) { must.Do(t, os.Remove(filepath.Join(folder, "jurat.db"))) }, nil},
		"a copy is in the database's place": {func(t *testing.T, folder string) {
			db := filepath.Join(folder, "jurat.db")
			text, err := os.ReadFile(db)
			must.Do(t, err)
			must.Do(t, os.Rename(db, db+".away"))
			must.Do(t, os.WriteFile(db, text, 0o600))
		}, func(t *testing.T, folder string) {
			db := filepath.Join(folder, "jurat.db")
			must.Do(t, os.Rename(db+".away", db))
		}},
		"the write-ahead log is removed": {func(t *testing.T, folder string) { must.Do(t, os.Remove(filepath.Join(folder, "jurat.db-wal"))) }, nil},
		"the recorders' folder is removed": {func(t *testing.T, folder string) {
			must.Do(t, os.Rename(filepath.Join(folder, "recorder"), folder+".own"))
		},
			func(t *testing.T, folder string) {
				must.Do(t, os.RemoveAll(filepath.Join(folder, "recorder")))
				must.Do(t, os.Rename(folder+".own", filepath.Join(folder, "recorder")))
			}},
	} {
		for _, mode := range []recorder.Mode{recorder.Closed, recorder.Passing} {
			t.Run(name+", "+string(mode), func(t *testing.T) {
				t.Parallel()
				folder := filepath.Join(t.TempDir(), "data")
				must.Do(t, os.Mkdir(folder+".real", 0o700))
				must.Do(t, os.Symlink(folder+".real", folder))
				g := newGate(t, recorder.Options{Folder: folder, Mode: mode})
				if _, whole := g.ask("before"); !whole {
					t.Fatal("no call passes")
				}
				trouble.cause(t, folder)
				g.troubled("while it is gone")
				if trouble.undo != nil {
					trouble.undo(t, folder)
					g.recovers("after")
					g.end()
					g.check(installation.Config{Dir: folder})
					return
				}
				g.server.Close()
				if err := g.recorder.Close(context.WithoutCancel(t.Context())); err == nil {
					t.Error("Close does not say that calls are in no log")
				}
			})
		}
	}
}

// real returns the folder to which a symbolic link leads.
func real(t *testing.T, folder string) string {
	t.Helper()
	return must.Get(filepath.EvalSymlinks(folder))(t)
}
