package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/internal/tokentest"
)

// TestJuratIsStatic: the program is this one without its tests, and depends on no library of the system.
func TestJuratIsStatic(t *testing.T) {
	self, err := elf.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	libraries, err := self.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("CGO_ENABLED") == "0" && len(libraries) > 0 {
		t.Errorf("it needs %v", libraries)
	}
	helper, err := elf.Open(tokentest.Program(t))
	if err != nil {
		t.Fatal(err)
	}
	defer helper.Close()
	if needed, err := helper.ImportedLibraries(); err != nil || len(needed) == 0 {
		t.Errorf("jurat-token needs %v, %v: the test sees nothing", needed, err)
	}
}

// TestServerWithToken: a server has no PIN in its memory, is not ready while the token is away, and is again when it is back.
func TestServerWithToken(t *testing.T) {
	soft, data := tokenHouse(t)
	server := exec.Command("jurat", "--data", data, "serve", "--addr", "127.0.0.1:0")
	endsWithTest(t, server)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Signal(os.Interrupt)
		server.Wait() // however it ends
	})
	at, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	wait := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
			answer, err := http.Get(strings.TrimSpace(at) + "/readyz")
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("/readyz says %s, want %d", answer.Status, want)
			}
		}
	}
	wait(http.StatusOK)
	helpers := helpersOf(t, server.Process.Pid)
	if len(helpers) == 0 || !inMemory(t, helpers[0], soft.PIN) {
		t.Fatalf("the PIN is not in the memory of the helpers %v: the test sees nothing", helpers)
	}
	if inMemory(t, server.Process.Pid, soft.PIN) {
		t.Error("the PIN is in jurat's memory")
	}
	putBack := soft.Remove(t)
	wait(http.StatusServiceUnavailable)
	putBack()
	wait(http.StatusOK)
}

// helpersOf lists the children of a process, whichever thread has started them.
func helpersOf(t *testing.T, parent int) []int {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
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

// inMemory looks for a text in all memory of a process that can be written to.
func inMemory(t *testing.T, pid int, text string) bool {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
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
			n, _ := memory.ReadAt(part, at) // a page that is not there is not read
			if bytes.Contains(part[:n], []byte(text)) {
				return true
			}
		}
	}
	return false
}
