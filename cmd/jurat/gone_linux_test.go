package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"jurat/internal/disktest"
	"jurat/internal/must"
	"jurat/jurattest"
)

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
			if n > 0 && answer.StatusCode != want.status || n == 0 && answer.StatusCode != 200 {
				t.Errorf("%s, call %d: status %d", mode, n, answer.StatusCode)
			}
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
		if _, err := os.Stat(data); mode == "closed" && !emptied && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something made the folder again: %v", mode, err)
		}
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
		if status, _, body := s.post(s.agent, "/v1/records", ask); status != http.StatusServiceUnavailable || strings.Contains(body, data) {
			t.Errorf("while it is away: %d %s", status, body)
		}
	}
	if status, body := s.get("", "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "not where they were opened") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something made the folder again: %v", err)
	}
	must.Do(t, os.Rename(data+".away", data))
	s.wantSealed(10)
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if out := s.do("log", "fsck"); !strings.Contains(out, "the log is whole") {
		t.Error(out)
	}
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
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"--data", data, "seal", payload}, stdio{in: strings.NewReader(""), out: &out, err: &errs})
	if code != exitCannot || out.Len() > 0 || !strings.Contains(errs.String(), "not where they were opened") {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
}

// TestRecorderUnmounted: the disk with the data folder is taken away while a recorder runs. It refuses calls, and ends with an error.
func TestRecorderUnmounted(t *testing.T) {
	disktest.Run(t, 64, func(disk *disktest.Disk) {
		model := newWiseModel(t)
		at, said, stop := serve(t, "--data", filepath.Join(disk.Path, "data"), "record", "proxy", "--agent", "mia", "--upstream", "wise="+model.URL, "--listen", "127.0.0.1:0")
		for n, want := range []int{200, 503, 503} {
			answer := must.Get(http.Post(at+"/wise/v1/chat/completions", "application/json", strings.NewReader(asksWise)))(t)
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("call %d: status %d, want %d", n, answer.StatusCode, want)
			}
			if n == 0 {
				must.Do(t, syscall.Unmount(disk.Path, syscall.MNT_DETACH))
			}
		}
		if code := stop(); code == 0 {
			t.Errorf("exit code %d\n%s", code, said)
		}
	})
}
