package recorder_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/internal/recording"
	"jurat/recorder"
)

// soakTime is how long the load lasts.
func soakTime(t *testing.T) time.Duration {
	if text := os.Getenv("JURAT_TEST_SOAK"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if os.Getenv("JURAT_TEST_LONG") != "" {
		return 10 * time.Minute
	}
	return 3 * time.Second
}

// TestSoak: under full load (streams, short answers, large ones, clients that leave, providers that break off) nothing piles up. When the load ends, goroutines, open files and copies are as few as before. The
// long form takes ten minutes (scripts/test long); JURAT_TEST_SOAK=3m sets the time.
func TestSoak(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		switch kind := string(body); {
		case strings.Contains(kind, "stream"):
			w.Header().Set("Content-Type", "text/event-stream")
			for n := range 20 {
				fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d \"}}]}\n\n", n)
				w.(http.Flusher).Flush()
			}
			io.WriteString(w, "data: [DONE]\n\n")
		case strings.Contains(kind, "large"):
			w.Header().Set("Content-Type", "text/plain")
			for range 10 {
				io.WriteString(w, strings.Repeat("a large answer; ", 2<<10))
			}
		case strings.Contains(kind, "breaks"):
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "half")
		default:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, answered)
		}
	}))
	folder := filepath.Join(t.TempDir(), "data")
	r := open(t, recorder.Options{Folder: folder, Agent: "mia", InTheRecord: true, Upstreams: map[string]recorder.Upstream{"openai": {Base: provider.URL}}})
	server := httptest.NewServer(r.Handler())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	call := func(ctx context.Context, kind string, n int64) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/openai/v1/chat/completions", strings.NewReader(fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%s %d"}]}`, kind, n)))
		if err != nil {
			return err
		}
		answer, err := client.Do(req)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if kind == "leaves stream" {
			_, err = io.ReadFull(answer.Body, make([]byte, 10))
			cancel()
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	quiet := func() (goroutines, files int) {
		client.CloseIdleConnections()
		provider.CloseClientConnections() // which nobody uses now
		runtime.GC()
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(open)
	}
	kinds := []string{"plain", "stream", "large", "breaks", "leaves stream", "plain", "stream", "plain"}
	var calls, failed atomic.Int64
	load := func(lasts time.Duration) (most int) {
		end := time.Now().Add(lasts)
		var all sync.WaitGroup
		for worker := range 32 {
			all.Go(func() {
				for n := 0; time.Now().Before(end); n++ {
					kind := kinds[(worker+n)%len(kinds)]
					if err := call(t.Context(), kind, calls.Add(1)); err != nil && kind != "breaks" && kind != "leaves stream" {
						if failed.Add(1) == 1 {
							t.Errorf("%s: %v", kind, err)
						}
					}
				}
			})
		}
		for time.Now().Before(end) {
			most = max(most, runtime.NumGoroutine())
			time.Sleep(50 * time.Millisecond)
		}
		all.Wait()
		return most
	}
	load(time.Second) // what is kept for later calls, such as connections to the database, is there now
	time.Sleep(200 * time.Millisecond)
	goroutines, files := quiet()
	most := load(soakTime(t))
	var g, f int
	var left []recording.Process
	settled := func() bool {
		var err error
		if left, err = recording.Look(t.Context(), recorder.Folder(folder)); err != nil || len(left) != 1 {
			t.Fatal(left, err)
		}
		g, f = quiet()
		return g <= goroutines+2 && f <= files+4 && left[0].Open == 0 && left[0].Copies == 0
	}
	for deadline := time.Now().Add(20 * time.Second); !settled() && time.Now().Before(deadline); {
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("%d calls, %d failed; goroutines %d, at most %d, then %d; files %d, then %d; %d calls open, %d copies, a journal of %d bytes", calls.Load(), failed.Load(), goroutines, most, g, files, f, left[0].Open, left[0].Copies, left[0].JournalBytes)
	if !settled() {
		t.Error("what the load took does not come back")
	}
	server.Close()
	provider.Close()
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sealed, _ := records(t, folder); int64(len(sealed)) != calls.Load() {
		t.Errorf("%d calls are in the log of %d that were made", len(sealed), calls.Load())
	}
}
