package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/pgtest"
)

// TestEarlierDatabase: a database of an earlier program opens, is whole, and accepts records.
func TestEarlierDatabase(t *testing.T) {
	database := pgtest.Database(t)
	dir := t.TempDir()
	command := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	command("tar", "-xzf", filepath.Join(earlier(t), "database.tar.gz"), "-C", dir)
	command("psql", "--quiet", "--set=ON_ERROR_STOP=1", "--file="+filepath.Join(dir, "dump.sql"), database)
	data := filepath.Join(dir, "machine")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "checkpoint"), filepath.Join(data, "checkpoint")); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "wrapping.key")
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	jurat := func(want int, args ...string) string {
		t.Helper()
		return doing(t, want, append([]string{"--data", data, "--db", database, "--wrapping-key", key}, args...)...)
	}

	if out := jurat(0, "log", "fsck"); !strings.Contains(out, "the log is whole: 17 records") {
		t.Error(out)
	}
	if out := jurat(0, "log", "reindex"); !strings.Contains(out, "indexed: 17 records") {
		t.Error(out)
	}
	for _, file := range []string{"kitchen.jurat", "a.json", "apart.json"} {
		doing(t, 0, "verify", "--trust", filepath.Join(dir, "trust.json"), filepath.Join(dir, file))
	}
	again := filepath.Join(dir, "again.jurat")
	jurat(1, "trial", "../../examples/invoice-inbox", "--out", again)
	trust := filepath.Join(dir, "now.json")
	if err := os.WriteFile(trust, []byte(jurat(0, "trust")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	doing(t, 0, "verify", "--trust", trust, again)
	doing(t, 0, "verify", "--trust", trust, filepath.Join(dir, "kitchen.jurat"))
	if out := jurat(0, "log", "fsck"); !strings.Contains(out, "the log is whole") {
		t.Error(out)
	}
}

// earlier returns the folder with data of an earlier program.
func earlier(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../testdata/earlier")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
