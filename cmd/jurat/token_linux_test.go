package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// TestJuratIsStatic: the built program needs no library of the system.
func TestJuratIsStatic(t *testing.T) {
	self := must.Get(elf.Open("/proc/self/exe"))(t)
	defer self.Close()
	libraries := must.Get(self.ImportedLibraries())(t)
	must.Hold(t, os.Getenv("CGO_ENABLED") != "0" || len(libraries) == 0, "it needs %v", libraries)
	helper := must.Get(elf.Open(rig.TokenHelper(t)))(t)
	defer helper.Close()
	needed, err := helper.ImportedLibraries()
	must.Hold(t, err == nil && len(needed) != 0, "jurat-pkcs11 needs %v, %v: so this test detects nothing", needed, err)
}

// A tokenServer is a server in a process of its own, whose helpers are its children.
type tokenServer struct {
	t         *testing.T
	at, token string // token: of agent mia
	process   *os.Process
}

func serveTokens(t *testing.T, data string) *tokenServer {
	t.Helper()
	token := doing(t, 0, "--data", data, "access", "grant", "mia", "agent", "--reason", "a test", "--by", "tester")
	server := exec.Command("jurat", "--data", data, "serve", "--addr", "127.0.0.1:0")
	endsWithTest(t, server)
	out := must.Get(server.StdoutPipe())(t)
	must.Do(t, server.Start())
	t.Cleanup(func() {
		server.Process.Signal(os.Interrupt)
		server.Wait() // at the end of the test, however it ends
	})
	at := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	go io.Copy(io.Discard, out)
	return &tokenServer{t, strings.TrimSpace(at), token, server.Process}
}

// wait waits until the server says that it is ready, or that it is not.
func (s *tokenServer) wait(want int) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		answer := must.Get(http.Get(s.at + "/readyz"))(s.t)
		answer.Body.Close()
		if answer.StatusCode == want {
			return
		}
		must.Need(s.t, !time.Now().After(deadline), "/readyz says %s, want %d", answer.Status, want)
	}
}

func (s *tokenServer) seal(request string) (status int, body string) {
	s.t.Helper()
	return postTo(s.t, s.at+"/v1/records", s.token, request, strings.NewReplacer("AGENT", "mia", "r-1", request).Replace(action))
}

// TestServerWithToken: a server has no PIN in its memory. While the token is away, it is not ready and seals nothing. When the token is back,
// it is ready and seals.
func TestServerWithToken(t *testing.T) {
	soft, data := tokenHouse(t)
	server := serveTokens(t, data)
	server.wait(http.StatusOK)
	status, body := server.seal("before")
	must.Hold(t, status == http.StatusCreated, "with the token: %d, %s", status, body)
	helpers := helpersOf(t, server.process.Pid)
	must.Need(t, len(helpers) != 0 && inMemory(t, helpers[0], soft.PIN),
		"the PIN is not in the memory of the helpers %v: so this test detects nothing", helpers)
	must.Hold(t, !inMemory(t, server.process.Pid, soft.PIN), "the PIN is in jurat's memory")
	size := recordsOf(t, data)
	putBack := soft.Remove(t)
	server.wait(http.StatusServiceUnavailable)
	status, body = server.seal("meanwhile")
	must.Hold(t, status == http.StatusServiceUnavailable, "without the token: %d, %s", status, body)
	putBack()
	server.wait(http.StatusOK)
	must.Equal(t, recordsOf(t, data), size)
	status, body = server.seal("after")
	must.Hold(t, status == http.StatusCreated, "with the token again: %d, %s", status, body)
}

// TestHelperKilled kills the helper again and again while agents have records sealed, and repeat what failed. In the end, each record is in the
// log once, and all are whole.
func TestHelperKilled(t *testing.T) {
	const agents, each = 4, 12
	_, data := tokenHouse(t)
	server := serveTokens(t, data)
	server.wait(http.StatusOK)
	size := recordsOf(t, data)
	var mu sync.Mutex
	var records []string
	var all sync.WaitGroup
	var deaths atomic.Int64
	end := time.Now().Add(2 * time.Minute)
	seen := func() bool { return deaths.Load() >= 3 || time.Now().After(end) } // a fast machine seals them all before
	for agent := range agents {
		all.Go(func() {
			for n := 0; n < each || !seen(); n++ {
				for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
					status, body := server.seal(fmt.Sprintf("agent %d, record %d", agent, n))
					if status == http.StatusCreated {
						mu.Lock()
						records = append(records, body)
						mu.Unlock()
						break
					}
					if status < 500 && status != http.StatusTooManyRequests || time.Now().After(deadline) {
						t.Errorf("status %d, %s", status, body)
						return
					}
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	killed, works := map[int]bool{}, map[int]int{} // works: how many records there were when the helper was first seen
	worked := func(helper int) bool {
		// SoftHSM writes its token's file when somebody logs in, and loses the token if it is killed then. A helper that has signed is past that: of
		// the records that came since it was seen, its predecessor can have signed one for each agent.
		mu.Lock()
		defer mu.Unlock()
		if _, seen := works[helper]; !seen {
			works[helper] = len(records)
		}
		return len(records) > works[helper]+agents
	}
	for under := true; under; {
		select {
		case <-ended:
			under = false
		case <-time.After(time.Duration(rand.IntN(60)) * time.Millisecond):
			for _, helper := range helpersOf(t, server.process.Pid) {
				if (len(killed) < 8 || !seen()) && !killed[helper] && worked(helper) && syscall.Kill(helper, syscall.SIGKILL) == nil {
					killed[helper] = true
					deaths.Add(1)
				}
			}
		}
	}
	must.Hold(t, len(killed) >= 3, "%d helpers were killed: the test sees nothing", len(killed))
	now := recordsOf(t, data)
	must.Hold(t, now == size+len(records), "%d records in the log, want %d", now-size, len(records))
	verify := []string{"verify", "--trust", written(t, doing(t, 0, "--data", data, "trust"))}
	for _, record := range records {
		verify = append(verify, written(t, record))
	}
	doing(t, 0, verify...)
}

// helpersOf lists the children of a process, started by any of its threads.
func helpersOf(t *testing.T, parent int) []int {
	t.Helper()
	all := must.Get(os.ReadDir("/proc"))(t)
	var found []int
	for _, entry := range all {
		var pid, ppid int
		if _, err := fmt.Sscan(entry.Name(), &pid); err != nil {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(status), "\nPPid:")
		if _, err := fmt.Sscan(after, &ppid); err == nil && ppid == parent {
			found = append(found, pid)
		}
	}
	return slices.Sorted(slices.Values(found))
}

// inMemory searches all writable memory of a process for a text.
func inMemory(t *testing.T, pid int, text string) bool {
	t.Helper()
	maps := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)))(t)
	memory := must.Get(os.Open(fmt.Sprintf("/proc/%d/mem", pid)))(t)
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil || !strings.HasPrefix(mode, "rw") {
			continue
		}
		const chunk, overlap = 4 << 20, 256
		for at := from; at < to; at += chunk {
			part := make([]byte, min(chunk+overlap, to-at))
			n, _ := memory.ReadAt(part, at) // a page that is not mapped cannot be read
			if bytes.Contains(part[:n], []byte(text)) {
				return true
			}
		}
	}
	return false
}

// TestMachinesOnOneToken: two machines share a database and a token. Both seal at the same time, each through a helper of its own, and one helper
// is killed meanwhile.
func TestMachinesOnOneToken(t *testing.T) {
	const callers, each = 3, 8
	soft := rig.NewToken(t)
	t.Setenv("JURAT_TOKEN_HELPER", soft.Helper(t))
	list := machines(t, 2)
	list[0].do("init", "--token", "pkcs11:token=house")
	list[0].do("keys", "new", "agent", machinesAgent, "--token", "pkcs11:token=house;object=agent")
	startAll(t, list)
	token := list[0].grant(machinesAgent, "agent")
	var mu sync.Mutex
	var records []string
	var signed [2]atomic.Int64 // by each machine's helper
	var all sync.WaitGroup
	for at, m := range list {
		for caller := range callers {
			all.Go(func() {
				for n := range each {
					request := fmt.Sprintf("machine %d, caller %d, record %d", at, caller, n)
					for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
						record, err := m.seal(t.Context(), token, request, request)
						if err != nil || time.Now().After(deadline) {
							t.Errorf("%s: %v", request, err)
							return
						}
						if record == nil { // its helper was killed
							continue
						}
						text, err := record.Marshal()
						must.Want(t, err, nil)
						mu.Lock()
						records = append(records, string(text))
						mu.Unlock()
						signed[at].Add(1)
						break
					}
				}
			})
		}
	}
	for killed := false; !killed; time.Sleep(10 * time.Millisecond) {
		if signed[1].Load() == 0 && !t.Failed() {
			continue // its helper may be logging in, when SoftHSM writes its token's file and must not be killed
		}
		for _, helper := range helpersOf(t, list[1].process.Process.Pid) {
			killed = syscall.Kill(helper, syscall.SIGKILL) == nil
		}
	}
	all.Wait()
	want := len(list) * callers * each
	must.Need(t, len(records) == want, "%d records, want %d", len(records), want)
	verify := []string{"verify", "--trust", written(t, list[1].do("trust"))}
	for _, record := range records {
		verify = append(verify, written(t, record))
	}
	list[0].do(verify...)
	list[0].do("log", "fsck")
}
