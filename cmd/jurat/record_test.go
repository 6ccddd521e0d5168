package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/log/installation"
	"jurat/internal/tap/sealer"
	"jurat/internal/test/must"
	"jurat/internal/web/docket"
	"jurat/verify"
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
	out, errs := ran(t, 7, "--data", data, "record", "run", "--agent", "mia", "--chain", "monday", "--", "sh", agent) // the program's own code
	must.Equal(t, strings.Count(out, "you said"), 2)
	noSecretIn(t, data)
	lacks(t, errs, "marked-", "nothing is recorded")

	const chain = "recorded/mia/monday"
	doing(t, 0, "--data", data, "trial", "--recorded", chain, "--jurors", "offline")
	trust, bundle := written(t, doing(t, 0, "--data", data, "trust")), written(t, doing(t, 0, "--data", data, "log", "prove", chain))
	wantAnswers(t, 0, trust, bundle, "content: proved", "vantage: proved", "chain: proved", "order: proved")

	var found struct {
		Hits []struct{ Record string }
	}
	must.Do(t, json.Unmarshal([]byte(doing(t, 0, "--data", data, "records", "--action", "observed_call", "--json")), &found))
	for _, hit := range found.Hits {
		for _, field := range []string{"request_body", "response_body"} {
			doing(t, 0, "--data", data, "erase", hit.Record, "--field", field, "--reason", "asked", "--by", "test", "--despite-quotes")
		}
	}
	after := written(t, doing(t, 0, "--data", data, "log", "prove", chain))
	wantAnswers(t, 0, trust, after, "content: proved", "vantage: not proved", "chain: proved")
}

// wantAnswers verifies a file. The second verifier does not read what calls say, so it gives no answer here.
func wantAnswers(t *testing.T, code int, trust, file string, wants ...string) {
	t.Helper()
	said := doing(t, code, "verify", "--json", "--trust", trust, file)
	answers := answersIn(t, said)
	for _, want := range wants {
		guarantee, answer, _ := strings.Cut(want, ": ")
		must.Hold(t, strings.HasPrefix(answers[guarantee], answer), "%s: %q, want %q", guarantee, answers[guarantee], answer)
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
	for _, n := range sealed {
		must.Equal(t, n, 1)
	}
	total := 0
	for text, n := range model.asked {
		total += n
		body := strings.Replace(`{"model":"wise","messages":[{"role":"user","content":"TEXT"}]}`, "TEXT", text, 1)
		must.Hold(t, sealed[evidence.DigestOf([]byte(body))] != 0, "the provider was asked %q, and the log does not know it", text)
	}
	must.Hold(t, total >= rounds && len(sealed) >= total, "%d calls reached the provider, %d are in the log", total, len(sealed))
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
	out, errs := ran(t, 7, "--data", t.TempDir()+"/data", "record", "run", "--agent", "mia", "--", "sh", "-c", `printf 'a\nb\033[1mc\n'; printf 'x\ny\033[0m\n' >&2; exit 7`)
	must.Equal(t, out, "a\nb\x1b[1mc\n")
	must.Contain(t, errs, "x\ny\x1b[0m\n", "nothing is recorded: no call came from the program")
}

// TestOnlyBeforeAServerOverHTTP: a flag that would do nothing before a program is refused.
func TestOnlyBeforeAServerOverHTTP(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--key=token", "--also=/sse", "--host=tools"} {
		_, errs := ran(t, 2, "--data", filepath.Join(t.TempDir(), "data"), "record", "mcp", "--agent", "mia", flag, "--", "true")
		must.Contain(t, errs, "go with --upstream")
	}
}

// TestNothingToRun: who names no program is told where it goes, with an example, and no installation is made for it.
func TestNothingToRun(t *testing.T) {
	t.Parallel()
	for command, example := range map[string]string{"run": "record run --agent mia -- python agent.py", "mcp": "record mcp --agent mia -- npx "} {
		for _, more := range [][]string{nil, {"--"}} {
			data := filepath.Join(t.TempDir(), "data")
			_, errs := ran(t, 2, append([]string{"--data", data, "record", command, "--agent", "mia"}, more...)...)
			must.Contain(t, errs, "after --", example)
			must.Fail(t, fs.ErrNotExist)(os.Stat(data))
		}
	}
}

// TestRecordStatus: the status says what a recorder that was killed left, and after the next one that it was lost. The doctor says so too.
func TestRecordStatus(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	}))
	defer model.Close()
	data := filepath.Join(t.TempDir(), "data")
	doing(t, 0, "--data", data, "init")
	must.Contain(t, doing(t, 0, "--data", data, "doctor", "--recorders"), "No recorder")
	proxy := exec.Command("jurat", "--data", data, "record", "proxy", "--agent", "mia", "--listen", "127.0.0.1:0", "--upstream", "openai="+model.URL)
	endsWithTest(t, proxy)
	out := must.Get(proxy.StdoutPipe())(t)
	must.Do(t, proxy.Start())
	at := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	go func() {
		if answer, err := http.Post(strings.TrimSpace(at)+"/openai/v1/chat/completions", "application/json", strings.NewReader(`{}`)); err == nil {
			answer.Body.Close()
		}
	}()
	<-asked
	must.Contain(t, doing(t, 0, "--data", data, "doctor", "--recorders"), "it runs since", "1 call under way")
	must.Do(t, proxy.Process.Kill())
	proxy.Wait() // it was killed
	for _, command := range [][]string{{"doctor", "--recorders"}, {"doctor"}} {
		if said := strings.Join(strings.Fields(doing(t, 1, append([]string{"--data", data}, command...)...)), " "); !strings.Contains(said, "it died with 1 call under way") || !strings.Contains(said, "start one") {
			t.Errorf("%v, when it is dead: %s", command, said)
		}
	}
	doing(t, 0, "--data", data, "record", "run", "--agent", "mia", "--", "true")
	var s recorderStatus
	must.Do(t, json.Unmarshal([]byte(doing(t, 0, "--data", data, "doctor", "--recorders", "--json")), &s))
	if len(s.Here) != 0 || len(s.Log) != 1 || s.Log[0].Lost != 1 || s.Log[0].Reason != "the program ended" || s.Log[0].Calls != 0 || !s.Log[0].Counted {
		t.Errorf("%+v", s)
	}
}

// TestCallsInStatus: nothing says that a recorder sealed no calls when its end tells none.
func TestCallsInStatus(t *testing.T) {
	running := sealer.Process{Running: true, About: sealer.About{Recorder: "r"}, State: sealer.State{Sealed: 5}}
	dead := sealer.Process{About: sealer.About{Recorder: "r"}, State: sealer.State{Sealed: 5}}
	for _, test := range []struct {
		here  []sealer.Process
		beats int64
		ended bool // and said how many calls
		want  string
	}{
		{nil, 0, false, "-"},
		{nil, 3, false, "≥ 3"},
		{nil, 3, true, "3"},
		{nil, 0, true, "0"},
		{[]sealer.Process{dead}, 3, false, "≥ 3"},
		{[]sealer.Process{running}, 3, false, "5"},
		{[]sealer.Process{running}, 7, false, "7"},
		{[]sealer.Process{{Running: true, About: sealer.About{Recorder: "r"}}}, 0, false, "0"},
		{[]sealer.Process{{Running: true, About: sealer.About{Recorder: "other"}, State: sealer.State{Sealed: 5}}}, 0, false, "-"},
	} {
		s := recorderStatus{Here: test.here}
		must.Equal(t, s.calls(docket.Recorder{Name: "r", Calls: test.beats, Counted: test.ended}), test.want, test.here, test.beats)
	}
}

// TestPagesAreNotTheAgent: what a web page has a browser send to a recorder is refused, and nothing of it is sealed: by the browser's own word, by the page's origin, or by the name under which it asks.
func TestPagesAreNotTheAgent(t *testing.T) {
	t.Parallel()
	model := newWiseModel(t)
	for name, args := range map[string][]string{
		"proxy":  {"proxy", "--agent", "mia", "--upstream", "wise=" + model.URL},
		"a2a":    {"a2a", "--agent", "mia", "--upstream", model.URL},
		"caller": {"a2a", "--agent", "mia", "--as", "caller", "--upstream", model.URL},
		"mcp":    {"mcp", "--agent", "mia", "--upstream", model.URL + "/wise/x"},
	} {
		data := filepath.Join(t.TempDir(), "data")
		at, _, stop := serve(t, append(append([]string{"--data", data, "record"}, args...), "--listen", "127.0.0.1:0")...)
		at = "http://" + strings.Split(at, "/")[2]
		for header, want := range map[string]int{
			"Sec-Fetch-Site: cross-site": 403, "Sec-Fetch-Site: same-site": 403, "Origin: https://evil.example": 403, "Origin: null": 403,
			"Host: evil.example": 421, "Host: 127.0.0.1.evil.example:8419": 421,
		} {
			req := must.Get(http.NewRequest("POST", at+"/wise/x", strings.NewReader(asksWise)))(t)
			key, value, _ := strings.Cut(header, ": ")
			if req.Header.Set(key, value); key == "Host" {
				req.Host = value
			}
			answer := must.Get(http.DefaultClient.Do(req))(t)
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			must.Hold(t, answer.StatusCode == want, "%s, %s: %d, want %d", name, header, answer.StatusCode, want)
		}
		must.Equal(t, stop(), 0)
		found := doing(t, 0, "--data", data, "records", "--recorded")
		must.Hold(t, !strings.Contains(found, "mia"), "%s: a page's call is sealed: %s", name, found)
	}
	must.Equal(t, len(model.asked), 0)
}

// TestLogHasNoAnswers: what a server sends unasked on a connection is an answer's words, which Go's library would log. With --log-json every line is JSON, and in no log are such words.
func TestLogHasNoAnswers(t *testing.T) {
	t.Parallel()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n\"marked\" \\words of an \"answer\"\n")
					time.Sleep(200 * time.Millisecond)
				}
			}()
		}
	}()
	for _, args := range [][]string{{"proxy", "--agent", "mia", "--upstream", "wise=http://" + listener.Addr().String(), "--log-json"}, {"a2a", "--agent", "mia", "--upstream", "http://" + listener.Addr().String()}} {
		recorder := exec.Command("jurat", append(append([]string{"--data", filepath.Join(t.TempDir(), "data"), "record"}, args...), "--listen", "127.0.0.1:0")...)
		said := new(lines)
		recorder.Stderr = said
		endsWithTest(t, recorder)
		stdout := must.Get(recorder.StdoutPipe())(t)
		must.Do(t, recorder.Start())
		var at string
		must.Get(fmt.Fscanln(stdout, &at))(t)
		for n := 0; !strings.Contains(said.String(), "Unsolicited"); n++ { // HEAD has no body, so what comes is not expected
			must.Need(t, n != 200, "the library logs nothing: %s", said)
			answer := must.Get(http.Head(at + "/wise/v1/models"))(t)
			answer.Body.Close()
			time.Sleep(20 * time.Millisecond)
		}
		must.Do(t, recorder.Process.Signal(syscall.SIGTERM))
		must.Do(t, recorder.Wait())
		lacks(t, said.String(), "marked", "words of an")
		for line := range strings.Lines(said.String()) {
			var values map[string]any
			must.Hold(t, args[len(args)-1] != "--log-json" || json.Unmarshal([]byte(line), &values) == nil, "no line of JSON: %s", line)
		}
	}
}

// TestRecordA2A: two owners record the same exchange, one before the agent that asks and one before the agent that answers. The agent is tried by what was
// recorded. A stranger sees from both owners' files that both recorded the exchange.
func TestRecordA2A(t *testing.T) {
	t.Parallel()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a","contextId":"c1","role":"ROLE_AGENT","parts":[{"text":"It is in Bern."}]}}}`)
	}))
	defer agent.Close()
	theirs, ours := filepath.Join(t.TempDir(), "theirs"), filepath.Join(t.TempDir(), "ours")
	at, _, stopTheirs := serve(t, "--data", theirs, "record", "a2a", "--agent", "mia", "--upstream", agent.URL, "--listen", "127.0.0.1:0")
	by, _, stopOurs := serve(t, "--data", ours, "record", "a2a", "--agent", "ben", "--as", "caller", "--upstream", at, "--listen", "127.0.0.1:0")
	answer, err := http.Post(by+"/", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"Where is parcel 17?"}]}}}`))
	must.Do(t, err)
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	must.Need(t, err == nil && strings.Contains(string(text), "It is in Bern."), "%s %v", text, err)
	must.Need(t, stopOurs() == 0 && stopTheirs() == 0, "a recorder did not end well")

	doing(t, 0, "--data", theirs, "trial", "--recorded", "recorded/mia/context-c1", "--jurors", "offline")
	ourTrust, theirTrust := written(t, doing(t, 0, "--data", ours, "trust")), written(t, doing(t, 0, "--data", theirs, "trust"))
	both := written(t, doing(t, 0, "trust", "--join", ourTrust, theirTrust))
	one, other := written(t, doing(t, 0, "--data", ours, "log", "prove", "recorded/ben/context-c1")), written(t, doing(t, 0, "--data", theirs, "log", "prove", "recorded/mia/context-c1"))
	wantAnswers(t, 0, both, one, "content: proved", "vantage: proved", "order: proved")
	said := strings.Join(strings.Fields(doing(t, 0, "verify", "--trust", both, one, other)), " ")
	must.Contain(t, said, `Both sides recorded the exchange of`, `"ben", which asked, and "mia", which answered`, "two witnesses")
	documents := strings.Split(doing(t, 0, "verify", "--json", "--trust", both, one, other), "\n")
	var report verify.Exchanges
	if err := json.Unmarshal([]byte(documents[len(documents)-1]), &report); err != nil || len(report.Pairs) != 1 || report.Pairs[0].Witnesses != 2 || report.Trust == "" {
		t.Errorf("%s: %v", documents[len(documents)-1], err)
	}
	alone := doing(t, 3, "verify", "--trust", ourTrust, one, other)
	must.Hold(t, !strings.Contains(alone, "two witnesses") && strings.Contains(alone, "are no witness of an exchange"), "%v", alone)
}

// TestRecordA2ARefuses: what makes no recorder before an agent is refused with the flag that is wrong.
func TestRecordA2ARefuses(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		`--upstream "grpc://a": gRPC cannot be recorded`: {"--upstream", "grpc://a"},
		`--upstream "https://a/b": want https://HOST`:    {"--upstream", "https://a/b"},
		`--rewrite-card "a": want https://HOST`:          {"--upstream", "https://a", "--rewrite-card", "a"},
		"missing port":                                   {"--upstream", "https://a", "--listen", "nonsense"},
		"would travel over http":                         {"--upstream", "https://a", "--listen", "0.0.0.0:0"},
	} {
		code, _, errs := jurat(t, append([]string{"--data", t.TempDir() + "/none", "record", "a2a", "--agent", "mia"}, args...)...)
		must.Hold(t, code != 0 && strings.Contains(errs, says), "%v: exit code %d\n%s, want %s", args, code, errs, says)
	}
}

// TestWhoSaidRecorded: who first said a text is found in what recorders saw, also where a stream came in words or JSON escapes them, and it is the
// agent who said it, not its witness. A user's text was given, a repeated one is no second origin, and where the bytes are withheld it is said.
func TestWhoSaidRecorded(t *testing.T) {
	chunk := func(text string) string {
		return fmt.Sprintf("data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
	}
	answers := map[string]string{
		"/v1/chat/completions": chunk("Pay the ") + chunk("\"blue\" invoice") +
			"data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"/v1/messages": `{"type":"message","role":"assistant","model":"c-1","content":[{"type":"text","text":"Заплатите\nпо счёту"},` +
			`{"type":"tool_use","id":"t1","name":"pay","input":{"to":"IBAN 77"}}],"stop_reason":"tool_use"}`,
		"/v1beta/models/g-1:generateContent": `{"candidates":[{"content":{"role":"model","parts":[{"text":"青い請求書です"}]},"finishReason":"STOP"}],"modelVersion":"g-1"}`,
	}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := "application/json"
		if strings.HasPrefix(answers[r.URL.Path], "data:") {
			kind = "text/event-stream"
		}
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, answers[r.URL.Path])
	}))
	t.Cleanup(model.Close)
	data := t.TempDir() + "/data"
	at, _, stop := serve(t, "--data", data, "record", "proxy", "--agent", "mia", "--upstream", "wise="+model.URL, "--listen", "127.0.0.1:0")
	for _, call := range [][2]string{
		{"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"what is due?"}]}`},
		{"/v1/messages", `{"model":"c","max_tokens":9,"messages":[{"role":"user","content":"Pay the \"blue\" invoice"}]}`},
		{"/v1beta/models/g-1:generateContent", `{"contents":[{"role":"user","parts":[{"text":"which?"}]}]}`},
	} {
		r := must.Get(http.NewRequest(http.MethodPost, at+"/wise"+call[0], strings.NewReader(call[1])))(t)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Jurat-Chain", "monday")
		answer := must.Get(http.DefaultClient.Do(r))(t)
		must.Get(io.ReadAll(answer.Body))(t)
		answer.Body.Close()
	}
	code := stop()
	must.Need(t, code == 0, "%v %v", "the recorder ended with", code)
	trust := written(t, doing(t, 0, "--data", data, "trust"))
	chain := written(t, doing(t, 0, "--data", data, "log", "prove", "recorded/mia/monday"))
	withheld := written(t, doing(t, 0, "--data", data, "log", "prove", "recorded/mia/monday", "--withhold", "response_body"))
	for _, tt := range []struct {
		file, text string
		says       []string
	}{
		{chain, `the "blue" invoice`, []string{`It was introduced by record`, `observed call of agent "mia"`, `seen by the recorder "recorder"`}},
		{chain, "по счёту", []string{`It was introduced by record`, `of agent "mia"`}},
		{chain, "IBAN 77", []string{`It was introduced by record`, `of agent "mia"`}},
		{chain, "請求書", []string{`It was introduced by record`, `of agent "mia"`}},
		{chain, "what is due?", []string{"No agent here gave it out", "It was given from outside to record"}},
		{chain, "never said", []string{"No agent here gave it out"}},
		{withheld, "請求書", []string{"No agent here gave it out", "It may also stand in what is withheld of record"}},
	} {
		said := strings.Join(strings.Fields(doing(t, 0, "explain", "--trust", trust, "--who-said", tt.text, tt.file)), " ")
		must.Contain(t, said, tt.says...)
		must.Hold(t, !strings.Contains(said, "also brought in") && !strings.Contains(said, "of recorder"), "%s: %s", tt.text, said)
	}
}
