package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"jurat/internal/disktest"
	"jurat/internal/must"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRecordKeepsNoSecret: credentials that come in any place are in no byte of the data folder and in nothing that the recorder, or the server of the same log, says, logs, measures or traces, also while calls are under way, after the recorder was killed, and
// after the next one has sealed what was left.
func TestRecordKeepsNoSecret(t *testing.T) {
	t.Parallel()
	hanging := make(chan bool, 1)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "session=marked-4711")
		w.Header().Set("X-Session", "marked-4711")
		if r.URL.Query().Has("hang") {
			w.Write(bytes.Repeat([]byte(" "), 600<<10)) // a copy of it goes to the disk
			w.(http.Flusher).Flush()
			hanging <- true
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"id":"c","object":"chat.completion","model":"wise-2026","choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`)
	}))
	defer model.Close()
	data := filepath.Join(t.TempDir(), "data")
	doing(t, 0, "--data", data, "init")
	token := regexp.MustCompile(`jurat_[A-Za-z0-9_-]+`).FindString(doing(t, 0, "--data", data, "access", "grant", "mia", "agent", "--reason", "a test", "--by", "tester"))
	if token == "" {
		t.Fatal("no token")
	}
	var said bytes.Buffer
	start := func() (*exec.Cmd, string) {
		t.Helper()
		proxy := exec.Command("jurat", "--data", data, "record", "proxy", "--listen", "127.0.0.1:0", "--log-json", "--upstream", "openai="+model.URL, "--upstream", "gone=http://127.0.0.1:1")
		endsWithTest(t, proxy)
		out := must.Get(proxy.StdoutPipe())(t)
		proxy.Stderr = &said
		must.Do(t, proxy.Start())
		at := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
		return proxy, strings.TrimSpace(at)
	}
	call := func(at, path string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+path, strings.NewReader(`{"model":"wise","messages":[{"role":"user","content":"a question"}]}`))
		if err != nil {
			return err
		}
		for name, value := range map[string]string{"Authorization": "Bearer marked-4711", "X-Api-Key": "marked-4711", "X-Goog-Api-Key": "marked-4711", "Api-Key": "marked-4711", "Cookie": "a=marked-4711",
			"Tracestate": "vendor=marked-4711", "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			"Proxy-Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("user:marked-4711")), "Mcp-Param-Token": "marked-4711", "X-Amz-Security-Token": "marked-4711", "Referer": "https://marked-4711@example.com/", "Content-Type": "application/json"} {
			req.Header.Set(name, value)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	secrets := []string{"marked-4711", token, base64.StdEncoding.EncodeToString([]byte("user:marked-4711"))}
	search := func(when string) {
		t.Helper()
		files := disktest.Files(t, data)
		if len(files) < 5 {
			t.Fatalf("%d files", len(files))
		}
		for path, text := range files {
			for _, secret := range secrets {
				if bytes.Contains(text, []byte(secret)) {
					t.Errorf("%s: a secret is in %s", when, path)
				}
			}
		}
	}

	proxy, at := start()
	// A user in the address is what an HTTP client makes of http://user:password@host.
	host := strings.TrimPrefix(at, "http://")
	for _, path := range []string{"/r/" + token + "/openai/v1/chat/completions?key=marked-4711&api_key=marked-4711&other=marked-4711", "/r/" + token + "/gone/v1/chat/completions?key=marked-4711", "/r/marked-4711/openai/v1/chat/completions",
		"/openai/marked-4711", "/marked-4711/x"} {
		must.Do(t, call("http://user:marked-4711@"+host, path))
	}
	conn := must.Get(net.Dial("tcp", host))(t)
	fmt.Fprintf(conn, "GET http://user:marked-4711@%s/openai/x HTTP/1.1\r\nHost: marked-4711\r\nConnection: close\r\n\r\n", host)
	io.Copy(io.Discard, conn)
	conn.Close()
	go call(at, "/r/"+token+"/openai/v1/chat/completions?hang=1&key=marked-4711") //nolint:errcheck // it is broken off
	<-hanging
	search("while a call is under way")
	must.Do(t, proxy.Process.Kill())
	proxy.Wait() // it was killed
	search("after a crash")
	proxy, _ = start()
	must.Do(t, proxy.Process.Signal(os.Interrupt))
	must.Do(t, proxy.Wait())
	search("when all is sealed")
	operator := regexp.MustCompile(`jurat_[A-Za-z0-9_-]+`).FindString(doing(t, 0, "--data", data, "access", "grant", "olga", "operator", "--reason", "a test", "--by", "tester"))
	secrets = append(secrets, operator)
	served := serveWithSecrets(t, data, operator, call)
	search("after the server")
	outputs := said.String() + served + doing(t, 0, "--data", data, "doctor", "--recorders", "--json") + doing(t, 0, "--data", data, "records", "--action", "observed_call", "--json")
	for _, secret := range secrets {
		if strings.Contains(outputs, secret) {
			t.Errorf("a secret is in what the recorder or the server says:\n%s", outputs)
		}
	}
	if n := len(observedIn(t, data)); n != 3 {
		t.Errorf("%d calls in the log, want 3: one that passed, one without an answer, one that was lost", n)
	}
}

// serveWithSecrets runs the server of the log, makes requests with credentials in every place, and returns all that leaves it: its log, its metrics, and
// the traces that a collector got, which refuses them.
func serveWithSecrets(t *testing.T, data, token string, call func(at, path string) error) string {
	t.Helper()
	var traces bytes.Buffer // written while the server runs, read after it has ended
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(&traces, r.Body); err != nil || r.Header.Get("X-Key") != "marked-4711" {
			t.Errorf("%v, %q", err, r.Header.Get("X-Key"))
		}
		http.Error(w, "not now", http.StatusForbidden)
	}))
	defer collector.Close()
	server := exec.Command("jurat", "--data", data, "serve", "--addr", "127.0.0.1:0", "--log-json",
		"--otlp-endpoint", strings.Replace(collector.URL, "http://", "http://user:marked-4711@", 1))
	server.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_HEADERS=x-key=marked-4711")
	var log bytes.Buffer
	server.Stderr = &log
	endsWithTest(t, server)
	out := must.Get(server.StdoutPipe())(t)
	must.Do(t, server.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	at := strings.TrimSpace(line)
	for _, path := range []string{"/v1/records?key=marked-4711", "/v1/records/marked-4711", "/records/marked-4711?token=marked-4711", "/agents/marked-4711", "/marked-4711/x", "/recordings/marked-4711", "/link/marked-4711"} {
		must.Do(t, call(strings.Replace(at, "http://", "http://user:marked-4711@", 1), path))
	}
	read := func(path string) string {
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, nil))(t)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Cookie", "a=marked-4711")
		req.Header.Set("Tracestate", "vendor=marked-4711")
		req.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		answer := must.Get(http.DefaultClient.Do(req))(t)
		defer answer.Body.Close()
		return string(must.Get(io.ReadAll(answer.Body))(t))
	}
	read("/v1/records/marked-4711?key=marked-4711")
	read("/recordings?key=marked-4711")
	metrics := read("/metrics")
	must.Do(t, server.Process.Signal(os.Interrupt))
	if err := server.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	for what, has := range map[string]bool{"requests in the log": strings.Contains(log.String(), `"route":"GET /metrics"`), "metrics": strings.Contains(metrics, "go_goroutines"),
		"traces": bytes.Contains(traces.Bytes(), []byte("GET /metrics")), "that the traces were refused": strings.Contains(log.String(), "403 Forbidden")} {
		if !has {
			t.Errorf("there is nothing of %s:\n%s\n%s", what, &log, metrics)
		}
	}
	return log.String() + metrics + traces.String()
}
