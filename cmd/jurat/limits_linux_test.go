package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// onDisk is a server in a process of its own, with a data folder on a small disk.
type onDisk struct {
	*machine
	disk         *rig.Disk
	agent        string   // a token
	submitter    string   // a token
	spare        []string // tokens that can be revoked
	acknowledged []string // ids of records
}

// TestServeOnFullDisk fills the disk under 'jurat serve', once with a file of another program and once with records.
// Records can be read, records that do not fit are refused, tokens can be revoked, and the server can be stopped and
// started. With free space everything works again, and nothing is lost.
func TestServeOnFullDisk(t *testing.T) {
	rig.OnDisk(t, 16, func(disk *rig.Disk) {
		s := &onDisk{disk: disk, machine: &machine{t: t, env: os.Environ(), args: []string{"--data", filepath.Join(disk.Path, "data")}}}
		t.Cleanup(s.kill)
		s.begin()
		s.agent, s.submitter = s.grant("fleet", "agent"), s.grant("sam", "submitter")
		for _, name := range []string{"one", "two"} {
			s.spare = append(s.spare, s.grant(name, "auditor"))
		}
		for range 3 {
			s.wantSealed(2000)
		}

		s.isFull(s.spare[0])
		s.makeRoom()
		s.isWell()

		for n := 0; ; n++ {
			if status, _, _ := s.post(s.agent, "/v1/records", s.payload(200_000)); status == http.StatusServiceUnavailable {
				break
			}
			must.Need(t, n != 1000, "the disk does not become full")
		}
		s.isFull(s.spare[1])
		disk.Resize(t, 64)
		s.makeRoom()
		s.isWell()

		must.Want(t, s.stop(), nil)
		must.Contain(t, s.do("log", "fsck"), "the log is whole")
	})
}

func (s *onDisk) begin() {
	s.t.Helper()
	must.Do(s.t, s.start())
}

// isFull checks the server on a full disk, before and after a restart. It revokes a token in between.
func (s *onDisk) isFull(stolen string) {
	s.t.Helper()
	s.refuses()
	status, body := s.get(stolen, "/v1/records")
	must.Hold(s.t, status == http.StatusOK, "before it is revoked: %d %s", status, body)
	s.do("access", "revoke", stolen, "--reason", "stolen", "--by", "tester")
	status, body = s.get(stolen, "/v1/records")
	must.Hold(s.t, status == http.StatusUnauthorized, "after it is revoked: %d %s", status, body)
	must.Say(s.t, s.cannot("access", "grant", "noa", "auditor", "--reason", "a test", "--by", "tester"), "no space left", "granting")
	out := s.do("log", "fsck")
	must.Hold(s.t, strings.Contains(out, "the log is whole"), "%v", out)
	must.Want(s.t, s.stop(), nil, "stopping on a full disk")
	s.begin()
	s.refuses()
	status, body = s.get(stolen, "/v1/records")
	must.Hold(s.t, status == http.StatusUnauthorized, "revoked, after the start: %d %s", status, body)
}

// refuses checks that the server can be read, refuses every write, and says why.
func (s *onDisk) refuses() {
	s.t.Helper()
	s.disk.Fill(s.t, s.filler()) // also the space that a start has freed
	s.wantUnready()
	for _, ask := range []struct{ token, path, body string }{
		{s.agent, "/v1/records", s.payload(200_000)},
		{s.submitter, "/v1/submissions", s.trial()},
	} {
		status, header, body := s.post(ask.token, ask.path, ask.body)
		for n := 0; status < 300 && n < 100; n++ { // the write-ahead log, when it begins anew, has room for a few
			status, header, body = s.post(ask.token, ask.path, ask.body)
		}
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(body, "no space left") || strings.Contains(body, s.disk.Path) {
			s.t.Errorf("POST %s: %d, Retry-After %q: %s", ask.path, status, header.Get("Retry-After"), body)
		}
	}
	s.reads()
}

func (s *onDisk) filler() string { return filepath.Join(s.disk.Path, "filler") }

func (s *onDisk) makeRoom() {
	s.t.Helper()
	must.Do(s.t, os.Remove(s.filler()))
}

func (s *onDisk) wantUnready() {
	s.t.Helper()
	time.Sleep(1100 * time.Millisecond) // the server checks once a second
	answer := must.Get(http.Get(s.address() + "/readyz"))(s.t)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(body), "no space left") || strings.Contains(string(body), s.disk.Path) {
		s.t.Errorf("/readyz: %s, Retry-After %q: %s %v", answer.Status, answer.Header.Get("Retry-After"), body, err)
	}
}

// reads reads everything that was acknowledged.
func (s *onDisk) reads() {
	s.t.Helper()
	for _, path := range []string{"/healthz", "/v1/trust", "/log/checkpoint", "/"} {
		status, body := s.get("", path)
		must.Hold(s.t, status == http.StatusOK, "%s: %d %s", path, status, body)
	}
	for _, id := range s.acknowledged {
		status, body := s.get(s.agent, "/v1/records/"+id)
		must.Hold(s.t, status == http.StatusOK, "reading %s: %d %s", id, status, body)
	}
}

// isWell checks that everything works when there is free space.
func (s *onDisk) isWell() {
	s.t.Helper()
	time.Sleep(1100 * time.Millisecond) // the server checks once a second
	if status, body := s.get("", "/readyz"); status != http.StatusOK {
		s.t.Errorf("/readyz with room: %d %s", status, body)
	}
	s.wantSealed(100_000)
	status, _, body := s.post(s.submitter, "/v1/submissions", s.trial())
	must.Hold(s.t, status == http.StatusAccepted, "a trial with room: %d %s", status, body)
	s.reads()
}

// trial returns a case that rules can try.
func (s *onDisk) trial() string {
	s.t.Helper()
	card, conversation, err := examples.Read("kitchen-return")
	must.Do(s.t, err)
	return fmt.Sprintf(`{"agentCard":%s,"conversation":%s}`, card, conversation)
}

func (s *onDisk) payload(size int) string {
	return fmt.Sprintf(`{"agent_id":"fleet","request_id":"1","timestamp":"2026-01-01T00:00:00Z","model":"m","model_version":"1","prompt":"p","response":%q,"parameters":{}}`,
		strings.Repeat("x", size))
}

func (s *onDisk) wantSealed(size int) {
	s.t.Helper()
	status, _, body := s.post(s.agent, "/v1/records", s.payload(size))
	must.Need(s.t, status == http.StatusCreated, "sealing with room: %d %s", status, body)
}

// post sends a document, and records the id of an acknowledged record.
func (s *onDisk) post(token, path, body string) (int, http.Header, string) {
	s.t.Helper()
	r := must.Get(http.NewRequestWithContext(s.t.Context(), "POST", s.address()+path, strings.NewReader(body)))(s.t)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer := must.Get(http.DefaultClient.Do(r))(s.t)
	defer answer.Body.Close()
	doc := must.Get(io.ReadAll(answer.Body))(s.t)
	if answer.StatusCode == http.StatusCreated {
		record := must.Get(evidence.Open(doc))(s.t)
		s.acknowledged = append(s.acknowledged, record.Payload.RecordID)
	}
	return answer.StatusCode, answer.Header, string(doc)
}

// cannot runs a command that must fail, and returns its error.
func (s *onDisk) cannot(args ...string) error {
	s.t.Helper()
	var errs bytes.Buffer
	cmd := s.command(args...)
	cmd.Stderr = &errs
	if err := cmd.Run(); err == nil {
		return nil
	}
	if code := cmd.ProcessState.ExitCode(); code != exitCannot {
		s.t.Errorf("jurat %s: exit code %d", strings.Join(args, " "), code)
	}
	return errors.New(errs.String())
}

const asksWise = `{"model":"wise","messages":[{"role":"user","content":"the first question"}]}`

// TestRecorderWithoutFolder: when its data folder is gone, or its database was emptied, a recorder of closed mode refuses calls and one of open mode passes them. Both end with an error, and say how many calls no record has.
func TestRecorderWithoutFolder(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct {
		status int
		says   string
	}{"closed": {503, "a call is refused"}, "open": {200, "calls could not be sealed"}, "emptied": {503, "a call is refused"}} {
		emptied := mode == "emptied"
		if emptied {
			mode = "closed"
		}
		model := newWiseModel(t)
		data := filepath.Join(t.TempDir(), "data")
		at, said, stop := serve(t, "--data", data, "record", "proxy", "--mode", mode, "--agent", "mia", "--upstream", "wise="+model.URL, "--listen", "127.0.0.1:0")
		for n := range 4 {
			answer := must.Get(http.Post(at+"/wise/v1/chat/completions", "application/json", strings.NewReader(asksWise)))(t)
			_, _ = io.Copy(io.Discard, answer.Body) // a refused one may break off
			answer.Body.Close()
			must.Hold(t, (n <= 0 || answer.StatusCode == want.status) && (n != 0 || answer.StatusCode == 200),
				"%s, call %d: status %d", mode, n, answer.StatusCode)
			if n == 0 && emptied {
				must.Do(t, os.Truncate(filepath.Join(data, "jurat.db"), 0))
			} else if n == 0 {
				must.Do(t, os.Rename(data, data+".away"))
				must.Do(t, os.RemoveAll(data+".away"))
			}
		}
		if code := stop(); code == 0 || !strings.Contains(said.String(), want.says) || !strings.Contains(said.String(), "hint: put the data folder back") {
			t.Errorf("%s: exit code %d\n%s", mode, code, said)
		}
		_, err := os.Stat(data)
		must.Hold(t, mode != "closed" || emptied || errors.Is(err, os.ErrNotExist), "%s: something made the folder again: %v", mode, err)
	}
}

// TestServeWithoutFolder: a server whose data folder was renamed seals nothing, says that it is not ready, and goes on when the folder is back.
func TestServeWithoutFolder(t *testing.T) {
	t.Parallel()
	s := &onDisk{machine: &machine{t: t, env: os.Environ(), args: []string{"--data", filepath.Join(t.TempDir(), "data")}}}
	t.Cleanup(s.kill)
	s.begin()
	s.agent = s.grant("fleet", "agent")
	s.wantSealed(10)
	data := s.args[1]
	must.Do(t, os.Rename(data, data+".away"))
	for _, ask := range []string{s.payload(10), strings.Replace(s.payload(10), "{", `{"chain_id": "another", `, 1)} {
		status, _, body := s.post(s.agent, "/v1/records", ask)
		must.Hold(t, status == http.StatusServiceUnavailable && !strings.Contains(body, data), "while it is away: %d %s", status, body)
	}
	status, body := s.get("", "/readyz")
	must.Hold(t, status == http.StatusServiceUnavailable && strings.Contains(body, "not where they were opened"), "/readyz: %d %s", status, body)
	must.Fail(t, os.ErrNotExist)(os.Stat(data))
	must.Do(t, os.Rename(data+".away", data))
	s.wantSealed(10)
	must.Want(t, s.stop(), nil)
	must.Contain(t, s.do("log", "fsck"), "the log is whole")
}

// TestSealWithoutFolder: the data folder is renamed while a time-stamping authority is asked. 'jurat seal' prints no record.
func TestSealWithoutFolder(t *testing.T) {
	t.Parallel()
	tsa := must.Get(jurattest.StartTSA())(t)
	t.Cleanup(tsa.Close)
	to := must.Get(url.Parse(tsa.URL))(t)
	data := filepath.Join(t.TempDir(), "data")
	var once sync.Once
	armed := false
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if armed {
			once.Do(func() { _ = os.Rename(data, data+".away") })
		}
		httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	doing(t, 0, "--data", data, "init")
	doing(t, 0, "--data", data, "tsa", "outside", between.URL, "--root", written(t, string(tsa.PEM())))
	armed = true
	payload := written(t, `{"agent_id": "a", "request_id": "r", "timestamp": "2026-01-31T16:15:00Z", "model": "m", "model_version": "m-1", "prompt": "p", "response": "r", "parameters": {}}`)
	out, errs := ran(t, exitCannot, "--data", data, "seal", payload)
	must.Equal(t, out, "")
	must.Contain(t, errs, "not where they were opened")
}

// TestRecorderUnmounted: the disk with the data folder is taken away while a recorder runs. It refuses calls, and ends with an error.
func TestRecorderUnmounted(t *testing.T) {
	rig.OnDisk(t, 64, func(disk *rig.Disk) {
		model := newWiseModel(t)
		at, said, stop := serve(t, "--data", filepath.Join(disk.Path, "data"), "record", "proxy", "--agent", "mia", "--upstream", "wise="+model.URL, "--listen", "127.0.0.1:0")
		for n, want := range []int{200, 503, 503} {
			answer := must.Get(http.Post(at+"/wise/v1/chat/completions", "application/json", strings.NewReader(asksWise)))(t)
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			must.Hold(t, answer.StatusCode == want, "call %d: status %d, want %d", n, answer.StatusCode, want)
			if n == 0 {
				must.Do(t, syscall.Unmount(disk.Path, syscall.MNT_DETACH))
			}
		}
		code := stop()
		must.Hold(t, code != 0, "exit code %d\n%s", code, said)
	})
}

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
	must.Need(t, strings.Count(documented, "\n") == 4 && strings.Contains(documented, "systemctl enable --now jurat"),
		"docs/operations.md does not say how to install the unit, or this test does not find it:\n%s", documented)
	for name, text := range map[string]string{"documented": documented, "operator": asOperator} {
		must.Do(t, os.WriteFile(filepath.Join(b.in, name), []byte(text), 0o644))
	}
	said := b.run(t, "source /in/operator")
	must.Contain(t, said, "https://jurat.example/sign-in?link=")
	for name, lines := range map[string]int{"status": 3, "result": 1} {
		text, err := os.ReadFile(filepath.Join(b.out, name))
		must.Hold(t, err == nil && strings.Count(string(text), "\n") == lines && (name != "result" || string(text) == "success\n"),
			"%s: %q, %v", name, text, err)
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
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		must.Need(t, err == nil, "%s", out)
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
			must.Hold(t, string(code) == "0\n", "it ended with %s%s", code, out)
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
