package rig

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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jurat/internal/test/must"
)

// patience limits every wait for a server, so that a test that waits in vain says what it waited for.
const patience = 60 * time.Second

// A Postgres is a PostgreSQL server with a role "jurat", which is not a superuser, and a superuser "postgres".
type Postgres struct {
	folder   string
	binaries string
	port     int
	taken    io.Closer // reserves the port until the server has ended for good
	password string    // of both roles
	settings []string
	drops    bool // databases are dropped when their tests end, because the server continues

	reaper *exec.Cmd      // ends the server, and removes the folder, when this process has ended
	tell   io.WriteCloser // input of the reaper: the server's process id, or an empty line when the server has ended

	process *exec.Cmd     // nil: the server does not run
	exited  chan struct{} // closed when the process has ended

	mu   sync.Mutex // held while a database is made or dropped: making one copies a template that must not be in use
	made int
}

var shared struct {
	once   sync.Once
	server *Postgres
	err    error
}

// Database returns the URL of a new, empty database. All tests of a test binary share one server. If PostgreSQL is
// not installed, Database skips the test, or fails it under CI=true.
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

// StartPostgres starts a server for this test alone, so that the test can kill it. Settings have the form "fsync=off". The server ends with the test.
func StartPostgres(t testing.TB, settings ...string) *Postgres {
	t.Helper()
	s := must.Get(start(find(t), settings))(t)
	t.Cleanup(func() {
		must.Want(t, errors.Join(s.end(syscall.SIGQUIT), s.tell.Close(), s.reaper.Wait(), s.taken.Close()), nil)
	})
	return s
}

// find returns the folder of the server's programs. Debian does not put them into PATH.
func find(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found := must.Get(filepath.Glob("/usr/lib/postgresql/*/bin/initdb"))(t)
	if len(found) > 0 {
		newest := slices.MaxFunc(found, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) }) // 9 comes before 15
		return filepath.Dir(newest)
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("PostgreSQL (initdb) is not installed, and under CI=true no test is skipped")
	}
	t.Skip("PostgreSQL (initdb, in Debian's package postgresql) is not installed; this test needs it")
	return ""
}

func start(binaries string, settings []string) (*Postgres, error) {
	folder, err := temporary()
	if err != nil {
		return nil, err
	}
	s := &Postgres{folder: folder, binaries: binaries, password: rand.Text(), settings: settings}
	if err := s.watch(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	if err := s.initialise(); err != nil {
		return nil, errors.Join(err, s.tell.Close(), s.reaper.Wait())
	}
	return s, nil
}

func (s *Postgres) initialise() (err error) {
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

func (s *Postgres) data() string { return filepath.Join(s.folder, "data") }

// command returns a command for a program of PostgreSQL. These programs refuse to run as root.
func (s *Postgres) command(name string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.binaries, name), arguments...)
	cmd.Dir = s.folder
	unprivileged(cmd)
	return cmd
}

// Operating systems do not choose ports from this range for clients or for listeners on port 0. So no other process
// takes a server's port while the server is being restarted.
const firstPort, ports = 20_000, 10_000

// takePort finds a port without a listener. While this process lives, it holds the UDP port of the same number, which nothing else here uses. So no
// other process of this package takes the port before the server has it, or while the server is down.
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

// reap waits for the end of its input, which is the end of the test process. The last line of the input is the id of the server's process, or is empty.
const reap = `while read -r line; do server=$line; done
if [ -n "$server" ]; then
	kill -QUIT "$server" && while kill -0 "$server"; do sleep 0.1; done
fi
rm -rf "$0"`

func (s *Postgres) watch() (err error) {
	s.reaper = exec.Command("sh", "-c", reap, s.folder)
	ownGroup(s.reaper) // a signal from the terminal to the test process does not reach the reaper
	if s.tell, err = s.reaper.StdinPipe(); err != nil {
		return err
	}
	return s.reaper.Start()
}

// run starts the server, and returns when it answers. After Kill, the server cannot start before the last process of the killed server has ended.
func (s *Postgres) run() error {
	end := time.Now().Add(patience)
	for {
		err := s.tryRun(end)
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *Postgres) tryRun(end time.Time) error {
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
		_ = process.Wait() // it ended as it was told to, or its log says why
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

// Log returns what the server has logged since its start.
func (s *Postgres) Log() string {
	log, err := os.ReadFile(filepath.Join(s.folder, "log"))
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// Kill kills the server's main process. The processes that serve connections notice it a little later, and complete their current work until then.
func (s *Postgres) Kill(t testing.TB) {
	t.Helper()
	must.Do(t, s.end(syscall.SIGKILL))
}

// Halt stops all processes of the server at once.
func (s *Postgres) Halt(t testing.TB) {
	t.Helper()
	must.Do(t, s.end(syscall.SIGQUIT))
}

// Standby makes a server that was killed or halted a standby at its next start. It follows no other server, can be read, and refuses writes.
func (s *Postgres) Standby(t testing.TB) {
	t.Helper()
	signal := filepath.Join(s.data(), "standby.signal")
	must.Do(t, errors.Join(os.WriteFile(signal, nil, 0o600), giveAway(signal)))
}

// Restart starts a server that was killed or halted, with further settings.
func (s *Postgres) Restart(t testing.TB, settings ...string) {
	t.Helper()
	s.settings = append(s.settings, settings...)
	must.Do(t, s.run())
}

func (s *Postgres) end(signal os.Signal) error {
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
func (s *Postgres) Database(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	name := fmt.Sprintf("test%d", s.made)
	must.Do(t, s.asAdmin(t.Context(), fmt.Sprintf(`CREATE DATABASE %s OWNER jurat TEMPLATE template0`, name)))
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.drops {
			return // the database ends with the server
		}
		must.Want(t, s.asAdmin(context.Background(), fmt.Sprintf(`DROP DATABASE %s WITH (FORCE)`, name)), nil)
	})
	return s.url("jurat", name)
}

// Admin returns the URL by which the superuser uses a database of this package.
func Admin(t testing.TB, database string) string {
	t.Helper()
	u := must.Get(url.Parse(database))(t)
	password, _ := u.User.Password()
	u.User = url.UserPassword("postgres", password)
	return u.String()
}

// Socket returns the URL of a database of this server through the socket.
func (s *Postgres) Socket(t testing.TB, database string) string {
	t.Helper()
	u := must.Get(url.Parse(database))(t)
	u.RawQuery = url.Values{"host": {s.folder}, "port": {u.Port()}}.Encode()
	u.Host = ""
	return u.String()
}

func (s *Postgres) url(role, database string) string {
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(role, s.password), Host: fmt.Sprintf("127.0.0.1:%d", s.port), Path: database}).String()
}

func (s *Postgres) asAdmin(ctx context.Context, statement string) (err error) {
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

// A Proxy stands between a server and its clients. It can behave like a broken network: the operating system still
// confirms what is sent, but nothing is passed on, and no connection ends.
type Proxy struct {
	to      string
	gate    sync.RWMutex // held for writing while nothing is passed on
	stopped atomic.Bool
}

// NewProxy returns a proxy for the server of a database, and the URL through it. The proxy ends with the test.
func NewProxy(t testing.TB, database string) (p *Proxy, through string) {
	t.Helper()
	u := must.Get(url.Parse(database))(t)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p = &Proxy{to: u.Host}
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // the listener was closed
			}
			all.Go(func() { p.pass(ctx, from) })
		}
	})
	t.Cleanup(func() {
		p.GoOn()
		end()
		must.Do(t, listener.Close())
		all.Wait()
	})
	u.Host = listener.Addr().String()
	return p, u.String()
}

// Stop makes the proxy pass nothing on.
func (p *Proxy) Stop() {
	p.gate.Lock()
	p.stopped.Store(true)
}

// GoOn makes the proxy pass on everything again, also what was sent meanwhile, like a network after an interruption.
func (p *Proxy) GoOn() {
	if p.stopped.Swap(false) {
		p.gate.Unlock()
	}
}

// wait returns when the proxy passes on data.
func (p *Proxy) wait() {
	p.gate.RLock()
	defer p.gate.RUnlock()
}

// pass serves a connection until one of its ends closes it, or the context ends.
func (p *Proxy) pass(ctx context.Context, from net.Conn) {
	defer context.AfterFunc(ctx, func() { from.Close() })()
	defer from.Close()
	p.wait()
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		return // the server is not running
	}
	defer context.AfterFunc(ctx, func() { to.Close() })()
	defer to.Close()
	var both sync.WaitGroup
	both.Go(func() { p.copy(to, from) })
	both.Go(func() { p.copy(from, to) })
	both.Wait()
}

// copy passes on data, when wait permits it, and the end of the stream.
func (p *Proxy) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.wait()
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			to.(interface{ CloseWrite() error }).CloseWrite()
			if failed != nil {
				_, _ = io.Copy(io.Discard, from)
			}
			return
		}
	}
}
