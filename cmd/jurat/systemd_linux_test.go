package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"jurat/internal/must"
)

// A boot is a systemd that runs a command in a world of its own.
type boot struct{ in, out string }

// asOperator installs and starts the service with the very commands of docs/operations.md, and then does what operators do: it signs
// people in, kills the server, looks at what the server may do, and stops it.
const asOperator = `
ready() { for i in {1..300}; do curl -sf http://127.0.0.1:8417/readyz && return; sleep 0.2; done; return 1; }
source /in/documented
ready
[ "$(stat -c "%U %a" /var/lib/jurat)" = "jurat 700" ]
first=$(systemctl show -P MainPID jurat)
[ "$(stat -c %U /proc/$first)" = jurat ]
grep -E "^(NoNewPrivs:\s1|CapBnd:\s0000000000000000|Seccomp:\s2)$" /proc/$first/status >/out/status
systemctl kill -s KILL jurat
until [ "$(systemctl show -P MainPID jurat)" != $first ] && [ "$(systemctl is-active jurat)" = active ]; do sleep 0.2; done
ready
systemctl stop jurat
systemctl show -P Result jurat >/out/result
`

// TestUnitUnderSystemd boots systemd in namespaces, and installs the unit there as docs/operations.md says. The server must run under all
// restrictions of the unit.
func TestUnitUnderSystemd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can boot systemd in namespaces")
	}
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("there is no systemd")
	}
	b := prepare(t)
	doc := must.Get(os.ReadFile("../../docs/operations.md"))(t)
	documented := regexp.MustCompile(`(?m)^    useradd .*\n(?:    .*\n)+`).FindString(string(doc))
	if strings.Count(documented, "\n") != 4 || !strings.Contains(documented, "systemctl enable --now jurat") {
		t.Fatalf("docs/operations.md does not say how to install the unit, or this test does not find it:\n%s", documented)
	}
	for name, text := range map[string]string{"documented": documented, "operator": asOperator} {
		must.Do(t, os.WriteFile(filepath.Join(b.in, name), []byte(text), 0o644))
	}
	said := b.run(t, "source /in/operator")
	has(t, said, "https://jurat.example/sign-in?link=")
	for name, lines := range map[string]int{"status": 3, "result": 1} {
		text, err := os.ReadFile(filepath.Join(b.out, name))
		if err != nil || strings.Count(string(text), "\n") != lines || name == "result" && string(text) != "success\n" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if t.Failed() {
		t.Log(said)
	}
}

// prepare makes a folder with what an operator has unpacked.
func prepare(t *testing.T) boot {
	t.Helper()
	world := t.TempDir()
	b := boot{filepath.Join(world, "in"), filepath.Join(world, "out")}
	found := must.Get(exec.LookPath("jurat"))(t)
	for _, words := range [][]string{{"mkdir", b.in, b.out, filepath.Join(world, "base")}, {"cp", "-L", found, filepath.Join(b.in, "jurat")}, {"cp", "-R", deploy, b.in}} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	if _, err := exec.LookPath("sudo"); err != nil { // the documents use it; runuser does the same for root
		must.Do(t, os.WriteFile(filepath.Join(b.in, "sudo"), []byte("#!/bin/bash\nexec runuser -u \"$2\" -- \"${@:3}\"\n"), 0o755))
	}
	return b
}

// run boots, waits until the command has ended, and returns what it said. Nothing that it started outlives it.
func (b boot) run(t *testing.T, command string) string {
	t.Helper()
	script := must.Get(filepath.Abs("testdata/systemd.sh"))(t)
	var said lines
	systemd := exec.Command("timeout", "-s", "KILL", "300", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc", "--net", "bash", script, filepath.Dir(b.in), command)
	systemd.Stdout, systemd.Stderr = &said, &said
	systemd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Do(t, systemd.Start())
	ended := make(chan error, 1)
	go func() { ended <- systemd.Wait() }()
	defer func() { _ = syscall.Kill(-systemd.Process.Pid, syscall.SIGKILL); <-ended }()
	for end := time.Now().Add(4 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		out, _ := os.ReadFile(filepath.Join(b.out, "said"))
		if code, err := os.ReadFile(filepath.Join(b.out, "done")); err == nil {
			if string(code) != "0\n" {
				t.Errorf("it ended with %s%s", code, out)
			}
			return string(out)
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("systemd ended: %v\n%s%s", err, said.String(), out)
		default:
		}
	}
	out, _ := os.ReadFile(filepath.Join(b.out, "said"))
	t.Fatalf("it did not come to its end:\n%s%s", said.String(), out)
	return ""
}
