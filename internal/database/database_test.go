package database

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/pgtest"
)

// TestErrorsKeepTheSecret: whatever is wrong with a URL or with a server, the password is not said.
func TestErrorsKeepTheSecret(t *testing.T) {
	good, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
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
			if strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error says the password: %v", name, err)
			}
		}
		if !strings.HasPrefix(err.Error(), "connecting to PostgreSQL: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// impatient is a pool through a proxy whose connections soon doubt that somebody is there.
func impatient(t *testing.T) (*pgxpool.Pool, *pgtest.Proxy) {
	t.Helper()
	proxy, through := pgtest.NewProxy(t, pgtest.Database(t))
	config, err := parse(through + "?connect_timeout=2")
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DialFunc = newDialer(100*time.Millisecond, 2*time.Second).dial
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the proxy ends
		proxy.GoOn()
		pool.Close()
	})
	return pool, proxy
}

// TestHole: whoever waits for a server that nothing comes from any more is told so, without a deadline of his own, also where the
// other end's operating system confirms everything; and when something comes again, the same pool serves.
func TestHole(t *testing.T) {
	pool, proxy := impatient(t)
	idle, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	idle.Release()
	listens, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
			if err == nil || !errors.Is(Explain(err), ErrUnreachable) {
				t.Errorf("error %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("somebody waits for ever")
		}
	}
	proxy.GoOn()
	if _, err := pool.Exec(t.Context(), `SELECT 1`); err != nil {
		t.Errorf("it does not recover: %v", err)
	}
}

// TestPatience: a server that is there may take as long as it likes.
func TestPatience(t *testing.T) {
	pool, _ := impatient(t)
	if _, err := pool.Exec(t.Context(), `SELECT pg_sleep(1)`); err != nil {
		t.Error(err)
	}
}
