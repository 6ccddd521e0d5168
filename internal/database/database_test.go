package database

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

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
