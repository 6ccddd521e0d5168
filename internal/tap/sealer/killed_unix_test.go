//go:build unix

package sealer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/court/acts"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/tap/relay"
	"jurat/internal/test/must"
)

// These make this test binary a recorder that makes calls, and kills itself at a step.
const (
	dyingFolder   = "JURAT_TEST_RECORDER"
	dyingProvider = "JURAT_TEST_PROVIDER"
	dyingStep     = "JURAT_TEST_STEP" // the step, and how many of it pass before
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(dyingFolder); folder != "" {
		if err := recordAndDie(folder, os.Getenv(dyingProvider), os.Getenv(dyingStep)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killAt returns a hook that kills this process at a step.
func killAt(step string) func(string) {
	name, after, _ := strings.Cut(step, ":")
	left, _ := strconv.Atoi(after) // "": at the first
	var mu sync.Mutex
	return func(at string) {
		mu.Lock()
		defer mu.Unlock()
		if at != name {
			return
		}
		if left--; left < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
	}
}

// recorderOn opens a recorder on the installation in a folder.
func recorderOn(ctx context.Context, folder string, mode relay.Mode, after func(string)) (*Recorder, *installation.Installation, error) {
	i, err := installation.Open(ctx, installation.Config{Dir: folder})
	if err != nil {
		return nil, nil, err
	}
	log := acts.New(acts.Config{Ledger: i.Ledger, Keys: i.Keys, Disclose: i.Apart.Disclose, Now: time.Now}).Observations()
	r, err := Open(ctx, Config{Log: log, Name: "witness", Folder: filepath.Join(folder, "recorder"), Mode: mode, Agent: "mia", Vantage: evidence.Proxy, Version: "test",
		Configuration: evidence.DigestOf([]byte("settings")), Retry: 10 * time.Millisecond, Tell: slog.New(slog.DiscardHandler), after: after})
	return r, i, err
}

// recordAndDie makes a few calls through a recorder, some at once.
func recordAndDie(folder, provider, step string) error {
	ctx := context.Background()
	mode := relay.Closed
	if rest, open := strings.CutPrefix(step, "open/"); open {
		mode, step = relay.Open, rest
	}
	r, i, err := recorderOn(ctx, folder, mode, killAt(step))
	if err != nil {
		return err
	}
	base, err := url.Parse(provider)
	if err != nil {
		return err
	}
	h, err := relay.New(r, relay.Options{Upstreams: map[string]relay.Upstream{"openai": {Base: base}}, Mode: mode, Folder: r.Spool(), FingerprintKey: make([]byte, 32), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	server := httptest.NewServer(h)
	for n := range 3 {
		var all sync.WaitGroup
		for at := range 1 + n {
			all.Go(func() {
				body := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":"%d: %d %d"}]}`, os.Getpid(), n, at)
				answer, err := http.Post(server.URL+"/openai/v1/chat/completions", "application/json", strings.NewReader(body))
				if err != nil {
					return
				}
				defer answer.Body.Close()
				_, _ = io.Copy(io.Discard, answer.Body) // it may break off
			})
		}
		all.Wait()
	}
	server.Close()
	if err := h.Wait(ctx); err != nil {
		return err
	}
	if err := r.Close(ctx, "all calls are made"); err != nil {
		return err
	}
	return i.Close()
}

// A fatal provider streams, and kills who asks it at a step.
type fatal struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[evidence.Digest]int
	child *os.Process // to kill; nil: nobody
	step  string      // "asked", or "half"
}

func newFatal(t *testing.T) *fatal {
	f := &fatal{asked: map[evidence.Digest]int{}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.asked[evidence.DigestOf(body)]++
		f.mu.Unlock()
		f.kill(r.Context(), "asked")
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", strings.Repeat("half of it ", 40_000))
		w.(http.Flusher).Flush()
		f.kill(r.Context(), "half")
		io.WriteString(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(f.Close)
	return f
}

// kill kills the process if it is to die at this step, and waits until its connection is gone.
func (f *fatal) kill(ctx context.Context, step string) {
	f.mu.Lock()
	child := f.child
	if f.step != step {
		child = nil
	}
	f.mu.Unlock()
	if child != nil {
		_ = child.Kill() // another call may have
		<-ctx.Done()
	}
}

// TestKilledAtEveryStep: a recorder is killed at each step of its calls, and the next one at each step of finishing what was left. After one that lives, each call that
// reached the provider is in the log once, no call is there twice, and the log is whole.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, steps := range [][2]string{ // of the first process and of the next one
		{"folder made", ""}, {"copied", ""}, {"rewritten", ""}, {"written", ""}, {"synced", ""}, {"written:2", "lost sealed"}, {"begun", "lost sealed"}, {"begun:1", "removed"}, {"asked", "lost sealed"}, {"half", "removed"},
		{"half", "begun"}, {"answered", "lost sealed"}, {"answered:3", "lost sealed:1"}, {"sealed", "removed"}, {"sealed:2", "folder made"}, {"ended", "removed"}, {"ended:5", "rewritten"},
		{"open/written at once", "lost sealed"}, {"open/written at once:3", ""}, {"open/synced", "begun"}, {"open/answered", "lost sealed"}, {"open/sealed:2", "removed"},
	} {
		t.Run(steps[0]+", "+steps[1], func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "data")
			must.Do(t, installation.Create(t.Context(), installation.Config{Dir: folder}))
			provider := newFatal(t)
			for n, step := range steps {
				if step != "" {
					dies(t, provider, folder, step, n == 0)
				}
			}
			r, i, err := recorderOn(t.Context(), folder, relay.Closed, nil)
			must.Do(t, err)
			must.Do(t, r.Close(t.Context(), "the test is over"))
			defer i.Close()
			sealed := map[evidence.Digest]int{}
			lost := 0
			for placed, err := range i.Ledger.Records(t.Context(), 0) {
				must.Do(t, err)
				if o := placed.Record.Payload.Observed; o != nil {
					if sealed[o.Request.SHA256]++; o.Ended == evidence.LostInCrash {
						lost++
					}
				}
			}
			for digest, n := range sealed {
				must.Equal(t, n, 1)
				delete(provider.asked, digest)
			}
			must.Hold(t, len(provider.asked) == 0, "%d calls that reached the provider are not in the log", len(provider.asked))
			if left, err := Look(t.Context(), filepath.Join(folder, "recorder")); err != nil || len(left) != 0 {
				t.Errorf("left: %v, %v", left, err)
			}
			damages, _, err := installation.Fsck(t.Context(), installation.Config{Dir: folder}, nil)
			must.Do(t, err)
			for _, d := range damages {
				must.Hold(t, d.Kind == fsck.DamageOrphan, "%v", d) // a text whose record was not written
			}
			t.Logf("%d calls in the log, %d lost", len(sealed), lost)
		})
	}
}

// dies runs a process that dies at a step. hasTo says that it has to get there: the next one may find nothing to do.
func dies(t *testing.T, provider *fatal, folder, step string, hasTo bool) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), dyingFolder+"="+folder, dyingProvider+"="+provider.URL, dyingStep+"="+step)
	var errs bytes.Buffer
	child.Stderr = &errs
	must.Do(t, child.Start())
	provider.mu.Lock()
	provider.child, provider.step = child.Process, step
	provider.mu.Unlock()
	err := child.Wait()
	status, is := child.ProcessState.Sys().(syscall.WaitStatus)
	must.Need(t, (err != nil || !hasTo) && (err == nil || is && status.Signaled()), "the process was to die at %q: %v\n%s", step, err, &errs)
}
