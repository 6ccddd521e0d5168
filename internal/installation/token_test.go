package installation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/disktest"
	"jurat/internal/installation"
	"jurat/internal/keys"
	"jurat/internal/token"
	"jurat/internal/tokentest"
)

const courier = "pkcs11:token=house;object=courier"

// onToken makes an installation with all keys on a token, including the key of the agent that signs in tests.
func onToken(t *testing.T, helper string) (installation.Config, *installation.Installation) {
	t.Helper()
	t.Setenv(token.Variable, helper)
	c := installation.Config{Dir: filepath.Join(t.TempDir(), "data"), Token: &installation.Token{URI: "pkcs11:token=house", Helper: helper}}
	succeeds(t, installation.Create(t.Context(), c))
	i := open(t, c)
	makeKey(t, i, evidence.RoleOperator, "operator")
	makeKey(t, i, evidence.RoleAgent, "courier")
	return c, i
}

func makeKey(t *testing.T, i *installation.Installation, role evidence.Role, name string) *keys.Held {
	t.Helper()
	on := must(i.Helper.FindOrGenerate(t.Context(), "pkcs11:token=house;object="+name, evidence.ES256))
	return must(i.Keys.Create(t.Context(), role, name, evidence.ES256, &on))
}

// TestKeysOnToken seals and verifies with keys that are in no file.
func TestKeysOnToken(t *testing.T) {
	soft := tokentest.New(t)
	c, i := onToken(t, soft.Helper(t))
	r := seal(t, i)
	wantStatus(t, i, "a record of keys on a token", r, byOperator)
	succeeds(t, i.Registrar.Rotate(t.Context(), evidence.RoleOperator, "operator", "", nil, because))
	on := must(i.Helper.FindOrGenerate(t.Context(), courier+"-2", evidence.RS256))
	succeeds(t, i.Registrar.Rotate(t.Context(), evidence.RoleAgent, "courier", evidence.RS256, &on, because))
	if next := seal(t, i); next.Payload.Signers[0].Algorithm != evidence.RS256 {
		t.Errorf("the rotated key signs %v", next.Payload.Signers)
	}
	wantError(t, "two actors have the same key", keys.ErrExists, errorOf(i.Keys.Create(t.Context(), evidence.RoleAgent, "other", evidence.RS256, &on)))
	noSecrets(t, c.Dir, soft.PIN)
	again := open(t, installation.Config{Dir: c.Dir})
	wantStatus(t, again, "after opening again", seal(t, again), byOperator)
	if damages, _, err := installation.Fsck(t.Context(), installation.Config{Dir: c.Dir}, nil); err != nil || len(damages) > 0 {
		t.Errorf("examined: %v, %v", damages, err)
	}
}

// noSecrets checks that no file of a data folder contains a PIN, and none contains a private key except that of the
// operator, whose keys went back to a file, and that of the log, which is never on a token.
func noSecrets(t *testing.T, dir, pin string) {
	t.Helper()
	for path, text := range disktest.Files(t, dir) {
		if strings.Contains(string(text), pin) || strings.Contains(string(text), "PRIVATE KEY") && !strings.Contains(path, "operator") && path != installation.LogKeyFile {
			t.Errorf("%s has a secret", path)
		}
	}
}

// TestTokenRemoved: while the token is missing, nothing is sealed, and the error says why. When the token is back,
// sealing works again.
func TestTokenRemoved(t *testing.T) {
	soft := tokentest.New(t)
	_, i := onToken(t, soft.Helper(t))
	seal(t, i)
	if err := i.Ready(t.Context()); err != nil {
		t.Errorf("with the token: %v", err)
	}
	size := must(i.Ledger.Size(t.Context()))
	putBack := soft.Remove(t)
	wantError(t, "ready without a token", token.ErrUnavailable, i.Ready(t.Context()))
	signers := must(i.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))
	wantError(t, "sealed without a token", token.ErrUnavailable, errorOf(i.Ledger.Seal(t.Context(), draft(t), signers)))
	if now := must(i.Ledger.Size(t.Context())); now != size {
		t.Errorf("the log has grown from %d to %d records", size, now)
	}
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
	soft := tokentest.New(t)
	_, i := onToken(t, soft.Helper(t))
	seal(t, i)
	file := ""
	for _, k := range must(i.Keys.Keys(t.Context())) {
		if k.Name == "courier" {
			file = k.File
		}
	}
	text := must(os.ReadFile(file))
	before, after, _ := strings.Cut(string(text), "Uri: ")
	_, after, _ = strings.Cut(after, "\n")
	succeeds(t, os.WriteFile(file, []byte(before+"Uri: pkcs11:token=house;object=operator\n"+after), 0o600))
	again := open(t, installation.Config{Dir: i.Dir})
	signers := must(again.Keys.Signers(t.Context(), evidence.RoleAgent, "courier"))
	wantError(t, "sealed with another key", evidence.ErrSignature, errorOf(again.Ledger.Seal(t.Context(), draft(t), signers)))
}
