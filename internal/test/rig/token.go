package rig

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"jurat/internal/test/must"
)

// A Token is an initialised token of SoftHSM. SOFTHSM2_CONF names its folder as long as the test runs.
type Token struct {
	Label  string
	PIN    string // random, and so in no program
	Module string // the library
	Folder string // of all that SoftHSM keeps; a token is a folder in it
}

// modules are where systems put SoftHSM.
var modules = []string{"/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/pkcs11/libsofthsm2.so", "/usr/local/lib/softhsm/libsofthsm2.so",
	"/opt/homebrew/lib/softhsm/libsofthsm2.so"}

// NewToken makes a token. A test for which SoftHSM or OpenSC is missing is skipped, and fails under CI=true.
func NewToken(t testing.TB) *Token {
	t.Helper()
	token := &Token{Label: "house", PIN: rand.Text(), Module: findFile(t, modules...), Folder: t.TempDir()}
	for _, program := range []string{"softhsm2-util", "pkcs11-tool"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, program)
		}
	}
	config := filepath.Join(t.TempDir(), "softhsm2.conf")
	text := fmt.Sprintf("directories.tokendir = %s\nobjectstore.backend = file\nlog.level = ERROR\n", token.Folder)
	must.Do(t, os.WriteFile(config, []byte(text), 0o600))
	t.Setenv("SOFTHSM2_CONF", config)
	token.Init(t, token.Label)
	return token
}

// Init makes one more token beside the first.
func (k *Token) Init(t testing.TB, label string) {
	t.Helper()
	Run(t, "softhsm2-util", "--init-token", "--free", "--label", label, "--so-pin", "so-"+k.PIN, "--pin", k.PIN)
}

// Tool runs pkcs11-tool as the logged-in user, and returns what it prints.
func (k *Token) Tool(t testing.TB, args ...string) string {
	t.Helper()
	return Run(t, "pkcs11-tool", append([]string{"--module", k.Module, "--token-label", k.Label, "--login", "--pin", k.PIN}, args...)...)
}

// PINFile writes a PIN where jurat-pkcs11 reads it.
func (k *Token) PINFile(t testing.TB, pin string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pin")
	must.Do(t, os.WriteFile(file, []byte(pin+"\n"), 0o600))
	return file
}

// Helper is how jurat starts jurat-pkcs11 for this token: the program and its arguments, separated by blanks.
func (k *Token) Helper(t testing.TB, more ...string) string {
	t.Helper()
	return strings.Join(append([]string{TokenHelper(t), "--module", k.Module, "--token", k.Label, "--pin-file", k.PINFile(t, k.PIN)}, more...), " ")
}

// Command runs jurat-pkcs11 with more arguments, and returns what it prints.
func (k *Token) Command(t testing.TB, args ...string) string {
	t.Helper()
	all := strings.Fields(k.Helper(t, args...))
	return Run(t, all[0], all[1:]...)
}

// Remove takes the token away, as if it were pulled out. What it returns puts the token back.
func (k *Token) Remove(t testing.TB) (putBack func()) {
	t.Helper()
	away := filepath.Join(t.TempDir(), "away")
	must.Do(t, os.Rename(k.Folder, away))
	must.Do(t, os.Mkdir(k.Folder, 0o700))
	return func() {
		t.Helper()
		must.Do(t, os.RemoveAll(k.Folder))
		must.Do(t, os.Rename(away, k.Folder))
	}
}

// Spy is a library that calls the token's, and writes down all calls.
func (k *Token) Spy(t testing.TB) (module, log string) {
	t.Helper()
	module = findFile(t, "/usr/lib/x86_64-linux-gnu/pkcs11-spy.so", "/usr/lib/aarch64-linux-gnu/pkcs11-spy.so", "/usr/lib64/pkcs11-spy.so", "/usr/lib64/pkcs11/pkcs11-spy.so")
	log = filepath.Join(t.TempDir(), "spy.log")
	t.Setenv("PKCS11SPY", k.Module)
	t.Setenv("PKCS11SPY_OUTPUT", log)
	return module, log
}

var built = sync.OnceValues(build)

// TokenHelper returns the path of jurat-pkcs11. A test is skipped where its module or a C compiler is missing, and fails under CI=true.
func TokenHelper(t testing.TB) string {
	t.Helper()
	file, err := built()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("the helper cannot be built here: %v", err)
	}
	return must.Get(file, err)(t)
}

// build puts the program into the folder of the test binary, which the go command removes.
func build() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module: %w", err)
	}
	file := filepath.Join(filepath.Dir(self), "jurat-pkcs11")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Dir = filepath.Join(filepath.Dir(string(module)), "pkcs11")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building jurat-pkcs11: %w\n%s", err, out)
	}
	return file, nil
}

// Run runs a program that must succeed, and returns what it prints.
func Run(t testing.TB, program string, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	command := exec.Command(program, args...)
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, &said)
	}
	return string(out)
}

func findFile(t testing.TB, files ...string) string {
	t.Helper()
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	missing(t, filepath.Base(files[0]))
	return ""
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed, and in CI nothing may be skipped", what)
	}
	t.Skipf("%s is not installed", what)
}
