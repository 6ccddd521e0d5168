// Package pgtest runs a real PostgreSQL for tests: in a temporary folder, on a free port of 127.0.0.1 and on a socket in that folder,
// and not longer than the test process lives, however that ends.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience bounds every wait for a server, so that a test that waits for what never comes says what it waited for.
const patience = 60 * time.Second

// A Server is a PostgreSQL server with a role "jurat" that is no superuser, and a superuser "postgres".
type Server struct {
	folder   string
	binaries string
	port     int
	taken    io.Closer // keeps the port for the server, until it has ended for good
	password string    // of both roles
	settings []string
	drops    bool // databases are dropped when their tests end, as the server goes on

	reaper *exec.Cmd      // ends the server, and removes the folder, when this process has ended
	tell   io.WriteCloser // to the reaper: the server's process id, or an empty line when it has ended

	process *exec.Cmd     // nil: it does not run
	exited  chan struct{} // closed when the process has ended

	mu   sync.Mutex // while it is held, nobody else makes or drops a database: it copies a template that nobody may use meanwhile
	made int
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Database returns the URL of a new, empty database. All tests of a test binary have theirs on one server. A test for which there is
// no PostgreSQL is skipped, and fails under CI=true.
func Database(t testing.TB) string {
	t.Helper()
	binaries := find(t)
	shared.once.Do(func() {
		if shared.server, shared.err = start(binaries, nil); shared.err == nil {
			shared.server.drops = true
		}
	})
	if shared.err != nil {
		t.Fatalf("starting PostgreSQL: %v", shared.err)
	}
	return shared.server.Database(t)
}

// Start starts a server that is this test's alone, so that it can be killed. Settings are as in "fsync=off". It ends with the test.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := start(find(t), settings)
	if err != nil {
		t.Fatalf("starting PostgreSQL: %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.end(syscall.SIGQUIT), s.tell.Close(), s.reaper.Wait(), s.taken.Close()); err != nil {
			t.Errorf("ending PostgreSQL: %v", err)
		}
	})
	return s
}

// find returns the folder of the server's programs, which Debian does not put into PATH.
func find(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		newest := slices.MaxFunc(found, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) }) // 9 comes before 15
		return filepath.Dir(newest)
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("there is no PostgreSQL (initdb), and under CI=true nothing is skipped")
	}
	t.Skip("there is no PostgreSQL (initdb, of Debian's package postgresql), on which the shared ledger is tried")
	return ""
}

func start(binaries string, settings []string) (*Server, error) {
	folder, err := temporary()
	if err != nil {
		return nil, err
	}
	s := &Server{folder: folder, binaries: binaries, password: rand.Text(), settings: settings}
	if err := s.watch(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	if err := s.initialise(); err != nil {
		return nil, errors.Join(err, s.tell.Close(), s.reaper.Wait())
	}
	return s, nil
}

func (s *Server) initialise() (err error) {
	if s.port, s.taken, err = takePort(); err != nil {
		return err
	}
	secret := filepath.Join(s.folder, "password")
	if err := os.WriteFile(secret, []byte(s.password), 0o600); err != nil {
		return err
	}
	if err := giveAway(s.folder, secret); err != nil {
		return err
	}
	initdb := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "scram-sha-256", "--pwfile="+secret, "-E", "UTF8", "--locale=C", "-N")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := s.run(); err != nil {
		return err
	}
	return s.asAdmin(context.Background(), fmt.Sprintf(`CREATE ROLE jurat LOGIN PASSWORD '%s'`, s.password))
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

// command is a program of PostgreSQL's, which refuse to run as root.
func (s *Server) command(name string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.binaries, name), arguments...)
	cmd.Dir = s.folder
	unprivileged(cmd)
	return cmd
}

// ports are those of which systems choose none by themselves, for who listens anywhere or connects: so nobody has a server's port while that
// is killed and started again.
const firstPort, ports = 20_000, 10_000

// takePort finds a port on which nobody listens. As long as this process lives it has the same number of UDP, which nobody else here uses, so
// that another process of this package's does not take the port before the server has it, or while that is away.
func takePort() (port int, taken io.Closer, err error) {
	for range 100 {
		port := firstPort + mathrand.IntN(ports)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		var taken net.PacketConn
		if taken, err = net.ListenPacket("udp", address); err != nil {
			continue
		}
		var listener net.Listener
		if listener, err = net.Listen("tcp", address); err == nil {
			return port, taken, listener.Close()
		}
		taken.Close()
	}
	return 0, nil, fmt.Errorf("no port from %d to %d is free: %w", firstPort, firstPort+ports-1, err)
}

// reap waits for the end of its input, which is the end of the test process. The last line that came before is the id of the
// server's process, or is empty.
const reap = `while read -r line; do server=$line; done
if [ -n "$server" ]; then
	kill -QUIT "$server" && while kill -0 "$server"; do sleep 0.1; done
fi
rm -rf "$0"`

func (s *Server) watch() (err error) {
	s.reaper = exec.Command("sh", "-c", reap, s.folder)
	ownGroup(s.reaper) // what ends the test process by its terminal does not end this
	if s.tell, err = s.reaper.StdinPipe(); err != nil {
		return err
	}
	return s.reaper.Start()
}

// run starts the server, and returns when it answers. After it was killed it does not start before the last process that it has
// left behind has noticed.
func (s *Server) run() error {
	end := time.Now().Add(patience)
	for {
		err := s.tryRun(end)
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *Server) tryRun(end time.Time) error {
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	arguments := []string{"-D", s.data(), "-k", s.folder, "-h", "127.0.0.1", "-p", fmt.Sprint(s.port), "-c", "max_connections=200"}
	for _, setting := range s.settings {
		arguments = append(arguments, "-c", setting)
	}
	process := s.command("postgres", arguments...)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = process.Wait() // it ends as it was told to, or the log says why
		close(exited)
	}()
	s.process, s.exited = process, exited
	if _, err := fmt.Fprintln(s.tell, process.Process.Pid); err != nil {
		return err
	}
	for time.Now().Before(end) {
		if err = s.asAdmin(context.Background(), `SELECT 1`); err == nil {
			return nil
		}
		select {
		case <-exited:
			_, err := fmt.Fprintln(s.tell)
			s.process = nil
			return errors.Join(fmt.Errorf("the server ended at once; its log:\n%s", s.Log()), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("the server does not answer: %w; its log:\n%s", err, s.Log())
}

// Log is what the server has said since it was started.
func (s *Server) Log() string {
	log, err := os.ReadFile(filepath.Join(s.folder, "log"))
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// Kill kills the server's first process so that it can do nothing more. The processes that serve connections notice a little
// later, and finish until then what they are at.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.end(syscall.SIGKILL); err != nil {
		t.Fatalf("killing PostgreSQL: %v", err)
	}
}

// Halt ends all the server's processes where they are.
func (s *Server) Halt(t testing.TB) {
	t.Helper()
	if err := s.end(syscall.SIGQUIT); err != nil {
		t.Fatalf("halting PostgreSQL: %v", err)
	}
}

// Standby makes a server that was killed or halted one that only follows another, which there is not, when it is started again: it
// can be read, and takes nothing.
func (s *Server) Standby(t testing.TB) {
	t.Helper()
	signal := filepath.Join(s.data(), "standby.signal")
	if err := errors.Join(os.WriteFile(signal, nil, 0o600), giveAway(signal)); err != nil {
		t.Fatal(err)
	}
}

// Restart starts a server that was killed or halted, with further settings.
func (s *Server) Restart(t testing.TB, settings ...string) {
	t.Helper()
	s.settings = append(s.settings, settings...)
	if err := s.run(); err != nil {
		t.Fatalf("starting PostgreSQL again: %v", err)
	}
}

func (s *Server) end(signal os.Signal) error {
	if s.process == nil {
		return nil
	}
	if err := s.process.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.exited:
	case <-time.After(patience):
		return fmt.Errorf("the server does not end; its log:\n%s", s.Log())
	}
	s.process = nil
	_, err := fmt.Fprintln(s.tell)
	return err
}

// Database makes a database that belongs to the role jurat, and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	name := fmt.Sprintf("test%d", s.made)
	if err := s.asAdmin(t.Context(), fmt.Sprintf(`CREATE DATABASE %s OWNER jurat TEMPLATE template0`, name)); err != nil {
		t.Fatalf("making a database: %v", err)
	}
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.drops {
			return // it goes with the server
		}
		if err := s.asAdmin(context.Background(), fmt.Sprintf(`DROP DATABASE %s WITH (FORCE)`, name)); err != nil {
			t.Errorf("dropping a database: %v", err)
		}
	})
	return s.url("jurat", name)
}

// Admin turns the URL of a database of this package's into one by which the superuser uses it.
func Admin(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	u.User = url.UserPassword("postgres", password)
	return u.String()
}

// Socket turns the URL of a database of this server into one that goes through the socket.
func (s *Server) Socket(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = url.Values{"host": {s.folder}, "port": {u.Port()}}.Encode()
	u.Host = ""
	return u.String()
}

func (s *Server) url(role, database string) string {
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(role, s.password), Host: fmt.Sprintf("127.0.0.1:%d", s.port), Path: database}).String()
}

// asAdmin executes a statement as the superuser.
func (s *Server) asAdmin(ctx context.Context, statement string) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres", "postgres"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, statement)
	return err
}
