package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/must"
)

// A wiseModel answers every call of Chat Completions, and counts what it was asked.
type wiseModel struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int // by the last message
}

func newWiseModel(t *testing.T) *wiseModel {
	m := &wiseModel{asked: map[string]int{}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil || len(call.Messages) == 0 {
			http.Error(w, "no messages", http.StatusBadRequest)
			return
		}
		last := call.Messages[len(call.Messages)-1].Content
		m.mu.Lock()
		m.asked[last]++
		m.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "session=marked-cookie-4711")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"wise-2026","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, "you said "+last)
	}))
	t.Cleanup(m.Close)
	return m
}

// TestRecordRun: a program that knows nothing of jurat is recorded, tried by what was recorded, proved to a stranger, and erased. No secret is on disk.
func TestRecordRun(t *testing.T) {
	model := newWiseModel(t)
	t.Setenv("OPENAI_BASE_URL", model.URL+"/v1")
	data := filepath.Join(t.TempDir(), "data")
	agent := written(t, `curl -sS "$OPENAI_BASE_URL/chat/completions?api_key=marked-query-4711" -H 'Authorization: Bearer marked-key-4711' -H 'Cookie: a=marked-cookie-4711' \
		-d '{"model":"wise","messages":[{"role":"user","content":"the first question"}]}'
curl -sS "$OPENAI_BASE_URL/chat/completions" -H 'X-Api-Key: marked-key-4711' \
	-d '{"model":"wise","messages":[{"role":"user","content":"the first question"},{"role":"assistant","content":"you said the first question"},{"role":"user","content":"the second question"}]}'
exit 7`)
	var out, errs bytes.Buffer
	args := []string{"--data", data, "record", "run", "--agent", "mia", "--chain", "monday", "--", "sh", agent}
	if code := run(t.Context(), args, stdio{in: strings.NewReader(""), out: &out, err: &errs}); code != 7 || strings.Count(out.String(), "you said") != 2 {
		t.Fatalf("exit code %d, want the program's 7\n%s\n%s", code, &out, &errs)
	}
	noSecretIn(t, data)
	if strings.Contains(errs.String(), "marked-") || strings.Contains(errs.String(), "nothing is recorded") {
		t.Errorf("a secret is in messages, or they say that nothing is recorded: %s", &errs)
	}

	const chain = "recorded/mia/monday"
	doing(t, 0, "--data", data, "trial", "--recorded", chain, "--jurors", "offline")
	trust, bundle := written(t, doing(t, 0, "--data", data, "trust")), written(t, doing(t, 0, "--data", data, "log", "case", chain))
	wantAnswers(t, 0, trust, bundle, "content: proved", "vantage: proved", "chain: proved", "order: proved")

	var found struct {
		Hits []struct{ Record string }
	}
	must.Do(t, json.Unmarshal([]byte(doing(t, 0, "--data", data, "records", "find", "--action", "observed_call", "--json")), &found))
	for _, hit := range found.Hits {
		for _, field := range []string{"request_body", "response_body"} {
			doing(t, 0, "--data", data, "erase", hit.Record, "--field", field, "--reason", "asked", "--by", "test", "--despite-quotes")
		}
	}
	after := written(t, doing(t, 0, "--data", data, "log", "case", chain))
	wantAnswers(t, 0, trust, after, "content: proved", "vantage: not proved", "chain: proved")
}

// wantAnswers verifies a file. The second verifier does not read what calls say, so it gives no answer here.
func wantAnswers(t *testing.T, code int, trust, file string, wants ...string) {
	t.Helper()
	said := doing(t, code, "verify", "--json", "--trust", trust, file)
	answers := answersIn(t, said)
	for _, want := range wants {
		guarantee, answer, _ := strings.Cut(want, ": ")
		if !strings.HasPrefix(answers[guarantee], answer) {
			t.Errorf("%s: %q, want %q", guarantee, answers[guarantee], answer)
		}
	}
}

// TestRecordProxyKilled: the recorder is killed again and again while it records. Each call that reached the provider is in the log, once.
func TestRecordProxyKilled(t *testing.T) {
	model := newWiseModel(t)
	data := filepath.Join(t.TempDir(), "data")
	doing(t, 0, "--data", data, "init")
	start := func() (*exec.Cmd, string) {
		t.Helper()
		proxy := exec.Command("jurat", "--data", data, "record", "proxy", "--agent", "mia", "--listen", "127.0.0.1:0", "--upstream", "openai="+model.URL)
		endsWithTest(t, proxy)
		out := must.Get(proxy.StdoutPipe())(t)
		must.Do(t, proxy.Start())
		at := make([]byte, 200)
		n := must.Get(out.Read(at))(t)
		go io.Copy(io.Discard, out)
		return proxy, strings.TrimSpace(string(at[:n]))
	}
	const rounds, callers = 6, 4
	for round := range rounds {
		proxy, at := start()
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for n := 0; ; n++ {
					body := fmt.Sprintf(`{"model":"wise","messages":[{"role":"user","content":"round %d, caller %d, call %d"}]}`, round, caller, n)
					answer, err := http.Post(at+"/openai/v1/chat/completions", "application/json", strings.NewReader(body))
					if err != nil {
						return
					}
					_, err = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
					if err != nil {
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(50+rand.IntN(200)) * time.Millisecond)
		must.Do(t, proxy.Process.Kill())
		proxy.Wait() // it was killed
		all.Wait()
	}
	proxy, _ := start() // seals what was lost
	must.Do(t, proxy.Process.Signal(os.Interrupt))
	must.Do(t, proxy.Wait())
	sealed, lost := map[evidence.Digest]int{}, 0
	for _, o := range observedIn(t, data) {
		if o.Ended == evidence.LostInCrash {
			lost++
		}
		sealed[o.Request.SHA256]++
	}
	for digest, n := range sealed {
		if n != 1 {
			t.Errorf("the request %s is in the log %d times", digest, n)
		}
	}
	total := 0
	for text, n := range model.asked {
		total += n
		body := strings.Replace(`{"model":"wise","messages":[{"role":"user","content":"TEXT"}]}`, "TEXT", text, 1)
		if sealed[evidence.DigestOf([]byte(body))] == 0 {
			t.Errorf("the provider was asked %q, and the log does not know it", text)
		}
	}
	if total < rounds || len(sealed) < total {
		t.Errorf("%d calls reached the provider, %d are in the log", total, len(sealed))
	}
	t.Logf("%d calls reached the provider; of %d in the log %d were lost in a crash", total, len(sealed), lost)
}

// eachRecordIn hands over the records of a whole log, in its order.
func eachRecordIn(t *testing.T, data string, take func(*evidence.Record)) {
	t.Helper()
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: data}))(t)
	defer i.Close()
	for placed, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		take(placed.Record)
	}
}

// observedIn returns what recorders saw, from a whole log.
func observedIn(t *testing.T, data string) (list []*evidence.Observed) {
	t.Helper()
	eachRecordIn(t, data, func(r *evidence.Record) {
		if o := r.Payload.Observed; o != nil {
			list = append(list, o)
		}
	})
	return list
}

// TestRecordRunLeavesOutputAlone: what the recorded program writes is its own: lines, colours and both streams pass as they are.
func TestRecordRunLeavesOutputAlone(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"--data", t.TempDir() + "/data", "record", "run", "--agent", "mia", "--", "sh", "-c", `printf 'a\nb\033[1mc\n'; printf 'x\ny\033[0m\n' >&2; exit 7`},
		stdio{in: strings.NewReader(""), out: &out, err: &errs})
	if code != 7 || out.String() != "a\nb\x1b[1mc\n" || !strings.Contains(errs.String(), "x\ny\x1b[0m\n") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, &out, &errs)
	}
	if told := "nothing is recorded: no call came from the program"; !strings.Contains(errs.String(), told) {
		t.Errorf("stderr %q: want %q", &errs, told)
	}
}

// TestOnlyBeforeAServerOverHTTP: a flag that would do nothing before a program is refused.
func TestOnlyBeforeAServerOverHTTP(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--key=token", "--also=/sse", "--host=tools"} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"--data", filepath.Join(t.TempDir(), "data"), "record", "mcp", "--agent", "mia", flag, "--", "true"}, stdio{in: strings.NewReader(""), out: &out, err: &errs})
		if code != 2 || !strings.Contains(errs.String(), "go with --upstream") {
			t.Errorf("%s: exit code %d, %q", flag, code, &errs)
		}
	}
}

// TestNothingToRun: who names no program is told where it goes, with an example, and no installation is made for it.
func TestNothingToRun(t *testing.T) {
	t.Parallel()
	for command, example := range map[string]string{"run": "record run --agent mia -- python agent.py", "mcp": "record mcp --agent mia -- npx "} {
		for _, more := range [][]string{nil, {"--"}} {
			data := filepath.Join(t.TempDir(), "data")
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"--data", data, "record", command, "--agent", "mia"}, more...), stdio{in: strings.NewReader(""), out: &out, err: &errs})
			if code != 2 || !strings.Contains(errs.String(), "after --") || !strings.Contains(errs.String(), example) {
				t.Errorf("record %s: exit code %d, %q", command, code, &errs)
			}
			if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("record %s: %v", command, err)
			}
		}
	}
}
