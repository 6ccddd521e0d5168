package rig

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jurat/internal/test/must"
)

// folderOf, if set, makes this test binary a process that prints the folder of its server, and waits to be killed.
const folderOf = "JURAT_TEST_PGTEST"

func TestMain(m *testing.M) {
	if binaries := os.Getenv(folderOf); binaries != "" {
		s, err := start(binaries, nil)
		if err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(1)
		}
		os.Stdout.WriteString(s.folder + "\n")
		os.Stdout.Close()
		select {}
	}
	os.Exit(m.Run())
}

func query[T any](t *testing.T, url, text string, before ...string) (result T) {
	t.Helper()
	conn := must.Get(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(t.Context())
	for _, statement := range before {
		must.Get(conn.Exec(t.Context(), statement))(t)
	}
	must.Do(t, conn.QueryRow(t.Context(), text).Scan(&result))
	return result
}

func TestDatabase(t *testing.T) {
	one, two := Database(t), Database(t)
	must.Hold(t, one != two, "twice the database %s", one)
	for _, url := range []string{one, shared.server.Socket(t, two)} {
		must.Equal(t, query[string](t, url, `SELECT rolname::text FROM pg_roles WHERE rolname = current_user AND NOT rolsuper`, `CREATE SCHEMA mine`), "jurat")
	}
	super := query[bool](t, Admin(t, one), `SELECT rolsuper FROM pg_roles WHERE rolname = current_user`)
	must.Hold(t, super, "the admin is no superuser")
}

// TestKilled checks that committed data survive every way to end the server.
func TestKilled(t *testing.T) {
	s := StartPostgres(t, "work_mem=5MB")
	url := s.Database(t)
	must.Equal(t, query[string](t, url, `SHOW work_mem`), "5MB")
	query[int](t, url, `SELECT n FROM own.kept`, `CREATE SCHEMA own`, `CREATE TABLE own.kept (n int)`, `INSERT INTO own.kept VALUES (7)`)
	for _, end := range []func(testing.TB){s.Kill, s.Halt} {
		end(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if conn, err := pgx.Connect(ctx, url); err == nil {
			conn.Close(ctx)
			t.Error("it still answers")
		}
		cancel()
		s.Restart(t)
		must.Equal(t, query[int](t, url, `SELECT n FROM own.kept`), 7)
	}
}

// TestNothingStays kills a test process that has a server, and checks that nothing remains.
func TestNothingStays(t *testing.T) {
	self := must.Get(os.Executable())(t)
	child := exec.Command(self)
	child.Env = append(os.Environ(), folderOf+"="+find(t))
	out := must.Get(child.StdoutPipe())(t)
	must.Do(t, child.Start())
	buffer := make([]byte, 4096)
	n := must.Get(out.Read(buffer))(t)
	folder := strings.TrimSpace(string(buffer[:n]))
	pid := serverOf(t, folder)
	must.Do(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, gone := os.Stat(folder)
		if errors.Is(gone, os.ErrNotExist) && pid.Signal(syscall.Signal(0)) != nil {
			return
		}
		must.Need(t, !time.Now().After(end), "the folder %s or process %d stays", folder, pid.Pid)
	}
}

// serverOf returns the server's process, from the server's own file.
func serverOf(t *testing.T, folder string) *os.Process {
	t.Helper()
	content := must.Get(os.ReadFile(folder + "/data/postmaster.pid"))(t)
	first, _, _ := strings.Cut(string(content), "\n")
	pid := must.Get(strconv.Atoi(first))(t)
	process := must.Get(os.FindProcess(pid))(t)
	return process
}
