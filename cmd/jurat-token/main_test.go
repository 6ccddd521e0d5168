package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/token"
	"jurat/internal/tokentest"
)

const mia = "pkcs11:token=house;object=mia"

func client(t testing.TB, helper token.Helper) *token.Client {
	t.Helper()
	c, err := token.New(helper)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func generate(t testing.TB, c *token.Client, uri string) token.Key {
	t.Helper()
	key, err := c.Generate(t.Context(), uri, evidence.ES256)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var digest = func() []byte { d := sha256.Sum256([]byte("text")); return d[:] }()

// TestChild: jurat's client starts the program, and the program ends with the client.
func TestChild(t *testing.T) {
	soft := tokentest.New(t)
	c, err := token.New(token.Helper{Program: soft.Helper(t)})
	if err != nil {
		t.Fatal(err)
	}
	key := generate(t, c, mia)
	if _, err := c.Sign(t.Context(), key.URI, key.Public, digest); err != nil {
		t.Fatal(err)
	}
	again, err := c.Key(t.Context(), mia)
	if err != nil || !again.Protection.NeverExtractable || !again.Protection.Local || again.Protection.Kind != "pkcs11" {
		t.Errorf("the key is %+v, %v", again, err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("the program ended with an error: %v", err)
	}
	if _, err := c.Sign(t.Context(), key.URI, key.Public, digest); err == nil {
		t.Error("a closed client still signs")
	}
}

// TestChildKilled kills the program again and again while many callers sign. Each call gives a valid signature or an
// error, and later calls work.
func TestChildKilled(t *testing.T) {
	soft := tokentest.New(t)
	args := soft.Helper(t)
	script := filepath.Join(t.TempDir(), "jurat-token-pid")
	pids := filepath.Join(t.TempDir(), "pids")
	text := "#!/bin/sh\necho $$ >> " + pids + "\nexec " + strings.Join(args, " ") + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	c := client(t, token.Helper{Program: []string{script}})
	key := generate(t, c, mia)
	var signed, failed atomic.Int64
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch _, err := c.Sign(t.Context(), key.URI, key.Public, digest); {
				case err == nil:
					signed.Add(1)
				case errors.Is(err, token.ErrUnavailable):
					failed.Add(1)
					time.Sleep(10 * time.Millisecond)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		before := signed.Load()
		for deadline := time.Now().Add(time.Minute); signed.Load() < before+10; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("signing does not go on")
			}
		}
		kill(t, pids)
	}
	close(stop)
	callers.Wait()
	if failed.Load() == 0 {
		t.Error("no call failed, so the test has killed no program")
	}
}

// kill kills the child that was started last.
func kill(t *testing.T, pids string) {
	t.Helper()
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(text))
	tokentest.Run(t, "kill", "-9", all[len(all)-1])
}

// TestWrongPIN: a client asks again and again with a wrong PIN. The token gets the PIN once.
func TestWrongPIN(t *testing.T) {
	soft := tokentest.New(t)
	spy, log := soft.Spy(t)
	args := []string{tokentest.Program(t), "--module", spy, "--token", soft.Label, "--pin-file", soft.PINFile(t, "wrong-4711")}
	for range 2 { // at the second attempt, the token reports that a wrong PIN was tried
		c := client(t, token.Helper{Program: args})
		for range 5 {
			if _, err := c.Keys(t.Context()); !errors.Is(err, token.ErrPIN) {
				t.Errorf("error %v", err)
			}
		}
	}
	text, err := os.ReadFile(log)
	if n := strings.Count(string(text), "C_Login\n"); err != nil || n != 1 {
		t.Errorf("the token got the PIN %d times: %v", n, err)
	}
}

// TestTwoPrograms: two programs sign with one token, and each sees a key that the other has made.
func TestTwoPrograms(t *testing.T) {
	soft := tokentest.New(t)
	one, two := client(t, token.Helper{Program: soft.Helper(t)}), client(t, token.Helper{Program: soft.Helper(t)})
	if _, err := two.Keys(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := generate(t, one, mia)
	var callers sync.WaitGroup
	for _, c := range []*token.Client{one, two} {
		for range 4 {
			callers.Go(func() {
				for range 50 {
					if _, err := c.Sign(t.Context(), key.URI, key.Public, digest); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	callers.Wait()
}

// TestListen reaches the program over a socket that other users cannot reach.
func TestListen(t *testing.T) {
	soft := tokentest.New(t)
	dir, err := os.MkdirTemp("", "token") // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close() // as a killed program leaves it
	args := append(soft.Helper(t)[1:], "--listen", path)
	ended := start(t, args)
	waitFor(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	c := client(t, token.Helper{Socket: path})
	key := generate(t, c, mia)
	if _, err := c.Sign(t.Context(), key.URI, key.Public, digest); err != nil {
		t.Error(err)
	}
	if code, said := result(t, args...); code != exitCannot || !strings.Contains(said, "another program listens") {
		t.Errorf("a second one on the same socket: %d, %s", code, said)
	}
	ended(syscall.SIGTERM)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	if _, err := c.Sign(t.Context(), key.URI, key.Public, digest); !errors.Is(err, token.ErrUnavailable) {
		t.Errorf("without the program: %v", err)
	}
}

// start starts the program. The returned function ends it with a signal, and checks that it ends without an error.
func start(t *testing.T, args []string) func(os.Signal) {
	t.Helper()
	command := exec.Command(tokentest.Program(t), args...)
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill() }) // fails if the program has ended
	return func(s os.Signal) {
		t.Helper()
		if err := command.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the program ends with %v: %s", err, &said)
		}
	}
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", path)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func result(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var said bytes.Buffer
	code := run(args, streams{io.NopCloser(strings.NewReader("")), &said, &said})
	return code, said.String()
}

// TestRefused: mistakes are reported before a token gets a PIN.
func TestRefused(t *testing.T) {
	soft := tokentest.New(t)
	spy, log := soft.Spy(t)
	open := soft.PINFile(t, soft.PIN)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	good := soft.PINFile(t, soft.PIN)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no library":               {[]string{"--pin-file", good, "keys"}, "--module"},
		"a wrong library":          {[]string{"--module", good, "--pin-file", good, "keys"}, "loading PKCS #11 library"},
		"an open PIN file":         {[]string{"--module", spy, "--pin-file", open, "keys"}, "everybody on this machine can read"},
		"an empty PIN file":        {[]string{"--module", spy, "--pin-file", soft.PINFile(t, ""), "keys"}, "want one line"},
		"two lines":                {[]string{"--module", spy, "--pin-file", soft.PINFile(t, "a\nb"), "keys"}, "want one line"},
		"two sources":              {[]string{"--module", spy, "--pin-file", good, "--pin-credential", "pin", "keys"}, "only one"},
		"no credential":            {[]string{"--module", spy, "--pin-credential", "../pin", "keys"}, "no credential"},
		"another token":            {[]string{"--module", spy, "--token", "other", "--pin-file", good, "keys"}, "no token"},
		"a PIN in the URI":         {[]string{"--module", spy, "--token", "pkcs11:token=house?pin-value=1", "--pin-file", good, "keys"}, "a PIN"},
		"a group without a socket": {[]string{"--module", spy, "--pin-file", good, "--group", "root"}, "--listen"},
		"sessions":                 {[]string{"--module", spy, "--pin-file", good, "--sessions", "0", "keys"}, "--sessions"},
		"an unknown command":       {[]string{"--module", spy, "export"}, "export"},
	} {
		if code, said := result(t, tt.args...); code != exitCannot || !strings.Contains(said, tt.want) {
			t.Errorf("%s: exit code %d, want %q in:\n%s", name, code, tt.want, said)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(text), "C_Login\n") {
		t.Errorf("a token got a PIN: %v", err)
	}
}

// TestCommands does by hand what jurat does over the protocol.
func TestCommands(t *testing.T) {
	soft := tokentest.New(t)
	run := func(args ...string) string {
		t.Helper()
		return tokentest.Run(t, tokentest.Program(t), append(soft.Helper(t)[1:], args...)...)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", filepath.Dir(soft.PINFile(t, soft.PIN)))
	made := run("generate", mia)
	if !strings.HasPrefix(made, "-----BEGIN PUBLIC KEY-----\n") || run("public", mia) != made {
		t.Errorf("made\n%s, and later\n%s", made, run("public", mia))
	}
	if listed := run("keys"); !strings.Contains(listed, "ES256  sha256:") || !strings.Contains(listed, "object=mia") {
		t.Errorf("keys are\n%s", listed)
	}
	if tokens := tokentest.Run(t, tokentest.Program(t), "--module", soft.Module, "tokens"); !strings.Contains(tokens, "pkcs11:token=house;") {
		t.Errorf("tokens are\n%s", tokens)
	}
	credential := []string{"--module", soft.Module, "--pin-credential", "pin", "keys"}
	if listed := tokentest.Run(t, tokentest.Program(t), credential...); listed != run("keys") {
		t.Errorf("with a credential:\n%s", listed)
	}
	if help := tokentest.Run(t, tokentest.Program(t), "--help"); !strings.Contains(help, "JURAT_TOKEN_HELPER") || !strings.Contains(help, "tried once") {
		t.Errorf("the help is\n%s", help)
	}
}
