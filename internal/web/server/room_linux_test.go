package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/internal/web/server"
)

// TestFullDisk fills the disk under a running server. Acknowledged records stay, what does not fit is refused with a
// clear message, the server reports that it is not ready and still answers. When there is space again, everything works.
func TestFullDisk(t *testing.T) {
	rig.OnDisk(t, 12, func(disk *rig.Disk) {
		dir := filepath.Join(disk.Path, "data")
		r := startIn(t, dir, nil)
		r.ready(t, http.StatusOK)
		token := r.token(t, "fleet", access.Agent)
		for _, name := range []string{"one", "two"} {
			r.spare = append(r.spare, r.token(t, name, access.Auditor))
		}
		var acknowledged []string
		sealOne := func(size int) error {
			answer, body := send(t, http.DefaultClient, "POST", r.URL+"/v1/records", fmt.Sprintf(`{"agent_id":"fleet","request_id":"1","timestamp":"2026-01-01T00:00:00Z",
				"model":"m","model_version":"1","prompt":"p","response":%q,"parameters":{}}`, strings.Repeat("x", size)), "Authorization", "Bearer "+token)
			if answer.StatusCode == http.StatusCreated {
				record := must.Get(evidence.Open([]byte(body)))(t)
				acknowledged = append(acknowledged, record.Payload.RecordID)
				return nil
			}
			problem(t, api.ErrUnavailable)(answer, body)
			return errors.New(body)
		}
		filler := filepath.Join(disk.Path, "filler")
		for _, fill := range []bool{true, false} { // first another program fills the disk, then the log itself
			if fill {
				for range 5 {
					must.Do(t, sealOne(2000))
				}
				disk.Fill(t, filler)
				r.ready(t, http.StatusServiceUnavailable) // before any record has failed
			}
			var refused error
			for n := 0; refused == nil; n++ {
				must.Need(t, n != 10_000, "the disk does not become full")
				refused = sealOne(100_000)
			}
			for range 3 {
				if err := sealOne(100_000); err == nil {
					t.Log("one more had room")
				}
			}
			r.ready(t, http.StatusServiceUnavailable)
			r.revokes(t) // a token can be revoked even on a full disk
			log := r.log.String()
			must.Hold(t, strings.Contains(log, "no space left"), "the server's log does not say why: %s", log)
			r.reads(t, token, acknowledged[0])
			r.starts(t)
			if fill {
				must.Do(t, os.Remove(filler))
			} else {
				disk.Resize(t, 60)
			}
			r.ready(t, http.StatusOK) // no record has to be tried first
			must.Want(t, sealOne(100_000), nil)
		}
		for _, id := range acknowledged {
			r.reads(t, token, id)
		}
		whole(t, r, dir, len(acknowledged))
	})
}

// revokes revokes a token through a second opening of the installation. The running server must refuse the token at
// once.
func (r *running) revokes(t *testing.T) {
	t.Helper()
	must.Need(t, len(r.spare) != 0, "there is no token to revoke")
	token := r.spare[0]
	r.spare = r.spare[1:]
	second, err := installation.Open(t.Context(), installation.Config{Dir: r.Installation.Dir})
	must.Need(t, err == nil, "opening: %v", err)
	register := access.New(access.Config{Ledger: second.Ledger, Keys: second.Keys})
	err = register.Revoke(t.Context(), access.IDOf(token), "stolen", "tester")
	must.Want(t, errors.Join(err, second.Close()), nil)
	problem(t, api.ErrRevoked)(send(t, http.DefaultClient, "GET", r.URL+"/v1/records", "", "Authorization", "Bearer "+token))
}

// starts starts a second server on the same folder.
func (r *running) starts(t *testing.T) {
	t.Helper()
	again := startIn(t, r.Installation.Dir, nil)
	again.ready(t, http.StatusServiceUnavailable)
	// Its ticket is a file, for which there may just be no room.
	_, err := again.SignInLink(t.Context(), "operator", access.Operator)
	must.Hold(t, err == nil || errors.Is(err, syscall.ENOSPC), "the sign-in link: %v", err)
	must.Want(t, again.stop(), nil)
}

// reads asks for a record.
func (r *running) reads(t *testing.T, token, id string) {
	t.Helper()
	answers(t, http.StatusOK, http.DefaultClient, "GET", r.URL+"/v1/records/"+id, "", "Authorization", "Bearer "+token)
}

// whole ends the server, examines its log, and opens it again.
func whole(t *testing.T, r *running, dir string, acknowledged int) {
	t.Helper()
	must.Do(t, errors.Join(r.stop(), r.Installation.Close()))
	damages, size, err := installation.Fsck(t.Context(), installation.Config{Dir: dir}, nil)
	must.Hold(t, err == nil && len(damages) <= 0 && size >= int64(acknowledged), "%d records, %d acknowledged: %v, %v", size, acknowledged, damages, err)
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: dir}))(t)
	must.Want(t, errors.Join(i.Ledger.CanAppend(t.Context()), i.Close()), nil)
}

// TestReadOnlyDisk: an installation on a read-only disk can be read, in every state that a crash can leave. Writes get a
// clear message, and no file changes.
func TestReadOnlyDisk(t *testing.T) {
	rig.OnDisk(t, 30, func(disk *rig.Disk) {
		dir := filepath.Join(disk.Path, "data")
		c := installation.Config{Dir: dir}
		i, _, err := installation.OpenOrCreate(t.Context(), c)
		must.Do(t, err)
		grant := func(i *installation.Installation) error {
			_, _, err := access.New(access.Config{Ledger: i.Ledger, Keys: i.Keys}).Grant(t.Context(),
				access.Order{Name: "noa", Roles: []access.Role{access.Auditor}, For: time.Hour, Reason: "test", By: "operator"})
			return err
		}
		must.Do(t, grant(i))
		reads := func(what string) {
			t.Helper()
			i, err := installation.Open(t.Context(), c)
			if err != nil {
				t.Errorf("%s: opening: %v", what, err)
				return
			}
			if size, err := i.Ledger.Size(t.Context()); err != nil || size == 0 {
				t.Errorf("%s: %d records, %v", what, size, err)
			}
			for _, err := range []error{i.Ledger.ReadOnly(), i.Ledger.CanAppend(t.Context())} {
				must.Hold(t, errors.Is(err, ledger.ErrReadOnly) && strings.Contains(err.Error(), dir), "%s: what it takes: %v", what, err)
			}
			must.Want(t, grant(i), ledger.ErrReadOnly, what, "granting")
			must.Want(t, i.Close(), nil, what, "closing")
			damages, size, err := installation.Fsck(t.Context(), c, nil)
			must.Hold(t, err == nil && len(damages) <= 0 && size != 0, "%s: examining %d records: %v, %v", what, size, damages, err)
		}
		disk.Mirror(t, dir, filepath.Join(disk.Path, "mirror"))
		c.Dir, dir = filepath.Join(disk.Path, "mirror"), filepath.Join(disk.Path, "mirror")
		reads("beside a process that writes")
		c.Dir, dir = i.Dir, i.Dir
		must.Do(t, i.Close())
		disk.ReadOnly(t, true)
		reads("closed")
		must.Want(t, installation.Create(t.Context(), installation.Config{Dir: disk.Path + "/other"}), syscall.EROFS)
		disk.ReadOnly(t, false)
		r := startIn(t, dir, nil)
		r.ready(t, http.StatusOK)
		whole(t, r, dir, 0)
	})
}

const (
	memoryForTest = 640 << 20 // what the server is told that it may hold
	bodyForTest   = 4 << 20
	hardLimit     = 1 << 30 // beyond which the operating system gives it nothing
	serveHere     = "JURAT_TEST_SERVE_IN"
)

// TestServeForMemory is the server process of TestMemoryIsBounded, with limited memory. By itself it tests nothing.
func TestServeForMemory(t *testing.T) {
	dir := os.Getenv(serveHere)
	if dir == "" {
		t.Skip("TestMemoryIsBounded runs this test")
	}
	debug.SetMemoryLimit(memoryForTest)
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: hardLimit, Max: hardLimit}))
	jury := withJury(t)
	r := startIn(t, dir, func(c *server.Config) {
		jury(c)
		limitless(c)
		c.Memory, c.MaxBody = memoryForTest, bodyForTest
	})
	fmt.Println("AT", r.URL, r.token(t, "a", access.Agent), r.token(t, "b", access.Agent), r.token(t, "s", access.Submitter), r.token(t, "auditor", access.Auditor))
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test is finished
}

// TestMemoryIsBounded sends all large requests at once to a server with the memory limit hardLimit: uploads,
// submissions, a chain larger than the server may hold, slow readers of it, lists and pages. The server must stay alive,
// refuse what is too much at that moment, and answer afterwards.
func TestMemoryIsBounded(t *testing.T) {
	if os.Getenv("JURAT_TEST_LONG") == "" {
		t.Skip("it moves gigabytes: set JURAT_TEST_LONG=1")
	}
	child := exec.Command(os.Args[0], "-test.run=^TestServeForMemory$", "-test.v")
	child.Env = append(os.Environ(), serveHere+"="+t.TempDir()+"/data")
	child.Stderr = os.Stderr
	in, out := must.Get(child.StdinPipe())(t), must.Get(child.StdoutPipe())(t)
	must.Do(t, child.Start())
	defer func() { in.Close(); _ = child.Wait() }()
	var at []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if line, ok := strings.CutPrefix(lines.Text(), "AT "); ok {
			at = strings.Fields(line)
			break
		}
	}
	must.Len(t, at, 5)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	url, agent, other, submitter, auditor := at[0], at[1], at[2], at[3], at[4]

	long := strings.Repeat("x", bodyForTest-4096)
	var mu sync.Mutex
	seen := map[string]int{} // the number of answers, by request and status
	count := func(what string, status int) {
		mu.Lock()
		defer mu.Unlock()
		seen[fmt.Sprintf("%s %d", what, status)]++
	}
	ask := func(what, method, path, token, body string, slow time.Duration) {
		req := must.Get(http.NewRequest(method, url+path, strings.NewReader(body)))(t)
		req.Header.Set("Authorization", "Bearer "+token)
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			count(what, 0)
			return
		}
		defer answer.Body.Close()
		must.Hold(t, answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "", "%s: 503 without Retry-After", what)
		count(what, answer.StatusCode)
		_, _ = io.CopyN(io.Discard, answer.Body, 1<<20)
		time.Sleep(slow)
		_, _ = io.Copy(io.Discard, answer.Body)
	}
	// A chain of 200 MiB: more than a third of the memory that the server may hold.
	for i := range 50 {
		ask("record", "POST", "/v1/records", agent, step("a", "long", fmt.Sprintf(`,"chain_position":%d,"context":%q`, i+1, long)), 0)
	}
	conversation := `{"agentCard":{"name":"n","description":"d"},"conversation":[{"role":"user","content":"` + long + `"},{"role":"agent","content":"yes"}]}`
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { ask("chain", "GET", "/v1/chains/long", []string{agent, auditor}[i%2], "", 2*time.Second) })
		wg.Go(func() { ask("page", "GET", "/chains/long", auditor, "", 0) })
		wg.Go(func() { ask("list", "GET", "/v1/records?limit=500", []string{other, auditor}[i%2], "", 0) })
		for range 3 {
			wg.Go(func() {
				ask("upload", "POST", "/v1/records", other, step("b", fmt.Sprint("c", i), `,"context":"`+long+`","chain_position":1`), 0)
			})
			wg.Go(func() { ask("submission", "POST", "/v1/submissions", submitter, conversation, 0) })
		}
	}
	wg.Wait()
	t.Logf("answers: %v; at most %d MiB in memory", seen, highest(t, child.Process.Pid)>>20)
	must.Equal(t, seen["record 201"], 50)
	for what := range seen {
		must.Hold(t, !strings.HasSuffix(what, " 0") && !strings.HasSuffix(what, " 500"), "unexpected answer: %s", what)
	}
	most := highest(t, child.Process.Pid)
	must.Hold(t, most <= hardLimit, "the server used %d MiB of memory, want at most about %d", most>>20, memoryForTest>>20)
	// Afterwards each request is answered, one after the other.
	clear(seen)
	ask("chain", "GET", "/v1/chains/long", agent, "", 0)
	ask("page", "GET", "/chains/long", auditor, "", 0)
	ask("list", "GET", "/v1/records?limit=500", other, "", 0)
	ask("upload", "POST", "/v1/records", other, step("b", "last", `,"context":"`+long+`","chain_position":1`), 0)
	for _, want := range []string{"chain 200", "page 413", "list 200", "upload 201"} {
		must.Hold(t, seen[want] != 0, "afterwards: %v, want %s", seen, want)
	}
	answer := must.Get(http.Get(url + "/readyz"))(t)
	answer.Body.Close()
	must.Equal(t, answer.StatusCode, http.StatusOK)
}

// highest returns the largest memory that a process has ever used.
func highest(t *testing.T, pid int) int64 {
	t.Helper()
	for line := range strings.Lines(string(must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t))) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return must.Get(strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64))(t) << 10
		}
	}
	t.Fatal("the system does not report the memory of the server")
	return 0
}

// TestLargestBody: a body of almost the largest size is accepted, also if the client calls it a form, as curl does by
// default.
func TestLargestBody(t *testing.T) {
	r := start(t, nil)
	token := bearer(r.token(t, "logistics-agent-v1", access.Agent))
	body := strings.Replace(action, "{", `{"context":"`+strings.Repeat("x", 8<<20-len(action)-64)+`",`, 1)
	must.Need(t, len(body) >= 8<<20-1<<10, "the body has only %d bytes", len(body))
	for _, media := range []string{"application/json", "application/x-www-form-urlencoded"} {
		answer, said := send(t, http.DefaultClient, "POST", r.URL+"/v1/records", body, append(slices.Clone(token), "Content-Type", media)...)
		must.Hold(t, answer.StatusCode == http.StatusCreated, "%s: %s: %.200s", media, answer.Status, said)
	}
}
