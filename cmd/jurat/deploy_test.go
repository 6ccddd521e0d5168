package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/must"
)

const deploy = "../../deploy"

// unit reads a systemd unit: the values of each key.
func unit(t *testing.T, name string) map[string][]string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(deploy, name)))(t)
	values := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			values[key] = append(values[key], value)
		}
	}
	return values
}

// ordinary is the user id under which tests that run as root start a program.
const ordinary = 65534

// asOrdinary makes a copy of this program for an ordinary user, in a folder of its own under one in which that user may
// not write.
func asOrdinary(t *testing.T, mode os.FileMode) (program, dir string, attributes *syscall.SysProcAttr) {
	t.Helper()
	found := must.Get(exec.LookPath("jurat"))(t)
	root := must.Get(os.MkdirTemp("", "jurat-ordinary-"))(t)
	t.Cleanup(func() { os.RemoveAll(root) })
	program, dir = filepath.Join(root, "jurat"), filepath.Join(root, "lib", "jurat")
	if out, err := exec.Command("cp", "-L", found, program).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	must.Do(t, os.MkdirAll(dir, 0o755))
	must.Do(t, os.Chmod(dir, mode))
	if os.Geteuid() == 0 {
		must.Do(t, os.Chown(dir, ordinary, ordinary))
		attributes = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	}
	for folder, mode := range map[string]os.FileMode{filepath.Join(root, "lib"): 0o555, root: 0o755} {
		must.Do(t, os.Chmod(folder, mode))
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(root, "lib"), 0o755) })
	return program, dir, attributes
}

// freeAddr returns an address at which no process listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

// TestUnit starts the server as the systemd unit says: as its user, in the empty folder that systemd makes. Its log must
// be JSON.
func TestUnit(t *testing.T) {
	u := unit(t, "jurat.service")
	mode, err := strconv.ParseUint(u["StateDirectoryMode"][0], 8, 32)
	if err != nil || u["StateDirectory"][0] != "jurat" || len(u["ExecStart"]) != 1 {
		t.Fatal(u, err)
	}
	program, dir, attributes := asOrdinary(t, os.FileMode(mode))
	const state = "/var/lib/jurat"
	words := strings.Fields(u["ExecStart"][0])
	at := freeAddr(t)
	server := exec.Command(program, append(words[1:], "--addr", at)...)
	server.Dir, server.SysProcAttr = "/", attributes
	server.Env = []string{"PATH=/usr/bin:/bin"}
	for _, e := range u["Environment"] {
		server.Env = append(server.Env, strings.ReplaceAll(e, state, dir))
	}
	told := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: "@" + filepath.Base(filepath.Dir(dir)) + at}))(t)
	defer told.Close()
	server.Env = append(server.Env, "NOTIFY_SOCKET="+told.LocalAddr().String())
	if !strings.Contains(strings.Join(server.Env, " "), dir) {
		t.Fatalf("the unit does not name %s", state)
	}
	var out, errs bytes.Buffer
	server.Stdout, server.Stderr = &out, &errs
	endsWithTest(t, server)
	must.Do(t, server.Start())
	ready := false
	for end := time.Now().Add(time.Minute); !ready && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get("http://" + at + "/readyz")
		if err == nil {
			ready = answer.StatusCode == http.StatusOK
			answer.Body.Close()
		}
	}
	message := make([]byte, 100)
	must.Do(t, told.SetReadDeadline(time.Now().Add(time.Minute)))
	if n, err := told.Read(message); err != nil || string(message[:n]) != "READY=1" || u["Type"][0] != "notify" {
		t.Errorf("the service manager is told %q, %v", message[:n], err)
	}
	must.Do(t, server.Process.Signal(syscall.SIGTERM))
	if err := server.Wait(); err != nil || !ready {
		t.Fatalf("ready %v, %v\n%s", ready, err, &errs)
	}
	for line := range strings.Lines(errs.String()) {
		if json.Unmarshal([]byte(line), new(map[string]any)) != nil {
			t.Errorf("no line of JSON: %s", line)
		}
	}
	if strings.Contains(errs.String(), "sign-in?link=") {
		t.Errorf("the journal contains a sign-in link:\n%s", &errs)
	}
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		if said, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(deploy, "jurat.service")).CombinedOutput(); err != nil && !strings.Contains(string(said), "not executable") {
			t.Errorf("%v: %s", err, said)
		}
	}
}

// TestAnotherUser: root does not change a data folder of another user, and a server that cannot read its keys is not
// ready.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	program, dir, attributes := asOrdinary(t, 0o700)
	at := freeAddr(t)
	server := exec.Command(program, "--data", dir, "serve", "--addr", at)
	server.Dir, server.SysProcAttr, server.Env = "/", attributes, []string{"PATH=/usr/bin:/bin"}
	var errs lines
	server.Stderr = &errs
	endsWithTest(t, server)
	must.Do(t, server.Start())
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	wait := func(status int) {
		t.Helper()
		got := 0
		for end := time.Now().Add(time.Minute); got != status && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if answer, err := http.Get("http://" + at + "/readyz"); err == nil {
				got = answer.StatusCode
				answer.Body.Close()
			}
		}
		if got != status {
			t.Fatalf("%d, want %d\n%s", got, status, errs.String())
		}
	}
	wait(http.StatusOK)
	_, said := ran(t, exitCannot, "--data", dir, "keys", "new", "agent", "a")
	has(t, said, "it belongs to another user", "sudo -u '")
	foreign := filepath.Join(dir, "keys", "root.key") // as a command that ran as root would leave it
	must.Do(t, os.WriteFile(foreign, nil, 0o600))
	wait(http.StatusServiceUnavailable)
	must.Do(t, os.Remove(foreign))
	wait(http.StatusOK)
}

// TestPublishNothing: a chain or record that does not exist cannot be published.
func TestPublishNothing(t *testing.T) {
	data := t.TempDir() + "/data"
	doing(t, 0, "--data", data, "init")
	_, said := ran(t, exitCannot, "--data", data, "access", "publish", "nowhere", "--reason", "a test", "--by", "tester")
	has(t, said, `no chain and no record "nowhere"`)
	if list := doing(t, 0, "--data", data, "access", "list"); list != "" {
		t.Error(list)
	}

	// A record in a chain is published with its chain, and a record without one by itself.
	id := func(chain string) string {
		t.Helper()
		file := t.TempDir() + "/payload"
		if err := os.WriteFile(file, []byte(`{`+chain+`"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"m-1","prompt":"p","response":"r","parameters":{}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		record, _, err := evidence.Read([]byte(doing(t, 0, "--data", data, "seal", file)))
		must.Do(t, err)
		return record.Payload.RecordID
	}
	alone, chained := id(""), id(`"chain_id":"c",`)
	doing(t, 0, "--data", data, "access", "publish", alone, "--reason", "a test", "--by", "tester")
	_, said = ran(t, exitCannot, "--data", data, "access", "publish", chained, "--reason", "a test", "--by", "tester")
	has(t, said, `is in the chain "c"`)
}
