package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"jurat/internal/court/panel"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// TestReady asks a server that is ready, and then none. TestMachinesWithoutDatabase asks one that is not ready.
func TestReady(t *testing.T) {
	at := freeAddr(t)
	t.Setenv("JURAT_ADDR", at)
	_, _, stop := serve(t, "--data", t.TempDir()+"/data", "serve")
	if out, _ := ran(t, 0, "doctor", "--ready"); out != "ready: http://"+at+"\n" {
		t.Errorf("%q", out)
	}
	answered(t, 0, readiness{URL: "http://" + at, Ready: true}, "doctor", "--ready", "--json")
	if out, _ := ran(t, 0, "doctor", "--ready", at); out != "ready: http://"+at+"\n" { // as JURAT_ADDR and --addr have it
		t.Errorf("%q", out)
	}
	for _, wrong := range []string{"localhost", "jurat.example:port", "ftp://127.0.0.1:1", "127.0.0.1:1/path"} {
		_, errs := ran(t, exitCannot, "doctor", "--ready", wrong)
		must.Contain(t, errs, "want http:// or https:// and a host, such as http://127.0.0.1:8417")
	}
	stop()
	out, errs := ran(t, exitBad, "doctor", "--ready", "http://"+at+"/")
	must.Contain(t, out, "not ready: http://"+at+": no server answers there: ", "refused")
	must.Equal(t, errs, "")
}

// answered checks what 'jurat doctor --ready --json' says.
func answered(t *testing.T, code int, want readiness, args ...string) {
	t.Helper()
	out, _ := ran(t, code, args...)
	var got readiness
	err := json.Unmarshal([]byte(out), &got)
	must.Hold(t, err == nil && got == want, "%s, %v: want %+v", out, err, want)
}

// TestReadyByHTTPS: a server on this machine is asked by https whatever host its certificate names. Of any other server the certificate is
// checked.
func TestReadyByHTTPS(t *testing.T) {
	cert, key := certificateFor(t, t.TempDir())
	_, port, err := net.SplitHostPort(freeAddr(t))
	must.Do(t, err)
	for name, value := range map[string]string{"JURAT_ADDR": "0.0.0.0:" + port, "JURAT_TLS_CERT": cert, "JURAT_TLS_KEY": key} {
		t.Setenv(name, value)
	}
	serve(t, "--data", t.TempDir()+"/data", "serve")
	answered(t, 0, readiness{URL: "https://127.0.0.1:" + port, Ready: true}, "doctor", "--ready", "--json")
	out, _ := ran(t, exitBad, "doctor", "--ready", "http://127.0.0.1:"+port)
	must.Contain(t, out, "status 400, and the answer is not from jurat")

	through := httptest.NewServer(tunnel(t, "127.0.0.1:"+port))
	defer through.Close()
	for roots, want := range map[string]string{cert: "ready: https://jurat.example\n", os.DevNull: "certificate signed by unknown authority"} {
		asker := exec.Command("jurat", "doctor", "--ready", "https://jurat.example", "--timeout", "30s")
		asker.Env = append(os.Environ(), "HTTPS_PROXY="+through.URL, "SSL_CERT_FILE="+roots, "SSL_CERT_DIR="+t.TempDir())
		said, err := asker.CombinedOutput()
		must.Hold(t, strings.Contains(string(said), want) && (err == nil) == (roots == cert), "%s, %v: want %s", said, err, want)
	}
}

// tunnel is a proxy that leads every connection to one server, as a name in a DNS does.
func tunnel(t *testing.T, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		far, err := net.Dial("tcp", to)
		if err != nil || r.Method != http.MethodConnect {
			t.Errorf("%s %s, %v", r.Method, r.Host, err)
			return
		}
		near, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(near, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { defer far.Close(); _, _ = io.Copy(far, near) }() // until either side closes
		defer near.Close()
		_, _ = io.Copy(near, far)
	}
}

// TestReadyOfOthers: what answers and is no server of jurat is not ready, whatever it says.
func TestReadyOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		"another page": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<p>ready\n") }, "the answer is not from jurat"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				fmt.Fprint(w, "ready\n")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, "status 302, and the answer is not from jurat"},
		"a long answer": {func(w http.ResponseWriter, _ *http.Request) {
			for _, err := w.Write(nil); err == nil; _, err = w.Write(make([]byte, 4096)) {
			}
		}, "the answer has more than 65536 bytes"},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within 300ms"},
		"a terminal's control": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"type":"x","title":"x","status":503,"detail":"a\u001b[2Jb\nready: it"}`)
		}, "not ready: http://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := httptest.NewServer(http.HandlerFunc(c.answer))
			defer other.Close()
			timeout := "30s"
			if name == "no answer" {
				timeout = "300ms"
			}
			out, _ := ran(t, exitBad, "doctor", "--ready", other.URL, "--timeout", timeout)
			must.Contain(t, out, c.want)
			must.Hold(t, !strings.Contains(out, "\x1b") && strings.Count(out, "\n") == 1, "%q obeys what the server says", out)
		})
	}
}

// TestReadyRefuses: addresses that name no server are mistakes of the caller, not of the server.
func TestReadyRefuses(t *testing.T) {
	for _, wrong := range []string{"jurat.example", "ftp://jurat.example", "https://", "https://a@jurat.example", "https://jurat.example/records", "https://jurat.example/?a", "https://[::1"} {
		_, said := ran(t, exitCannot, "doctor", "--ready", wrong)
		must.Contain(t, said, "the server's address")
	}
	_, said := ran(t, exitCannot, "doctor", "--ready", "--timeout=-1s")
	must.Contain(t, said, "--timeout", "above 0")
	for addr, want := range map[string]string{":8417": "http://127.0.0.1:8417", "[::]:1": "http://[::1]:1", "0.0.0.0:1": "http://127.0.0.1:1", "10.0.0.7:1": "http://10.0.0.7:1"} {
		got, err := (&doctorCmd{readyFlags: readyFlags{Addr: addr}}).own()
		must.Hold(t, err == nil && got.String() == want, "%s: %v, %v", addr, got, err)
	}
	for _, addr := range []string{"", "8417", "127.0.0.1:0", "127.0.0.1:"} {
		t.Setenv("JURAT_ADDR", addr)
		_, said := ran(t, exitCannot, "doctor", "--ready")
		must.Contain(t, said, "JURAT_ADDR", "jurat doctor --ready http://")
	}
}

// TestMetrics: after a trial, a running server exports what happened in it, and Prometheus' own tool finds no fault.
func TestMetrics(t *testing.T) {
	data := t.TempDir() + "/data"
	at, _, _ := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0", "--jurors", "offline")
	submitter := doing(t, 0, "--data", data, "access", "grant", "Quintus", "submitter", "--reason", "a test", "--by", "tester", "--for", "48h")
	auditor := doing(t, 0, "--data", data, "access", "grant", "Xanthe", "auditor", "--reason", "a test", "--by", "tester")
	status, body := postTo(t, at+"/v1/submissions", submitter, "first", `{"conversation":[{"role":"user","content":"Where is it?"},{"role":"assistant","content":"In Kassel."}]}`)
	must.Need(t, status == http.StatusAccepted, "%v %v", status, body)
	waitUntilOver(t, at, submitter, body)
	request := must.Get(http.NewRequestWithContext(t.Context(), "GET", at+"/metrics", nil))(t)
	request.Header.Set("Authorization", "Bearer "+auditor)
	answer := must.Get(http.DefaultClient.Do(request))(t)
	defer answer.Body.Close()
	doc, err := io.ReadAll(answer.Body)
	must.Need(t, err == nil && answer.StatusCode == http.StatusOK, "%v %v", answer.Status, err)
	text := string(doc)
	must.Contain(t, text, "\njurat_build_info{", "\njurat_access_tokens 2\n", "\njurat_access_tokens_expiring 1\n", "\njurat_juror_answer_seconds_count{model=", "\njurat_reviews_open ")
	verdicts := 0
	for _, position := range []string{"safe_pass", "needs_review", "unsafe_fail"} {
		verdicts += strings.Count(text, "\njurat_verdicts_total{position=\""+position+"\"} 1\n")
	}
	must.Hold(t, verdicts == 1, "%d verdicts were counted:\n%s", verdicts, text)
	lacks(t, text, "Quintus", "Xanthe", "Kassel", "trial-")
	check := func(metrics string) ([]byte, error) {
		c := exec.CommandContext(t.Context(), needProgram(t, "promtool"), "check", "metrics")
		c.Stdin = strings.NewReader(metrics)
		return c.CombinedOutput()
	}
	out, err := check(text)
	must.Hold(t, err == nil, "promtool: %v\n%s", err, out)
	must.Refuse(t, "", "promtool takes a counter whose name does not end in _total")(check(text + "# TYPE jurat_bad counter\njurat_bad 1\n"))
}

// TestDoctorOfADatabase: with PostgreSQL, the doctor says what is there and what is broken, makes nothing in a database without an
// installation, and never shows the database's password.
func TestDoctorOfADatabase(t *testing.T) {
	m := machines(t, 1)[0]
	t.Setenv("JURAT_JURORS", "offline")
	database, _ := strings.CutPrefix(m.env[len(m.env)-2], "JURAT_DB=")
	key, _ := strings.CutPrefix(m.env[len(m.env)-1], "JURAT_WRAPPING_KEY=")
	examine := func(code int, database, key string, want ...string) {
		t.Helper()
		out, said := ran(t, code, append([]string{"--db", database, "--wrapping-key", key, "doctor"}, m.args...)...)
		must.Contain(t, strings.Join(strings.Fields(out), " "), want...)
		if u, err := url.Parse(database); err != nil {
			t.Fatal(err)
		} else if password, ok := u.User.Password(); ok && password != "" && strings.Contains(out+said, password) {
			t.Errorf("it shows the password:\n%s%s", out, said)
		}
	}
	for range 2 { // the first look makes nothing
		examine(1, database, key, "look installation", "there is none yet", "jurat init")
	}
	m.do("init")
	examine(1, database, key, "ok installation", "a log of", "ok sealing", "ok clock", "only the built-in one")
	gone := must.Get(url.Parse(database))(t)
	gone.Path += "-gone"
	gone.User = url.UserPassword(gone.User.Username(), "geheim-4711")
	examine(exitCannot, gone.String(), key, "broken installation")
	other := t.TempDir() + "/other.key"
	doing(t, 0, "keys", "rewrap", "--new", other)
	examine(exitCannot, database, other, "broken installation")
}

// TestDatabaseAdvice: if a machine cannot use its database, the error names the database and its server, says what to do
// next, and does not contain the password.
func TestDatabaseAdvice(t *testing.T) {
	good := must.Get(url.Parse(rig.Database(t)))(t)
	dir := t.TempDir()
	key := filepath.Join(dir, "wrapping.key")
	doing(t, 0, "keys", "rewrap", "--new", key)
	admin := must.Get(pgx.Connect(t.Context(), rig.Admin(t, good.String())))(t)
	defer admin.Close(t.Context())
	must.Fail(t, nil)(admin.Exec(t.Context(), `CREATE ROLE reads LOGIN PASSWORD 'geheim'`))
	password, _ := good.User.Password()
	name := strings.TrimPrefix(good.Path, "/")
	for what, test := range map[string]struct {
		user       *url.Userinfo
		host, path string
		says, hint string
	}{
		"nobody there":     {good.User, "127.0.0.1:1", name, "connection refused", "pg_isready"},
		"no such host":     {good.User, "db.invalid:5432", name, "out of reach", "pg_isready"},
		"no such database": {good.User, good.Host, "nowhere", "no such database", "createdb"},
		"a wrong password": {url.UserPassword("jurat", "geheim"), good.Host, name, "does not let this role in", "PGPASSWORD"},
		"no such role":     {url.UserPassword("nobody", "geheim"), good.Host, name, "does not let this role in", "PGPASSWORD"},
		"not the owner":    {url.UserPassword("reads", "geheim"), good.Host, name, "may not do what is needed", "OWNER TO"},
	} {
		for _, command := range []string{"seal -", "log fsck", "serve --jurors offline --addr 127.0.0.1:0"} {
			if what == "not the owner" && command == "log fsck" {
				continue // it makes nothing, and finds nothing
			}
			var out, errs bytes.Buffer
			at := url.URL{Scheme: "postgres", User: test.user, Host: test.host, Path: test.path}
			args := append([]string{"--db", at.String(), "--wrapping-key", key, "--data", filepath.Join(dir, "data")}, strings.Fields(command)...)
			code := run(t.Context(), args, stdio{in: strings.NewReader(advisedPayload), out: &out, err: &errs})
			said, hint, _ := strings.Cut(errs.String(), "jurat: hint: ")
			must.Hold(t, code == exitCannot && strings.Contains(said, test.says) && strings.Contains(hint, test.hint),
				"%s, %s: exit code %d\n%s", command, what, code, &errs)
			if host := at.Hostname(); !strings.Contains(said, test.path) || !strings.Contains(said, host) {
				t.Errorf("%s, %s: the error does not name the database\n%s", command, what, said)
			}
			lacks(t, said, "\uFFFD")
			must.Hold(t, !strings.Contains(errs.String(), "geheim") && !strings.Contains(errs.String(), password),
				"%s, %s: it says the password", command, what)
		}
	}
}

const advisedPayload = `{"agent_id":"a","request_id":"1","timestamp":"2026-01-01T00:00:00Z","model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// hookFile writes a configuration with a webhook at this address.
func hookFile(t *testing.T, inward, address string) string {
	t.Helper()
	folder := t.TempDir()
	secret := write(t, filepath.Join(folder, "secret"), hookSecret+"\n")
	return write(t, filepath.Join(folder, "webhook.yaml"), "webhook: {url: '"+address+"', "+inward+"secret: {file: '"+secret+"'}}\n")
}

// TestWebhookTest: a receiver that checks signatures takes the message; the command says what was sent and what came back, and needs no installation. Of
// a receiver that does not take it, it says what to do.
func TestWebhookTest(t *testing.T) {
	t.Parallel()
	var heard []string
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		by, failed := standardwebhooks.NewWebhook(hookSecret)
		if err != nil || failed != nil || by.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		heard = append(heard, r.Header.Get("webhook-id")+" "+string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer good.Close()
	status := 0
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", good.URL)
		w.WriteHeader(status)
	}))
	defer bad.Close()
	data := filepath.Join(t.TempDir(), "none")
	refusing := hookFile(t, "inward: true, ", bad.URL)
	out := doing(t, 0, "--data", data, "doctor", "--webhook", "--config", hookFile(t, "inward: true, ", good.URL+"/hook?token=of-the-receiver"))
	must.Need(t, len(heard) == 1 && strings.Contains(heard[0], `"type":"webhook.test"`), "heard %q", heard)
	id, body, _ := strings.Cut(heard[0], " ")
	must.Contain(t, out, "sent to "+good.URL, "webhook-id "+id, "taken, with status 202", "webhook.test")
	must.Hold(t, !strings.Contains(out, "of-the-receiver") && !strings.Contains(out, hookSecret) && !strings.Contains(body, "of-the-receiver"),
		"a secret is printed:\n%s", out)
	for code, want := range map[int]string{401: "the secret that this file names", 404: "Correct the url", 302: "Redirects are not followed", 410: "Subscribe anew", 429: "busy", 500: "Look for the message's id"} {
		status = code
		var got hookTest
		must.Do(t, json.Unmarshal([]byte(doing(t, exitBad, "doctor", "--webhook", "--config", refusing, "--json")), &got))
		must.Hold(t, !got.Taken && got.Status == code && got.Why != "" && strings.Contains(got.Do, want), "status %d: %+v", code, got)
	}
	bad.Close()
	must.Contain(t, doing(t, exitBad, "doctor", "--webhook", "--config", refusing), "not taken", "Nothing listens there")
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	must.Contain(t, doing(t, exitBad, "doctor", "--webhook", "--config", hookFile(t, "inward: true, ", secure.URL)), "certificate is not good")
	local := strings.Replace(secure.URL, "127.0.0.1", "localhost", 1)
	must.Contain(t, doing(t, exitBad, "doctor", "--webhook", "--config", hookFile(t, "", local)), "inward: true")
	for want, err := range map[string]error{"does not find the name": &net.DNSError{Err: "no such host", IsNotFound: true}, "within 20 s": context.DeadlineExceeded, "broke": io.ErrUnexpectedEOF} {
		must.Contain(t, hookAdvice(&panel.Webhook{}, 0, fmt.Errorf("sending: %w", err)), want)
	}
}

// TestWebhookTestRefuses: what is wrong with the file is named, and nothing is sent.
func TestWebhookTestRefuses(t *testing.T) {
	t.Parallel()
	none := write(t, filepath.Join(t.TempDir(), "none.yaml"), "jurors: offline\n")
	noSecret := write(t, filepath.Join(t.TempDir(), "secret.yaml"), "webhook: {url: 'https://hooks.example/', secret: {env: JURAT_TEST_NO_SUCH_SECRET}}\n")
	for want, args := range map[string][]string{
		"it names no webhook":       {"--config", none},
		"JURAT_TEST_NO_SUCH_SECRET": {"--config", noSecret},
		"no such file":              {"--config", filepath.Join(t.TempDir(), "missing.yaml")},
		"jurat.yaml":                {},
	} {
		code, out, errs := jurat(t, append([]string{"doctor", "--webhook"}, args...)...)
		must.Hold(t, code == exitCannot && out == "" && strings.Contains(errs, want), "%q: exit code %d, %s%s", args, code, out, errs)
	}
}

// TestTellsOfCases: a server tells a webhook of the case that needs a person, though its trial ended before the server began; not of one
// that the jury decided; and of nothing again after a restart. The message links to the page of the decision, and has nothing that was said.
func TestTellsOfCases(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	heard := make(chan string, 10)
	desk := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		by, failed := standardwebhooks.NewWebhook(hookSecret)
		must.Hold(t, err == nil && failed == nil && by.Verify(body, r.Header) == nil, "a message that is not signed: %s, %v", body, err)
		heard <- string(body)
	}))
	defer desk.Close()
	settings := hookFile(t, "inward: true, ", desk.URL)
	doing(t, 0, "--data", data, "trial", "--jurors", "offline", filepath.Join("..", "..", "examples", "kitchen-return"))
	token := strings.TrimSpace(doing(t, 0, "--data", data, "access", "grant", "ada", "auditor", "--reason", "a test", "--by", "tester"))
	told := map[string]bool{}
	for range 2 { // each time, one case more needs a person
		doing(t, exitUndecided, "--data", data, "trial", "--jurors", "offline", filepath.Join("..", "..", "examples", "pharmacy-refill"))
		url, _, stop := serve(t, "--data", data, "serve", "--addr", "127.0.0.1:0", "--jurors", "offline", "--config", settings)
		var m struct {
			Type string `json:"type"`
			Data struct {
				RecordID string `json:"record_id"`
				Page     string `json:"page"`
				Arrival  struct {
					Trial    string   `json:"trial"`
					Position string   `json:"position"`
					Why      []string `json:"why"`
				} `json:"arrival"`
			} `json:"data"`
		}
		body := <-heard
		if err := json.Unmarshal([]byte(body), &m); err != nil || m.Type != "review.arrived" || m.Data.Page != url+"/reviews/"+m.Data.RecordID ||
			m.Data.Arrival.Position != "needs_review" || !slices.Contains(m.Data.Arrival.Why, "needs_review") || strings.Contains(body, "pharmacist") || told[m.Data.Arrival.Trial] {
			t.Errorf("%s: %v", body, err)
		}
		told[m.Data.Arrival.Trial] = true
		for end := time.Now().Add(time.Minute); !strings.Contains(readAs(t, token, url+"/metrics"), "\njurat_webhook_messages_waiting 0\n"); time.Sleep(50 * time.Millisecond) {
			must.Need(t, !time.Now().After(end), "messages wait")
		}
		stop()
	}
	select {
	case body := <-heard:
		t.Errorf("told again: %s", body)
	default:
	}
	doing(t, 0, "--data", data, "log", "fsck")
}

func readAs(t *testing.T, token, url string) string {
	t.Helper()
	ask := must.Get(http.NewRequestWithContext(t.Context(), "GET", url, nil))(t)
	ask.Header.Set("Authorization", "Bearer "+token)
	answer := must.Get(http.DefaultClient.Do(ask))(t)
	defer answer.Body.Close()
	return string(must.Get(io.ReadAll(answer.Body))(t))
}
