//go:build unix

package schedule

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"jurat/internal/test/must"
)

// HeldTable is the environment variable with a table. If it is set, this test binary is a process that works on its trials until it is killed.
const HeldTable = "JURAT_TEST_HELD_TABLE"

// holder starts such a process. Each line that it prints is sent.
func holder(t *testing.T, where string) (*os.Process, <-chan string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env, c.Stderr = append(slices.Clone(os.Environ()), HeldTable+"="+where), os.Stderr
	must.Get(c.StdinPipe())(t)
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return c.Process, lines
}

func said(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	select {
	case got := <-lines:
		must.Need(t, got == want, "it says %q, want %q", got, want)
	case <-time.After(time.Minute):
		t.Fatalf("it does not say %q", want)
	}
}

// stop stops a process, and returns when all of it has stopped. Meanwhile the test has the write lock of a table in a file, so that the process does not keep it.
func stop(t *testing.T, process *os.Process, where string) {
	t.Helper()
	writer := must.Get(openTable(t, where).db.BeginTx(t.Context(), nil))(t)
	must.Do(t, process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(process.Pid, &status, syscall.WUNTRACED, nil)
	must.Need(t, err == nil && status.Stopped(), "%v %v", status, err)
	must.Do(t, writer.Rollback())
}

// TestHolderKilled kills a process while it works on a trial. As long as it lives, no other gets the trial, however long it works; when it is dead,
// another has the trial after the lease.
func TestHolderKilled(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		var w worked
		q := openQueue(t, where, &w, Config{Lease: testLease})
		put(t, q, none, "trial-1")
		process, lines := holder(t, where)
		said(t, lines, "begins trial-1")
		begin(t, q)
		for end := time.Now().Add(3 * testLease); time.Now().Before(end); {
			await(t, q, "trial-1", func(now turn, _ bool) bool { return now.held || len(w.all()) > 0 })
		}
		got := w.all()
		must.Need(t, len(got) == 0, "worked %v beside a process that lives", got)
		must.Do(t, process.Kill())
		await(t, q, "trial-1", isGone)
		got = w.all()
		must.Hold(t, len(got) == 1, "worked %v", got)
	})
}

// TestHolderStoodStill stops a process while it works on a trial, so that another takes the trial over, and lets it go on. It ends its work, and how that
// ends changes nothing for the other.
func TestHolderStoodStill(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		goOn := make(chan struct{})
		letGo := sync.OnceFunc(func() { close(goOn) })
		w := worked{answer: func(context.Context, string, int) error { <-goOn; return nil }}
		q := openQueue(t, where, &w, Config{Lease: testLease})
		put(t, q, none, "trial-1")
		process, lines := holder(t, where)
		said(t, lines, "begins trial-1")
		stop(t, process, where)
		begin(t, q)
		t.Cleanup(letGo) // before it waits for the work to end
		await(t, q, "trial-1", func(turn, bool) bool { return len(w.all()) == 1 })
		must.Do(t, process.Signal(syscall.SIGCONT))
		said(t, lines, "loses trial-1 true")
		for end := time.Now().Add(2 * testLease); time.Now().Before(end); { // meanwhile it stores how its work ended
			now := await(t, q, "trial-1", func(turn, bool) bool { return true })
			must.Need(t, now.held && !now.failed, "%+v", now)
		}
		letGo()
		await(t, q, "trial-1", isGone)
		got := w.all()
		must.Hold(t, len(got) == 1, "worked %v", got)
	})
}
