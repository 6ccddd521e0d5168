package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jurat/internal/access"
	"jurat/internal/must"
	"jurat/internal/server"
)

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
	if len(at) != 5 {
		t.Fatalf("the server did not begin: %v", at)
	}
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
		if answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s: 503 without Retry-After", what)
		}
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
		if strings.HasSuffix(what, " 0") || strings.HasSuffix(what, " 500") {
			t.Errorf("unexpected answer: %s", what)
		}
	}
	if most := highest(t, child.Process.Pid); most > hardLimit {
		t.Errorf("the server used %d MiB of memory, want at most about %d", most>>20, memoryForTest>>20)
	}
	// Afterwards each request is answered, one after the other.
	clear(seen)
	ask("chain", "GET", "/v1/chains/long", agent, "", 0)
	ask("page", "GET", "/chains/long", auditor, "", 0)
	ask("list", "GET", "/v1/records?limit=500", other, "", 0)
	ask("upload", "POST", "/v1/records", other, step("b", "last", `,"context":"`+long+`","chain_position":1`), 0)
	for _, want := range []string{"chain 200", "page 413", "list 200", "upload 201"} {
		if seen[want] == 0 {
			t.Errorf("afterwards: %v, want %s", seen, want)
		}
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
	if len(body) < 8<<20-1<<10 {
		t.Fatalf("the body has only %d bytes", len(body))
	}
	for _, media := range []string{"application/json", "application/x-www-form-urlencoded"} {
		answer, said := send(t, http.DefaultClient, "POST", r.URL+"/v1/records", body, append(slices.Clone(token), "Content-Type", media)...)
		if answer.StatusCode != http.StatusCreated {
			t.Errorf("%s: %s: %.200s", media, answer.Status, said)
		}
	}
}
