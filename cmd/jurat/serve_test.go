package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
)

// lines is a writer that tests can read while it is written to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve runs 'jurat serve' until stop is called, which returns its exit code.
func serve(t *testing.T, args ...string) (url string, stderr *lines, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stdout, writer := io.Pipe()
	stderr = new(lines)
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, args, stdio{in: strings.NewReader(""), out: writer, err: stderr})
		writer.Close()
		ended <- code
	}()
	code := -1
	stop = func() int {
		if cancel(); code < 0 {
			code = <-ended
		}
		return code
	}
	t.Cleanup(func() { stop() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return strings.TrimSpace(line), stderr, stop
}

// doing runs a command to its end.
func doing(t *testing.T, want int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, stdio{in: strings.NewReader(""), out: &out, err: &errs}); code != want {
		t.Fatalf("jurat %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, &errs)
	}
	return strings.TrimSpace(out.String())
}

// TestServe: first start, a token, a record of an agent, the token's revocation while the server runs, and a second
// start.
func TestServe(t *testing.T) {
	data := t.TempDir() + "/data"
	at, stderr, stop := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	if !strings.HasPrefix(at, "http://127.0.0.1:") || strings.Contains(stderr.String(), "link=") || !strings.Contains(stderr.String(), "access grant --link --at "+at) {
		t.Fatalf("%s\n%s", at, stderr)
	}
	token := doing(t, 0, "--data", data, "access", "grant", "logistics-agent-v1", "agent", "--reason", "a test", "--by", "tester")
	const payload = `{"agent_id": "logistics-agent-v1", "chain_id": "order-17", "request_id": "r", "timestamp": "2026-01-31T16:15:00Z", "model": "m",
		"model_version": "m-1", "prompt": "p", "response": "r", "parameters": {}}`
	status, body := postTo(t, at+"/v1/records", token, "order 17", payload)
	first, err := evidence.Open([]byte(body))
	if status != http.StatusCreated || err != nil {
		t.Fatal(status, body, err)
	}
	if code := stop(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}

	// After the restart, only the log remembers earlier requests.
	at, _, stop = serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	status, body = postTo(t, at+"/v1/records", token, "order 17", payload)
	again, err := evidence.Open([]byte(body))
	if status != http.StatusCreated || err != nil || again.Digest != first.Digest {
		t.Error(status, body, err)
	}
	if status, body = postTo(t, at+"/v1/records", token, "order 17", strings.Replace(payload, `"p"`, `"q"`, 1)); status != http.StatusUnprocessableEntity {
		t.Error(status, body)
	}
	if list := doing(t, 0, "--data", data, "access"); !strings.Contains(list, "agent  20") || strings.Contains(list, token) {
		t.Error(list)
	}
	doing(t, 0, "--data", data, "access", "revoke", token, "--reason", "a test", "--by", "tester")
	if status, body = postTo(t, at+"/v1/records", token, "order 18", payload); status != http.StatusUnauthorized || !strings.Contains(body, "revoked") {
		t.Error(status, body)
	}
	if list := doing(t, 0, "--data", data, "access", "list", "--all", "--json"); !strings.Contains(list, `"state": "revoked"`) {
		t.Error(list)
	}
	doing(t, exitCannot, "--data", data, "access", "revoke", "nothing", "--reason", "a test", "--by", "tester")
	doing(t, exitCannot, "--data", data, "access", "grant", "n", "juror", "--reason", "a test", "--by", "tester")
	doing(t, 0, "--data", data, "access", "publish", "order-17", "--reason", "a test", "--by", "tester")
	if list := doing(t, 0, "--data", data, "access"); !strings.Contains(list, "everybody reads the chain order-17") {
		t.Error(list)
	}
	doing(t, 0, "--data", data, "access", "publish", "order-17", "--undo", "--reason", "a test", "--by", "tester")
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func postTo(t *testing.T, at, token, key, body string) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), "POST", at, strings.NewReader(body)))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Idempotency-Key", key)
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	doc := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(doc)
}

// TestServeSignsInOnce signs in with a link, which works once.
func TestServeSignsInOnce(t *testing.T) {
	data := t.TempDir() + "/data"
	at, _, _ := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	_, link, _ := strings.Cut(doing(t, 0, "--data", data, "access", "grant", "mia", "--link", "--at", at), "link=")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, want := range []int{http.StatusSeeOther, http.StatusUnauthorized} {
		answer := must.Get(client.PostForm(at+"/sign-in", url.Values{"link": {link}}))(t)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s, want %d", answer.Status, want)
		}
	}
}

// TestServeOrigins: however --origin is spelled, the requests of browsers at that address are accepted.
func TestServeOrigins(t *testing.T) {
	for spelled, sent := range map[string]string{
		"https://jurat.example":                "https://jurat.example",
		"https://jurat.example:443":            "https://jurat.example",
		"https://jurat.example/":               "https://jurat.example",
		"https://jurat.example:443/":           "https://jurat.example",
		"https://jurat.example:0443":           "https://jurat.example",
		"https://jurat.example:":               "https://jurat.example",
		"HTTPS://Jurat.EXAMPLE":                "https://jurat.example",
		"https://jurat.example:08443":          "https://jurat.example:8443",
		"https://xn--bcher-KVA.example":        "https://xn--bcher-kva.example",
		"https://[2001:DB8:0:0:0:0:0:1]:443":   "https://[2001:db8::1]",
		"https://jurat_1.example.":             "https://jurat_1.example.",
		"https://192.0.2.7:8443":               "https://192.0.2.7:8443",
		"https://jurat-test.internal.example/": "https://jurat-test.internal.example",
	} {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		behind := l.Addr().String()
		l.Close()
		at, _, stop := serve(t, "--data", t.TempDir()+"/data", "serve", "--addr", behind, "--origin", spelled, "--jurors", "offline")
		if at != sent {
			t.Errorf("%s: it prints %s, want %s", spelled, at, sent)
		}
		for _, host := range []string{strings.TrimPrefix(sent, "https://"), behind} { // a proxy may pass the name on
			for path, want := range map[string]int{"/sign-in": http.StatusUnauthorized, "/v1/submissions": http.StatusUnauthorized} {
				r := must.Get(http.NewRequestWithContext(t.Context(), "POST", "http://"+behind+path, strings.NewReader("token=x")))(t)
				r.Host = host
				r.Header.Set("Origin", sent)
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				answer := must.Get(http.DefaultClient.Do(r))(t)
				answer.Body.Close()
				if answer.StatusCode != want {
					t.Errorf("%s: a browser at %s with Host %s gets %s from %s", spelled, sent, host, answer.Status, path)
				}
			}
		}
		if code := stop(); code != 0 {
			t.Errorf("%s: exit code %d", spelled, code)
		}
	}
}

// TestServeStaysAtHome: the server listens on other addresses only if there is a token, or another way to sign in, for
// somebody.
func TestServeStaysAtHome(t *testing.T) {
	data := t.TempDir() + "/data"
	for name, args := range map[string][]string{
		"all addresses":       {"--addr", "0.0.0.0:0"},
		"all addresses, IPv6": {"--addr", "[::]:0"},
		"no host":             {"--addr", ":0"},
		"no address":          {"--addr", "nonsense"},
		"a key alone":         {"--addr", "127.0.0.1:0", "--tls-key", "key.pem"},
		"no such key":         {"--addr", "127.0.0.1:0", "--tls-key", "none.pem", "--tls-cert", "none.pem"},
		"an origin by http":   {"--addr", "127.0.0.1:0", "--origin", "http://jurat.example"},
		"a page as an origin": {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example/records"},
		"another alphabet":    {"--addr", "127.0.0.1:0", "--origin", "https://bücher.example"},
		"the same, encoded":   {"--addr", "127.0.0.1:0", "--origin", "https://b%C3%BCcher.example"},
		"an empty query":      {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example?"},
		"an empty fragment":   {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example#"},
		"slashes":             {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example//"},
		"no port":             {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example:70000"},
		"short for 127.0.0.1": {"--addr", "127.0.0.1:0", "--origin", "https://127.1"},
		"a mapped address":    {"--addr", "127.0.0.1:0", "--origin", "https://[::ffff:192.0.2.1]"},
		"a wildcard":          {"--addr", "127.0.0.1:0", "--origin", "https://*.jurat.example"},
		"a user":              {"--addr", "127.0.0.1:0", "--origin", "https://me@jurat.example"},
		"the second of two":   {"--addr", "127.0.0.1:0", "--origin", "https://jurat.example", "--origin", "https://jurat.example/x"},
	} {
		t.Run(name, func(t *testing.T) { doing(t, exitCannot, append([]string{"--data", data, "serve"}, args...)...) })
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("a refused command has made an installation")
	}
	_, said := ran(t, exitCannot, "--data", data, "serve", "--addr", "nonsense")
	has(t, said, "--addr nonsense: want HOST:PORT")
	// Behind a proxy that ends TLS, people sign in with links: no token is needed.
	if at, _, stop := serve(t, "--data", t.TempDir()+"/data", "serve", "--addr", "0.0.0.0:0", "--origin", "https://jurat.example"); at != "https://jurat.example" || stop() != 0 {
		t.Error(at)
	}
	doing(t, 0, "--data", data, "init")
	doing(t, 0, "--data", data, "access", "grant", "ada", "auditor", "--reason", "a test", "--by", "tester")
	at, stderr, stop := serve(t, "--data", data, "serve", "--addr", "0.0.0.0:0")
	if !strings.HasPrefix(at, "http://") || stop() != 0 {
		t.Errorf("%s", at)
	}
	has(t, stderr.String(), "people on other machines cannot sign in over plain http")
	has(t, stderr.String(), "hint: --tls-cert and --tls-key")
	if strings.Contains(stderr.String(), "access grant --link") {
		t.Errorf("it has %q:\n%s", "access grant --link", stderr.String())
	}
}

// TestNothingIsBegun: a command with a mistake, or one that needs an installation, does not create one.
func TestNothingIsBegun(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	must.Do(t, os.WriteFile("key.pem", nil, 0o600))
	why := []string{"--reason", "a test", "--by", "tester"}
	for _, args := range [][]string{
		append([]string{"access", "grant", "noa", "reviwer"}, why...), append([]string{"access", "grant", "noa", "reviewer"}, why...),
		{"access", "grant", "--link"}, {"keys", "new", "agent", "a"}, append([]string{"keys", "new", "agent", "a", "--public", "key.pem"}, why...),
		{"tsa", "a", "http://127.0.0.1:1", "--root", "key.pem"}, {"apart", "a", "prompt"}, {"trust"}, {"log", "fsck"},
		{"serve", "--addr", ":99999"}, {"serve", "--addr", "256.0.0.1:0"}, {"serve", "--addr", "0.0.0.0:0"}, {"serve", "--oidc-role", "x"},
		{"serve", "--tsa", "nobody"}, {"serve", "--parallel", "0"}, {"serve", "--addr", "127.0.0.1:0", "--tls-cert", "key.pem", "--tls-key", "key.pem"},
		{"trial", "none"}, {"trial", "--resume", "last"}, {"trial", "--list"}, {"seal", "none"}, {"seal", "key.pem"},
	} {
		_, said := ran(t, exitCannot, args...)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Fatalf("%q made %v, %v\n%s", args, entries, err, said)
		}
	}
	_, said := ran(t, exitCannot, append([]string{"access", "grant", "noa", "reviwer"}, why...)...)
	has(t, said, `unknown role "reviwer"`)
	_, said = ran(t, exitCannot, append([]string{"access", "grant", "noa", "reviewer"}, why...)...)
	has(t, said, "'jurat init' makes one")
	doing(t, 0, "init")
	doing(t, 0, "init") // a command that needs the installation, and finds it
	doing(t, 0, append([]string{"access", "grant", "noa", "reviewer"}, why...)...)
}

// TestSessionsAreListed: 'access list' shows a session even if its token or link is not in the list.
func TestSessionsAreListed(t *testing.T) {
	data := t.TempDir() + "/data"
	at, _, _ := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0")
	link := doing(t, 0, "--data", data, "access", "grant", "mia", "reviewer", "--link", "--at", at)
	_, secret, _ := strings.Cut(link, "link=")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.PostForm(at+"/sign-in", url.Values{"link": {secret}})
	if err != nil || answer.StatusCode != http.StatusSeeOther {
		t.Fatal(answer, err)
	}
	answer.Body.Close()
	list := doing(t, 0, "--data", data, "access", "list")
	has(t, list, "  reviewer  20")
	has(t, list, "mia (session of a browser)")
	if strings.Contains(list, "operator,") {
		t.Errorf("it has %q:\n%s", "operator,", list)
	}
	for _, args := range [][]string{{"mia", "agent"}, {"mia", "juror"}, {"mia", "--at", "ftp://x"}, {"\u202e"}} {
		doing(t, exitCannot, append([]string{"--data", data, "access", "grant", "--link"}, args...)...)
	}
}
