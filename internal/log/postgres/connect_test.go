package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// TestErrorsKeepTheSecret checks that no error contains the password, whatever is wrong with the URL or the server.
func TestErrorsKeepTheSecret(t *testing.T) {
	good := must.Get(url.Parse(rig.Database(t)))(t)
	secret := "s3cr%25et/%7Bx"
	on := func(host, query string) string { return "postgres://jurat:" + secret + "@" + host + "/test?" + query }
	for name, url := range map[string]string{
		"wrong password":     on(good.Host, ""),
		"nobody there":       on("127.0.0.1:1", ""),
		"no such host":       on("host.invalid", ""),
		"not read":           "postgres://jurat:s3cr%et@127.0.0.1/test",
		"bad port":           on("127.0.0.1:port", ""),
		"bad setting":        on(good.Host, "sslmode=s3cret"),
		"bad pool":           on(good.Host, "pool_max_conns=many"),
		"bad mode":           on(good.Host, "default_query_exec_mode=other"),
		"bad time":           on(good.Host, "connect_timeout=long"),
		"another scheme":     "mysql://jurat:" + secret + "@127.0.0.1/test",
		"keyword and value":  "host=127.0.0.1 password=s3cr%et{x",
		"a space within":     "postgres://jurat:s3cr et@127.0.0.1/test",
		"unknown parameter":  on(good.Host, "whatever=1"),
		"wrong certificates": on(good.Host, "sslmode=verify-full&sslrootcert=/nowhere"),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		pool, err := Connect(ctx, url)
		cancel()
		if err == nil {
			pool.Close()
			t.Errorf("%s: connected", name)
			continue
		}
		for _, part := range []string{"s3cr%", "s3cr e", "et/{x", "et{x", "%et", secret} {
			must.Hold(t, !strings.Contains(err.Error(), part), "%s: the error contains the password: %v", name, err)
		}
		must.Hold(t, strings.HasPrefix(err.Error(), "connecting to PostgreSQL: "), "%s: %v", name, err)
	}
}

// impatient returns a pool through a proxy. Its connections soon check whether the server is still there.
func impatient(t *testing.T) (*pgxpool.Pool, *rig.Proxy) {
	t.Helper()
	proxy, through := rig.NewProxy(t, rig.Database(t))
	config := must.Get(parse(through + "?connect_timeout=2"))(t)
	config.ConnConfig.DialFunc = newDialer(&config.ConnConfig.Config, 100*time.Millisecond, 2*time.Second).dial
	pool := must.Get(pgxpool.NewWithConfig(t.Context(), config))(t)
	t.Cleanup(func() { // before the proxy ends
		proxy.GoOn()
		pool.Close()
	})
	return pool, proxy
}

// TestHole checks that a caller without a deadline gets an error when the server goes silent, even if the other end's
// operating system confirms everything. When data comes again, the same pool works.
func TestHole(t *testing.T) {
	pool, proxy := impatient(t)
	idle := must.Get(pool.Acquire(t.Context()))(t)
	idle.Release()
	listens := must.Get(pool.Acquire(t.Context()))(t)
	defer listens.Release()
	proxy.Stop()
	told := make(chan error)
	go func() {
		_, err := pool.Exec(context.Background(), `SELECT 1`)
		told <- err
	}()
	go func() {
		_, err := listens.Conn().WaitForNotification(context.Background())
		told <- err
	}()
	for range 2 {
		select {
		case err := <-told:
			must.Hold(t, err != nil && errors.Is(Explain(err), ErrUnreachable), "error %v", err)
		case <-time.After(2 * time.Minute):
			t.Fatal("a caller is still waiting")
		}
	}
	proxy.GoOn()
	must.Fail(t, nil)(pool.Exec(t.Context(), `SELECT 1`))
}

// TestPatience checks that a server that is there may take as long as it likes.
func TestPatience(t *testing.T) {
	pool, _ := impatient(t)
	must.Fail(t, nil)(pool.Exec(t.Context(), `SELECT pg_sleep(1)`))
}

// TestAnswers checks that an answer of a proxy, or a closed connection, does not count as an answer of the server.
func TestAnswers(t *testing.T) {
	says := func(code string) func(*pgproto3.Backend) {
		return func(b *pgproto3.Backend) {
			b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: "no"})
			_ = b.Flush()
		}
	}
	letsIn := func(b *pgproto3.Backend) {
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		_ = b.Flush()
		_, _ = b.Receive() // the statement
	}
	for name, tt := range map[string]struct {
		login, statement func(*pgproto3.Backend)
		answers          bool
	}{
		"it hangs up":                          {nil, nil, false},
		"a proxy that does not reach it":       {says("08P01"), nil, false},
		"the server has too many already":      {says("53300"), nil, true},
		"the server lets this role in no more": {says("28P01"), nil, true},
		"a proxy that passes nothing on":       {letsIn, func(b *pgproto3.Backend) { _, _ = b.Receive() }, false},
		"a proxy that hangs up":                {letsIn, nil, false},
		"a proxy that hears no more of it":     {letsIn, says("08P01"), false},
		"the server ends":                      {letsIn, says("57P01"), true},
	} {
		address := standIn(t, tt.login, tt.statement)
		config := must.Get(parse("postgres://jurat:p@elsewhere.invalid,neither.invalid/test?sslmode=prefer&target_session_attrs=read-write"))(t)
		err := newDialer(&config.ConnConfig.Config, time.Second, 2*time.Second).ask(address)
		must.Hold(t, (err == nil) == tt.answers, "%s: %v", name, err)
	}
}

// standIn speaks like a PostgreSQL server, without TLS. It closes the connection if it has nothing to say.
func standIn(t *testing.T, login, statement func(*pgproto3.Backend)) net.Addr {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		if login == nil {
			return
		}
		b := pgproto3.NewBackend(conn, conn)
		first, err := b.ReceiveStartupMessage()
		if _, is := first.(*pgproto3.SSLRequest); is && err == nil {
			_, _ = conn.Write([]byte{'N'})
			_, err = b.ReceiveStartupMessage()
		}
		if err != nil {
			return // it does without, on another connection
		}
		if login(b); statement != nil {
			statement(b)
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr()
}

// TestRetry checks that an error that will not go away is not retried, and that an operation with an unknown outcome
// is retried only if it may be done twice.
func TestRetry(t *testing.T) {
	refused := &pgconn.ConnectError{}
	for what, test := range map[string]struct {
		err         error
		once, often int // how often it is done where it may be done once, or often
		resets      int
	}{
		"nothing":          {nil, 1, 1, 0},
		"a deadlock":       {&pgconn.PgError{Code: "40P01"}, 3, 3, 0},
		"a conflict":       {&pgconn.PgError{Code: "40001"}, 3, 3, 0},
		"a lost answer":    {io.ErrUnexpectedEOF, 1, 3, 3},
		"a server's end":   {&pgconn.PgError{Code: "57P01"}, 1, 3, 3},
		"nobody there":     {refused, 3, 3, 3},
		"no such row":      {pgx.ErrNoRows, 1, 1, 0},
		"a broken rule":    {&pgconn.PgError{Code: "23505"}, 1, 1, 0},
		"no time left":     {context.DeadlineExceeded, 1, 1, 0},
		"a wrong password": {errors.Join(refused, &pgconn.PgError{Code: "28P01"}), 1, 1, 0},
	} {
		for _, may := range []struct {
			again func(error) bool
			times int
		}{{undone, test.once}, {undoneOrBroken, test.often}} {
			done, resets := 0, 0
			err := retry(t.Context(), func() { resets++ }, may.again, func() error {
				done++
				if test.err == nil {
					return nil
				}
				return fmt.Errorf("doing: %w", test.err)
			})
			must.Hold(t, done == may.times && errors.Is(err, test.err) && (may.times != 3 || resets == test.resets),
				"%s: done %d times, want %d; forgotten %d times; %v", what, done, may.times, resets, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	if err := retry(ctx, func() {}, undoneOrBroken, func() error { done++; cancel(); return io.ErrUnexpectedEOF }); done != 1 || err == nil {
		t.Errorf("done %d times after the caller had given up, %v", done, err)
	}
	done = 0
	err := retry(t.Context(), func() {}, undone, func() error {
		if done++; done == 1 {
			return &pgconn.PgError{Code: "40P01"}
		}
		return nil
	})
	must.Hold(t, done == 2 && err == nil, "done %d times, %v", done, err)
}
