package main

import (
	"net/url"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestDoctorOfADatabase: with PostgreSQL, the doctor says what is there and what is broken, makes nothing in a database without an
// installation, and never shows the database's password.
func TestDoctorOfADatabase(t *testing.T) {
	m := machines(t, 1)[0]
	t.Setenv("JURAT_JURORS", "offline")
	database, _ := strings.CutPrefix(m.env[len(m.env)-2], "JURAT_DB=")
	key, _ := strings.CutPrefix(m.env[len(m.env)-1], "JURAT_WRAPPING_KEY=")
	examine := func(code int, database, key string, want ...string) {
		t.Helper()
		out, said := ran(t, code, append([]string{"--db", database, "--wrapping-key", key, "doctor"}, m.args...)...)
		for _, w := range want {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), w) {
				t.Errorf("%q is missing:\n%s", w, out)
			}
		}
		if u, err := url.Parse(database); err != nil {
			t.Fatal(err)
		} else if password, ok := u.User.Password(); ok && password != "" && strings.Contains(out+said, password) {
			t.Errorf("it shows the password:\n%s%s", out, said)
		}
	}
	for range 2 { // the first look makes nothing
		examine(1, database, key, "look installation", "there is none yet", "jurat init")
	}
	m.do("init")
	examine(1, database, key, "ok installation", "a log of", "ok sealing", "ok clock", "only the built-in one")
	gone := must.Get(url.Parse(database))(t)
	gone.Path += "-gone"
	gone.User = url.UserPassword(gone.User.Username(), "geheim-4711")
	examine(exitCannot, gone.String(), key, "broken installation")
	other := t.TempDir() + "/other.key"
	doing(t, 0, "keys", "wrapping-key", other)
	examine(exitCannot, database, other, "broken installation")
}
