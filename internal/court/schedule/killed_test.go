//go:build unix

package schedule_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/internal/court/schedule"
	"jurat/internal/court/trial"
	"jurat/internal/log/installation"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
)

// If servedFolder is set, this test binary is a process that opens the installation in that folder, which has one trial.
// It prints the trial's id and the address at which it serves the trial's events, conducts the trial, and runs until it
// is killed.
const servedFolder = "JURAT_TEST_SERVED_FOLDER"

func TestMain(m *testing.M) {
	if folder, table := os.Getenv(servedFolder), os.Getenv(schedule.HeldTable); folder != "" || table != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the process that started this one
			os.Exit(1)
		}()
		if table != "" {
			fmt.Fprintln(os.Stderr, schedule.Hold(context.Background(), table))
		} else {
			fmt.Fprintln(os.Stderr, serveFolder(folder))
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveFolder(folder string) error {
	ctx := context.Background()
	i, _, err := installation.OpenOrCreate(ctx, installation.Config{Dir: folder})
	if err != nil {
		return err
	}
	d, err := schedule.Open(ctx, schedule.Config{Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks, Vouch: i.Vouch, Sit: slowly(30 * time.Millisecond)})
	if err != nil {
		return err
	}
	list, _, err := d.Entries(ctx, "", 1, nil)
	if err != nil || len(list) != 1 {
		return fmt.Errorf("%d trials: %w", len(list), err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var after int64
		fmt.Sscan(r.URL.Query().Get("after"), &after)
		watch := func(ctx context.Context) (*schedule.Watching, error) {
			return d.Watch(ctx, r.URL.Path[len("/ws/"):], after)
		}
		if err := (schedule.Delivery{}).WebSocket(w, r, watch); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}))
	fmt.Println(s.URL, list[0].ID)
	d.Run(ctx)
	return nil
}

// TestKilledServer kills the serving process, at a different event each time. The next process continues with the same
// events: earlier ones have the same bytes, and later ones follow without a gap.
func TestKilledServer(t *testing.T) {
	folder := t.TempDir() + "/data"
	i, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: folder})
	must.Do(t, err)
	c := scripted(nil, 0)
	c.Ledger, c.Keys, c.Locks = i.Ledger, i.Keys, i.Locks
	must.Get(trial.Submit(t.Context(), c, jurattest.Case(t)))(t)
	must.Do(t, i.Close())
	var heard [][]byte
	for kills := range 100 {
		process, url, id := startServing(t, folder)
		h := &house{URL: url}
		again := dial(t, h, id, 0) // a watcher who starts from the beginning
		for n, was := range heard {
			_, doc, err := again.Read(t.Context())
			must.Need(t, err == nil && bytes.Equal(doc, was), "after %d kills event %d is %s, and was %s (%v)", kills, n+1, doc, was, err)
		}
		c := dial(t, h, id, int64(len(heard)))
		for range 2 + kills%2 {
			_, doc, err := c.Read(t.Context())
			must.Do(t, err)
			seq := seqOf(t, doc)
			must.Need(t, seq == int64(len(heard)+1), "event %d follows %d", seq, len(heard))
			heard = append(heard, doc)
			if bytes.Contains(doc, []byte(`"trial_closed"`)) {
				break
			}
		}
		must.Do(t, process.Process.Kill())
		_ = process.Wait() // by Kill
		if bytes.Contains(heard[len(heard)-1], []byte(`"trial_closed"`)) {
			break
		}
	}
	must.Hold(t, len(heard) == 20, "%d events", len(heard)) // two rounds without changes, each with an opening, three statements and a check
}

func startServing(t *testing.T, folder string) (process *exec.Cmd, url, id string) {
	t.Helper()
	process = exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(slices.Clone(os.Environ()), servedFolder+"="+folder)
	process.Stderr = os.Stderr
	must.Get(process.StdinPipe())(t)
	out := must.Get(process.StdoutPipe())(t)
	must.Do(t, process.Start())
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	url, id, _ = strings.Cut(strings.TrimSpace(line), " ")
	return process, url, id
}
