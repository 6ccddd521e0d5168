package installation_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/log/installation"
	"jurat/internal/log/keys"
	"jurat/internal/log/token"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
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
			return get(one.GiveTicket(t.Context(), what, time.Now().Add(d)))
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
		must.Hold(t, used.Load() == 1, "it was used %d times", used.Load())
		var got string
		for name, secret := range map[string]string{"expired": give("late", -time.Second), "none": "x", "": ""} {
			must.Want(t, other.TakeTicket(t.Context(), secret, &got), installation.ErrNoTicket, name)
		}
		give("expired", -time.Second)
		last := give("last", time.Hour) // which removes expired tickets
		if c.DB == "" {
			left, err := os.ReadDir(filepath.Join(c.Dir, "tickets"))
			must.Hold(t, err == nil && len(left) == 1, "%v are left, %v", left, err)
		}
		err := other.TakeTicket(t.Context(), last, &got)
		must.Hold(t, err == nil && got == "last", "%v %v", got, err)
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
				secrets[n], err = i.ServerSecret(t.Context(), "test")
				must.Hold(t, err == nil, "%v", err)
			})
		}
		all.Wait()
		for _, s := range secrets {
			must.Hold(t, len(s) == 32 && bytes.Equal(s, secrets[0]), "%x is not %x", s, secrets[0])
		}
		must.Hold(t, !bytes.Equal(get(other.ServerSecret(t.Context(), "other")), secrets[0]), "two purposes have the same secret")
	})
}

// TestForgedTicket: an attacker who can write to the database cannot make a sign-in ticket there, not even from a ticket
// for another purpose.
func TestForgedTicket(t *testing.T) {
	c, i, _ := begun(t)
	get(i.GiveTicket(t.Context(), "mia", time.Now().Add(time.Hour)))
	for name, content := range map[string]string{
		"made up": `convert_to('{"until":"2999-01-01T00:00:00Z","content":"operator"}', 'UTF8'), wrapped FROM jurat.files LIMIT 1`,
		"copied":  `content, wrapped FROM jurat.files WHERE name LIKE 'tickets/%' LIMIT 1`,
	} {
		sum := sha256.Sum256([]byte("jurat/ticket/v1\x00" + name))
		for _, extension := range []string{"json", "key"} {
			execute(t, c.DB, fmt.Sprintf(`INSERT INTO jurat.files (name, content, wrapped) SELECT 'tickets/%x.%s', %s`, sum, extension, content))
		}
		var got string
		must.Say(t, i.TakeTicket(t.Context(), name, &got), "", "a ticket that was", name, "is accepted for", got)
	}
}

const courier = "pkcs11:token=house;object=courier"

// onToken makes an installation with all keys on a token, including the key of the agent that signs in tests.
func onToken(t *testing.T, helper string) (installation.Config, *installation.Installation) {
	t.Helper()
	t.Setenv(token.Variable, helper)
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Token: &installation.Token{URI: "pkcs11:token=house", Helper: helper}}
	must.Do(t, installation.Create(t.Context(), c))
	i := open(t, c)
	makeKey(t, i, evidence.RoleOperator, "operator")
	makeKey(t, i, evidence.RoleAgent, "courier")
	return c, i
}

func makeKey(t *testing.T, i *installation.Installation, role evidence.Role, name string) *keys.Held {
	t.Helper()
	on := get(i.Helper.FindOrGenerate(t.Context(), "pkcs11:token=house;object="+name, evidence.ES256))
	return get(i.Keys.Create(t.Context(), role, name, evidence.ES256, &on))
}

// TestKeysOnToken seals and verifies with keys that are in no file.
func TestKeysOnToken(t *testing.T) {
	soft := rig.NewToken(t)
	c, i := onToken(t, soft.Helper(t))
	r := seal(t, i)
	wantStatus(t, i, "a record of keys on a token", r, byOperator)
	must.Do(t, i.Keys.Rotate(t.Context(), evidence.RoleOperator, "operator", "", nil, because))
	on := get(i.Helper.FindOrGenerate(t.Context(), courier+"-2", evidence.RS256))
	must.Do(t, i.Keys.Rotate(t.Context(), evidence.RoleAgent, "courier", evidence.RS256, &on, because))
	next := seal(t, i)
	must.Hold(t, next.Payload.Signers[0].Algorithm == evidence.RS256, "the rotated key signs %v", next.Payload.Signers)
	wantError(t, "two actors have the same key", keys.ErrExists, errorOf(i.Keys.Create(t.Context(), evidence.RoleAgent, "other", evidence.RS256, &on)))
	noSecrets(t, c.Dir, soft.PIN)
	again := open(t, installation.Config{Dir: c.Dir})
	wantStatus(t, again, "after opening again", seal(t, again), byOperator)
	damages, _, err := installation.Fsck(t.Context(), installation.Config{Dir: c.Dir}, nil)
	must.Hold(t, err == nil && len(damages) == 0, "examined: %v, %v", damages, err)
}

// noSecrets checks that no file of a data folder contains a PIN, and none contains a private key except that of the
// operator, whose keys went back to a file, and that of the log, which is never on a token.
func noSecrets(t *testing.T, dir, pin string) {
	t.Helper()
	for path, text := range rig.Files(t, dir) {
		if strings.Contains(string(text), pin) || strings.Contains(string(text), "PRIVATE KEY") && !strings.Contains(path, "operator") && path != installation.LogKeyFile {
			t.Errorf("%s has a secret", path)
		}
	}
}

// TestTokenRemoved: while the token is missing, nothing is sealed, and the error says why. When the token is back,
// sealing works again.
func TestTokenRemoved(t *testing.T) {
	soft := rig.NewToken(t)
	_, i := onToken(t, soft.Helper(t))
	seal(t, i)
	wantError(t, "with the token", nil, i.Ready(t.Context()))
	size := get(i.Ledger.Size(t.Context()))
	putBack := soft.Remove(t)
	wantError(t, "ready without a token", token.ErrUnavailable, i.Ready(t.Context()))
	signers := get(i.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))
	wantError(t, "sealed without a token", token.ErrUnavailable, errorOf(i.Ledger.Seal(t.Context(), draft(t), signers)))
	must.Equal(t, get(i.Ledger.Size(t.Context())), size, "the log has grown from")
	putBack()
	for deadline := time.Now().Add(time.Minute); i.Ready(t.Context()) != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not ready with the token back: %v", i.Ready(t.Context()))
		}
	}
	wantStatus(t, i, "with the token back", seal(t, i), byOperator)
}

// TestAnotherKeyOnToken replaces a key that the log knows by another one. Nothing is sealed with it.
func TestAnotherKeyOnToken(t *testing.T) {
	soft := rig.NewToken(t)
	_, i := onToken(t, soft.Helper(t))
	seal(t, i)
	file := ""
	for _, k := range get(i.Keys.Keys(t.Context())) {
		if k.Name == "courier" {
			file = k.File
		}
	}
	text := get(os.ReadFile(file))
	before, after, _ := strings.Cut(string(text), "Uri: ")
	_, after, _ = strings.Cut(after, "\n")
	must.Do(t, os.WriteFile(file, []byte(before+"Uri: pkcs11:token=house;object=operator\n"+after), 0o600))
	again := open(t, installation.Config{Dir: i.Dir})
	signers := get(again.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))
	wantError(t, "sealed with another key", evidence.ErrSignature, errorOf(again.Ledger.Seal(t.Context(), draft(t), signers)))
}
