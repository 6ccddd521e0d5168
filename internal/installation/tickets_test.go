package installation_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/internal/installation"
)

// shared runs a test with an installation that is open twice, in a folder and in a database.
func shared(t *testing.T, test func(t *testing.T, one, other *installation.Installation, c installation.Config)) {
	t.Run("folder", func(t *testing.T) {
		c, _ := made(t)
		test(t, open(t, c), open(t, c), c)
	})
	t.Run("database", func(t *testing.T) {
		c, i, machine := begun(t)
		test(t, i, open(t, machine()), c)
	})
}

// TestTickets: a ticket can be used once, on any machine, until it expires.
func TestTickets(t *testing.T) {
	shared(t, func(t *testing.T, one, other *installation.Installation, c installation.Config) {
		give := func(what string, d time.Duration) string {
			return must(one.GiveTicket(t.Context(), what, time.Now().Add(d)))
		}
		secret := give("mia", time.Hour)
		var used atomic.Int32
		var all sync.WaitGroup
		for n := range 8 {
			i := []*installation.Installation{one, other}[n%2]
			all.Go(func() {
				var got string
				switch err := i.TakeTicket(t.Context(), secret, &got); {
				case err == nil && got == "mia":
					used.Add(1)
				case !errors.Is(err, installation.ErrNoTicket):
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		all.Wait()
		if used.Load() != 1 {
			t.Errorf("it was used %d times", used.Load())
		}
		var got string
		for name, secret := range map[string]string{"expired": give("late", -time.Second), "none": "x", "": ""} {
			if err := other.TakeTicket(t.Context(), secret, &got); !errors.Is(err, installation.ErrNoTicket) {
				t.Errorf("%s: %v", name, err)
			}
		}
		give("expired", -time.Second)
		last := give("last", time.Hour) // which removes expired tickets
		if c.DB == "" {
			if left, err := os.ReadDir(filepath.Join(c.Dir, "tickets")); err != nil || len(left) != 1 {
				t.Errorf("%v are left, %v", left, err)
			}
		}
		if err := other.TakeTicket(t.Context(), last, &got); err != nil || got != "last" {
			t.Error(got, err)
		}
	})
}

// TestServerSecret: all servers have the same secret, and another purpose has another one.
func TestServerSecret(t *testing.T) {
	shared(t, func(t *testing.T, one, other *installation.Installation, _ installation.Config) {
		secrets := make([][]byte, 8)
		var all sync.WaitGroup
		for n := range secrets {
			i := []*installation.Installation{one, other}[n%2]
			all.Go(func() {
				var err error
				if secrets[n], err = i.ServerSecret(t.Context(), "test"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, s := range secrets {
			if len(s) != 32 || !bytes.Equal(s, secrets[0]) {
				t.Errorf("%x is not %x", s, secrets[0])
			}
		}
		if bytes.Equal(must(other.ServerSecret(t.Context(), "other")), secrets[0]) {
			t.Error("two purposes have the same secret")
		}
	})
}

// TestForgedTicket: an attacker who can write to the database cannot make a sign-in ticket there, not even from a ticket
// for another purpose.
func TestForgedTicket(t *testing.T) {
	c, i, _ := begun(t)
	must(i.GiveTicket(t.Context(), "mia", time.Now().Add(time.Hour)))
	for name, content := range map[string]string{
		"made up": `convert_to('{"until":"2999-01-01T00:00:00Z","content":"operator"}', 'UTF8'), wrapped FROM jurat.files LIMIT 1`,
		"copied":  `content, wrapped FROM jurat.files WHERE name LIKE 'tickets/%' LIMIT 1`,
	} {
		sum := sha256.Sum256([]byte("jurat/ticket/v1\x00" + name))
		for _, extension := range []string{"json", "key"} {
			execute(t, c.DB, fmt.Sprintf(`INSERT INTO jurat.files (name, content, wrapped) SELECT 'tickets/%x.%s', %s`, sum, extension, content))
		}
		var got string
		if err := i.TakeTicket(t.Context(), name, &got); err == nil {
			t.Errorf("a ticket that was %s is accepted for %q", name, got)
		}
	}
}
