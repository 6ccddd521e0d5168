package main

import (
	"bytes"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"jurat/internal/must"
	"jurat/internal/pgtest"
)

// TestDatabaseAdvice: if a machine cannot use its database, the error names the database and its server, says what to do
// next, and does not contain the password.
func TestDatabaseAdvice(t *testing.T) {
	good := must.Get(url.Parse(pgtest.Database(t)))(t)
	dir := t.TempDir()
	key := filepath.Join(dir, "wrapping.key")
	doing(t, 0, "keys", "wrapping-key", key)
	admin := must.Get(pgx.Connect(t.Context(), pgtest.Admin(t, good.String())))(t)
	defer admin.Close(t.Context())
	if _, err := admin.Exec(t.Context(), `CREATE ROLE reads LOGIN PASSWORD 'geheim'`); err != nil {
		t.Fatal(err)
	}
	password, _ := good.User.Password()
	name := strings.TrimPrefix(good.Path, "/")
	for what, test := range map[string]struct {
		user       *url.Userinfo
		host, path string
		says, hint string
	}{
		"nobody there":     {good.User, "127.0.0.1:1", name, "connection refused", "pg_isready"},
		"no such host":     {good.User, "db.invalid:5432", name, "out of reach", "pg_isready"},
		"no such database": {good.User, good.Host, "nowhere", "no such database", "createdb"},
		"a wrong password": {url.UserPassword("jurat", "geheim"), good.Host, name, "does not let this role in", "PGPASSWORD"},
		"no such role":     {url.UserPassword("nobody", "geheim"), good.Host, name, "does not let this role in", "PGPASSWORD"},
		"not the owner":    {url.UserPassword("reads", "geheim"), good.Host, name, "may not do what is needed", "OWNER TO"},
	} {
		for _, command := range []string{"seal -", "log fsck", "serve --jurors offline --addr 127.0.0.1:0"} {
			if what == "not the owner" && command == "log fsck" {
				continue // it makes nothing, and finds nothing
			}
			var out, errs bytes.Buffer
			at := url.URL{Scheme: "postgres", User: test.user, Host: test.host, Path: test.path}
			args := append([]string{"--db", at.String(), "--wrapping-key", key, "--data", filepath.Join(dir, "data")}, strings.Fields(command)...)
			code := run(t.Context(), args, stdio{in: strings.NewReader(advisedPayload), out: &out, err: &errs})
			said, hint, _ := strings.Cut(errs.String(), "jurat: hint: ")
			if code != exitCannot || !strings.Contains(said, test.says) || !strings.Contains(hint, test.hint) {
				t.Errorf("%s, %s: exit code %d\n%s", command, what, code, &errs)
			}
			if host := at.Hostname(); !strings.Contains(said, test.path) || !strings.Contains(said, host) {
				t.Errorf("%s, %s: the error does not name the database\n%s", command, what, said)
			}
			if strings.Contains(said, "\uFFFD") {
				t.Errorf("%s, %s: the error has line feeds\n%s", command, what, said)
			}
			if strings.Contains(errs.String(), "geheim") || strings.Contains(errs.String(), password) {
				t.Errorf("%s, %s: it says the password", command, what)
			}
		}
	}
}

const advisedPayload = `{"agent_id":"a","request_id":"1","timestamp":"2026-01-01T00:00:00Z","model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`
