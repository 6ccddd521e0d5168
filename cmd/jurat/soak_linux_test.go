package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/test/must"
)

// A soak puts a server under full load for some time, and watches its memory, goroutines and open files.
type soak struct {
	t      *testing.T
	at     string // its address
	client *http.Client
	tokens map[string]string // of each name
	names  []string          // of agents

	sealed, tried, watched, refused atomic.Int64
	failed                          atomic.Pointer[error]
	watching                        sync.WaitGroup // those who watch a trial to its end
}

// soakTime is the duration of the load.
func soakTime() time.Duration {
	if os.Getenv("JURAT_TEST_LONG") != "" {
		return 10 * time.Minute
	}
	return 2 * time.Second
}

// A sample is the server's use of resources at one time.
type sample struct {
	at         time.Duration
	rss, live  float64 // MiB: of the system; of the heap, after the last collection
	goroutines float64
	files      float64
	records    int64
	trials     int64
}

// TestSoak: many agents seal over HTTP and some read back, trials are conducted and watched, others read, and strangers
// are refused. In the long form (scripts/test long: 10 minutes), memory must not grow after the first quarter. In each
// form, the resources of the load are released when it ends.
func TestSoak(t *testing.T) {
	s := &soak{t: t, tokens: map[string]string{}, client: &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 500}}}
	data := filepath.Join(t.TempDir(), "data")
	s.furnish(data)
	s.serve(data)
	idle := s.sample(0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() { s.again(ctx, func(ctx context.Context) error { return s.seal(ctx, i) }) })
	}
	for range 2 {
		all.Go(func() { s.again(ctx, s.try) })
	}
	all.Go(func() { s.again(ctx, s.read) })
	all.Go(func() { s.again(ctx, s.stranger) })
	samples := s.watch()
	cancel()
	all.Wait()
	s.watching.Wait()
	if err := s.failed.Load(); err != nil {
		t.Fatal(*err)
	}
	t.Logf("%d records sealed over HTTP, %d trials, %d watched, %d strangers refused\n%s", s.sealed.Load(), s.tried.Load(), s.watched.Load(), s.refused.Load(), picture(samples))
	s.givesBack(idle)
	if soakTime() >= time.Minute {
		flat(t, samples)
	}
}

// soakAgents is the number of agents. Each may send 50 requests a second.
func soakAgents() int { return int(min(160, 8*soakTime().Seconds())) }

// furnish makes an installation, and tokens for the callers.
func (s *soak) furnish(data string) {
	i, _, err := installation.OpenOrCreate(s.t.Context(), installation.Config{Dir: data})
	must.Do(s.t, err)
	grant := func(name string, role access.Role) {
		token, _, err := registerOf(i).Grant(s.t.Context(), access.Order{Name: name, Roles: []access.Role{role}, For: time.Hour, Reason: "a test", By: "tester"})
		must.Do(s.t, err)
		s.tokens[name] = token
	}
	for n := range soakAgents() {
		s.names = append(s.names, fmt.Sprintf("agent-%d", n))
		grant(s.names[n], access.Agent)
	}
	grant("sam", access.Submitter)
	grant("ada", access.Auditor)
	must.Do(s.t, i.Close())
}

// serve starts the server in a process of its own.
func (s *soak) serve(data string) {
	program := filepath.Join(s.t.TempDir(), "jurat") // under this name, the test binary is the command
	self := must.Get(os.Executable())(s.t)
	must.Do(s.t, os.Symlink(self, program))
	server := exec.Command(program, "--data", data, "serve", "--addr", "127.0.0.1:0", "--jurors", "offline", "--parallel", "4", "--waiting", "20")
	server.Stderr = io.Discard
	endsWithTest(s.t, server)
	out := must.Get(server.StdoutPipe())(s.t)
	must.Do(s.t, server.Start())
	s.t.Cleanup(func() {
		must.Want(s.t, errors.Join(server.Process.Signal(os.Interrupt), server.Wait()), nil, "the server")
		damages, size, err := installation.Fsck(context.Background(), installation.Config{Dir: data}, nil)
		must.Hold(s.t, err == nil && len(damages) == 0 && size >= s.sealed.Load(),
			"%d records, %d acknowledged: %v, %v", size, s.sealed.Load(), damages, err)
	})
	s.at = must.Get(bufio.NewReader(out).ReadString('\n'))(s.t)
	s.at = strings.TrimSpace(s.at)
}

// again repeats a function until the time is up.
func (s *soak) again(ctx context.Context, do func(context.Context) error) {
	for ctx.Err() == nil {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			s.failed.CompareAndSwap(nil, &err)
			return
		}
	}
}

// ask makes a request, and returns status and body.
func (s *soak) ask(ctx context.Context, method, path, name string, body []byte, header ...string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.at+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if token := s.tokens[name]; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	doc, err := io.ReadAll(answer.Body)
	return answer.StatusCode, doc, err
}

// seal has an agent seal 2 KiB, sometimes with an idempotency key, and sometimes reads it back.
func (s *soak) seal(ctx context.Context, worker int) error {
	name := s.names[rand.IntN(len(s.names))]
	var header []string
	if rand.IntN(10) == 0 {
		header = []string{"Idempotency-Key", fmt.Sprintf("key-%d-%d", worker, rand.Int64())}
	}
	status, doc, err := s.ask(ctx, "POST", "/v1/records", name, fmt.Appendf(nil, `{"agent_id":%q,"request_id":"%d","timestamp":%q,"model":"m","model_version":"1","chain_id":"c-%d",
		"chain_position":1,"prompt":"May I?","response":%q,"parameters":{}}`, name, rand.Int64(), evidence.FormatTime(time.Now()), rand.Int64(), strings.Repeat("It is 17 km away. ", 90)), header...)
	if err != nil {
		return err
	}
	if status == http.StatusTooManyRequests {
		return nil
	}
	if status != http.StatusCreated {
		return fmt.Errorf("sealing: %d %s", status, doc)
	}
	s.sealed.Add(1)
	record, err := evidence.Open(doc)
	if err != nil || rand.IntN(20) > 0 {
		return err
	}
	if status, doc, err = s.ask(ctx, "GET", "/v1/records/"+record.Payload.RecordID, name, nil); err == nil && status != http.StatusOK && status != http.StatusTooManyRequests {
		err = fmt.Errorf("reading: %d %s", status, doc)
	}
	return err
}

// try submits a case, and watches it to its end.
func (s *soak) try(ctx context.Context) error {
	card, conversation, err := examples.Read(examples.Names()[rand.IntN(3)])
	if err != nil {
		return err
	}
	status, doc, err := s.ask(ctx, "POST", "/v1/submissions", "sam", fmt.Appendf(nil, `{"agentCard":%s,"conversation":%s}`, card, conversation))
	if err != nil {
		return err
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable { // the queue is full
		time.Sleep(100 * time.Millisecond)
		return nil
	}
	if status != http.StatusAccepted {
		return fmt.Errorf("submitting: %d %s", status, doc)
	}
	_, rest, _ := bytes.Cut(doc, []byte(`"id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	s.tried.Add(1)
	for range 3 {
		s.watching.Go(func() { s.follow(string(id)) })
	}
	time.Sleep(50 * time.Millisecond)
	return nil
}

// follow watches a trial until the server has sent its end.
func (s *soak) follow(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	conn, answer, err := websocket.Dial(ctx, strings.Replace(s.at, "http", "ws", 1)+"/ws/submissions/"+id+"/judge", &websocket.DialOptions{
		HTTPClient: s.client, HTTPHeader: http.Header{"Authorization": {"Bearer " + s.tokens["sam"]}}})
	if answer != nil && answer.StatusCode == http.StatusTooManyRequests {
		return
	}
	if err != nil {
		s.failed.CompareAndSwap(nil, &err)
		return
	}
	defer conn.CloseNow()
	for {
		_, doc, err := conn.Read(ctx)
		if err != nil {
			err = fmt.Errorf("watching %s: %w", id, err)
			s.failed.CompareAndSwap(nil, &err)
			return
		}
		if bytes.Contains(doc, []byte(`"trial_closed"`)) {
			s.watched.Add(1)
			return
		}
	}
}

// read reads lists and checkpoints.
func (s *soak) read(ctx context.Context) error {
	for _, path := range []string{"/log/checkpoint", "/v1/submissions", "/v1/records", "/v1/trust"} {
		if status, doc, err := s.ask(ctx, "GET", path, "ada", nil); err != nil || status != http.StatusOK && status != http.StatusTooManyRequests {
			return fmt.Errorf("%s: %d %.200s: %w", path, status, doc, err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	return nil
}

// stranger sends requests with an invalid token.
func (s *soak) stranger(ctx context.Context) error {
	status, doc, err := s.ask(ctx, "GET", "/v1/records", "", nil, "Authorization", fmt.Sprintf("Bearer jurat-%d", rand.Int64()))
	if err == nil && status != http.StatusUnauthorized && status != http.StatusTooManyRequests {
		err = fmt.Errorf("a stranger got %d %.200s", status, doc)
	}
	s.refused.Add(1)
	time.Sleep(20 * time.Millisecond)
	return err
}

// sample asks the server for its use of resources.
func (s *soak) sample(at time.Duration) sample {
	status, doc, err := s.ask(s.t.Context(), "GET", "/metrics", "ada", nil)
	must.Need(s.t, err == nil && status == http.StatusOK, "/metrics: %d %s %v", status, doc, err)
	value := func(name string) float64 {
		for line := range strings.Lines(string(doc)) {
			if text, ok := strings.CutPrefix(line, name+" "); ok {
				return must.Get(strconv.ParseFloat(strings.TrimSpace(text), 64))(s.t)
			}
		}
		s.t.Fatalf("/metrics has no %s:\n%s", name, doc)
		return 0
	}
	return sample{at: at, rss: value("process_resident_memory_bytes") / (1 << 20), live: value("go_gc_heap_live_bytes") / (1 << 20),
		goroutines: value("go_goroutines"), files: value("process_open_fds"), records: int64(value("jurat_ledger_records")), trials: s.tried.Load()}
}

// watch takes samples until the time is up and enough of each kind of request was done, however slow the machine is.
func (s *soak) watch() (samples []sample) {
	tick := time.NewTicker(max(soakTime()/300, 200*time.Millisecond))
	defer tick.Stop()
	for begin := time.Now(); s.failed.Load() == nil && (time.Since(begin) < soakTime() || !s.enough()); {
		<-tick.C
		samples = append(samples, s.sample(time.Since(begin)))
	}
	return samples
}

func (s *soak) enough() bool {
	return s.sealed.Load() >= 100 && s.tried.Load() >= 2 && s.watched.Load() >= 1 && s.refused.Load() >= 1
}

// givesBack waits until the server has no more goroutines and files than before the load, except for a few.
func (s *soak) givesBack(idle sample) {
	s.client.CloseIdleConnections()
	// The queue starts about two dozen services, most of them some time after the server answers. There are also
	// connections to the database, and the one of this request. The load has several hundred of each, and a leak would
	// be at least one for each record or trial.
	const kept = 40
	var now sample
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		s.client.CloseIdleConnections()
		if now = s.sample(0); now.goroutines <= idle.goroutines+kept && now.files <= idle.files+kept {
			return
		}
	}
	s.t.Errorf("two minutes after the load the server has %.0f goroutines and %.0f open files; before it were %.0f and %.0f",
		now.goroutines, now.files, idle.goroutines, idle.files)
}

const (
	growthAllowed = 0.05    // of the mean, in ten minutes
	ofATrial      = 1 << 10 // bytes that the calendar keeps of each trial, at most
)

// flat fits a straight line, by least squares, to what the server used after the first quarter. Over the whole time, the
// line may rise only by the allowed amount.
func flat(t *testing.T, samples []sample) {
	t.Helper()
	warm := samples[len(samples)/4:]
	first, last := warm[0], warm[len(warm)-1]
	window := last.at - first.at
	trials := float64((last.trials-first.trials)*ofATrial) / (1 << 20)
	for name, of := range map[string]struct {
		get   func(sample) float64
		known float64
	}{
		"memory of the system, MiB": {func(s sample) float64 { return s.rss }, trials},
		"live heap, MiB":            {func(s sample) float64 { return s.live }, trials},
		"goroutines":                {func(s sample) float64 { return s.goroutines }, 0},
		"open files":                {func(s sample) float64 { return s.files }, 0},
	} {
		slope, mean := line(warm, of.get)
		rise := slope*window.Seconds() - of.known
		t.Logf("%s: mean %.1f, rise in %.0f s %.2f (%.2f%% of it)", name, mean, window.Seconds(), rise, 100*rise/mean)
		if rise > growthAllowed*mean*window.Minutes()/10 {
			t.Errorf("%s: rises by %.2f in %.0f s, beside a mean of %.1f\n%s", name, rise, window.Seconds(), mean, picture(samples))
		}
	}
}

// line fits a straight line by least squares, and returns its slope per second and the mean.
func line(samples []sample, get func(sample) float64) (slope, mean float64) {
	n := float64(len(samples))
	var meanT float64
	for _, s := range samples {
		meanT, mean = meanT+s.at.Seconds()/n, mean+get(s)/n
	}
	var above, below float64
	for _, s := range samples {
		above += (s.at.Seconds() - meanT) * (get(s) - mean)
		below += (s.at.Seconds() - meanT) * (s.at.Seconds() - meanT)
	}
	return above / below, mean
}

// picture returns a table of about twenty samples.
func picture(samples []sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8s %9s %9s %11s %6s %9s %7s\n", "seconds", "RSS MiB", "live MiB", "goroutines", "files", "records", "trials")
	for i := 0; i < len(samples); i += max(1, len(samples)/20) {
		s := samples[i]
		fmt.Fprintf(&b, "%8.1f %9.1f %9.1f %11.0f %6.0f %9d %7d\n", s.at.Seconds(), s.rss, s.live, s.goroutines, s.files, s.records, s.trials)
	}
	return b.String()
}

// TestLine: line detects a rising series, and reports no rise for one that only varies.
func TestLine(t *testing.T) {
	var rising, trembling []sample
	for i := range 300 {
		at := time.Duration(i) * 2 * time.Second
		rising = append(rising, sample{at: at, rss: 100 + float64(i)/10 + float64(i%7)})
		trembling = append(trembling, sample{at: at, rss: 100 + float64(i%7)})
	}
	get := func(s sample) float64 { return s.rss }
	slope, mean := line(rising, get)
	must.Hold(t, slope >= 0.049 && slope <= 0.051 && mean >= 115 && mean <= 120, "rising: %v, %v", slope, mean)
	slope, _ = line(trembling, get)
	must.Hold(t, slope <= 0.001 && slope >= -0.001, "trembling: %v", slope)
}
