package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/test/must"
)

const deploy = "../../deploy"

// unit reads a systemd unit: the values of each key.
func unit(t *testing.T, name string) map[string][]string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(deploy, name)))(t)
	values := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			values[key] = append(values[key], value)
		}
	}
	return values
}

// ordinary is the user id under which tests that run as root start a program.
const ordinary = 65534

// asOrdinary makes a copy of this program for an ordinary user, in a folder of its own under one in which that user may
// not write.
func asOrdinary(t *testing.T, mode os.FileMode) (program, dir string, attributes *syscall.SysProcAttr) {
	t.Helper()
	found := must.Get(exec.LookPath("jurat"))(t)
	root := must.Get(os.MkdirTemp("", "jurat-ordinary-"))(t)
	t.Cleanup(func() { os.RemoveAll(root) })
	program, dir = filepath.Join(root, "jurat"), filepath.Join(root, "lib", "jurat")
	out, err := exec.Command("cp", "-L", found, program).CombinedOutput()
	must.Need(t, err == nil, "%s", out)
	must.Do(t, os.MkdirAll(dir, 0o755))
	must.Do(t, os.Chmod(dir, mode))
	if os.Geteuid() == 0 {
		must.Do(t, os.Chown(dir, ordinary, ordinary))
		attributes = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	}
	for folder, mode := range map[string]os.FileMode{filepath.Join(root, "lib"): 0o555, root: 0o755} {
		must.Do(t, os.Chmod(folder, mode))
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(root, "lib"), 0o755) })
	return program, dir, attributes
}

// freeAddr returns an address at which no process listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

// TestUnit starts the server as the systemd unit says: as its user, in the empty folder that systemd makes. Its log must
// be JSON.
func TestUnit(t *testing.T) {
	u := unit(t, "jurat.service")
	mode, err := strconv.ParseUint(u["StateDirectoryMode"][0], 8, 32)
	must.Need(t, err == nil && u["StateDirectory"][0] == "jurat" && len(u["ExecStart"]) == 1, "%v %v", u, err)
	program, dir, attributes := asOrdinary(t, os.FileMode(mode))
	const state = "/var/lib/jurat"
	words := strings.Fields(u["ExecStart"][0])
	at := freeAddr(t)
	server := exec.Command(program, append(words[1:], "--addr", at)...)
	server.Dir, server.SysProcAttr = "/", attributes
	server.Env = []string{"PATH=/usr/bin:/bin"}
	for _, e := range u["Environment"] {
		server.Env = append(server.Env, strings.ReplaceAll(e, state, dir))
	}
	told := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: "@" + filepath.Base(filepath.Dir(dir)) + at}))(t)
	defer told.Close()
	server.Env = append(server.Env, "NOTIFY_SOCKET="+told.LocalAddr().String())
	must.Need(t, strings.Contains(strings.Join(server.Env, " "), dir), "the unit does not name %s", state)
	var out, errs bytes.Buffer
	server.Stdout, server.Stderr = &out, &errs
	endsWithTest(t, server)
	must.Do(t, server.Start())
	ready := false
	for end := time.Now().Add(time.Minute); !ready && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get("http://" + at + "/readyz")
		if err == nil {
			ready = answer.StatusCode == http.StatusOK
			answer.Body.Close()
		}
	}
	message := make([]byte, 100)
	must.Do(t, told.SetReadDeadline(time.Now().Add(time.Minute)))
	if n, err := told.Read(message); err != nil || string(message[:n]) != "READY=1" || u["Type"][0] != "notify" {
		t.Errorf("the service manager is told %q, %v", message[:n], err)
	}
	must.Do(t, server.Process.Signal(syscall.SIGTERM))
	err = server.Wait()
	must.Need(t, err == nil && ready, "ready %v, %v\n%s", ready, err, &errs)
	for line := range strings.Lines(errs.String()) {
		must.Hold(t, json.Unmarshal([]byte(line), new(map[string]any)) == nil, "no line of JSON: %s", line)
	}
	lacks(t, errs.String(), "sign-in?link=")
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		said, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(deploy, "jurat.service")).CombinedOutput()
		must.Hold(t, err == nil || strings.Contains(string(said), "not executable"), "%v: %s", err, said)
	}
}

// TestAnotherUser: root does not change a data folder of another user, and a server that cannot read its keys is not
// ready.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	program, dir, attributes := asOrdinary(t, 0o700)
	at := freeAddr(t)
	server := exec.Command(program, "--data", dir, "serve", "--addr", at)
	server.Dir, server.SysProcAttr, server.Env = "/", attributes, []string{"PATH=/usr/bin:/bin"}
	var errs lines
	server.Stderr = &errs
	endsWithTest(t, server)
	must.Do(t, server.Start())
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	wait := func(status int) {
		t.Helper()
		got := 0
		for end := time.Now().Add(time.Minute); got != status && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if answer, err := http.Get("http://" + at + "/readyz"); err == nil {
				got = answer.StatusCode
				answer.Body.Close()
			}
		}
		must.Need(t, got == status, "%d, want %d\n%s", got, status, errs.String())
	}
	wait(http.StatusOK)
	_, said := ran(t, exitCannot, "--data", dir, "keys", "new", "agent", "a")
	must.Contain(t, said, "it belongs to another user", "sudo -u '")
	foreign := filepath.Join(dir, "keys", "root.key") // as a command that ran as root would leave it
	must.Do(t, os.WriteFile(foreign, nil, 0o600))
	wait(http.StatusServiceUnavailable)
	must.Do(t, os.Remove(foreign))
	wait(http.StatusOK)
}

// TestPublishNothing: a chain or record that does not exist cannot be published.
func TestPublishNothing(t *testing.T) {
	data := t.TempDir() + "/data"
	doing(t, 0, "--data", data, "init")
	_, said := ran(t, exitCannot, "--data", data, "access", "publish", "nowhere", "--reason", "a test", "--by", "tester")
	must.Contain(t, said, `no chain and no record "nowhere"`)
	must.Equal(t, doing(t, 0, "--data", data, "access", "list"), "")

	// A record in a chain is published with its chain, and a record without one by itself.
	id := func(chain string) string {
		t.Helper()
		file := t.TempDir() + "/payload"
		must.Do(t, os.WriteFile(file, []byte(`{`+chain+`"agent_id":"a","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"m-1","prompt":"p","response":"r","parameters":{}}`), 0o600))
		record, _, err := evidence.Read([]byte(doing(t, 0, "--data", data, "seal", file)))
		must.Do(t, err)
		return record.Payload.RecordID
	}
	alone, chained := id(""), id(`"chain_id":"c",`)
	doing(t, 0, "--data", data, "access", "publish", alone, "--reason", "a test", "--by", "tester")
	_, said = ran(t, exitCannot, "--data", data, "access", "publish", chained, "--reason", "a test", "--by", "tester")
	must.Contain(t, said, `is in the chain "c"`)
}

// A front is a real nginx with the file that operators copy, before a real server. People reach it as https://jurat.example.
type front struct {
	t       *testing.T
	client  *http.Client
	tls     string // where nginx listens instead of at 443
	plain   string // and instead of at 80
	agent   string // tokens
	sam     string // who submits cases
	data    string
	program string
}

const frontOrigin = "https://jurat.example"

// TestNginx starts nginx before a server, and goes through it as people and programs do.
func TestNginx(t *testing.T) {
	t.Parallel()
	f := &front{t: t, tls: freeAddr(t), plain: freeAddr(t), data: t.TempDir() + "/data", program: nginx(t)}
	behind := freeAddr(t)
	at, _, _ := serve(t, "--data", f.data, "serve", "--addr", behind, "--origin", frontOrigin, "--jurors", "offline")
	must.Need(t, at == frontOrigin, "the server says that it is at %s", at)
	f.agent = doing(t, 0, "--data", f.data, "access", "grant", "agent", "agent", "--reason", "a test", "--by", "tester")
	f.sam = doing(t, 0, "--data", f.data, "access", "grant", "sam", "submitter", "--reason", "a test", "--by", "tester")
	f.start(behind)
	for name, test := range map[string]func(*testing.T){"SignIn": f.signsIn, "Large": f.takesLarge, "Watch": f.watches, "Headers": f.believesNoHeader, "Redirect": f.redirects} {
		t.Run(name, test)
	}
	t.Run("Limit", f.limits) // last, as it uses up what one address may ask
}

func nginx(t *testing.T) string {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	must.Need(t, os.Getenv("CI") != "true", "there is no nginx")
	t.Skip("there is no nginx")
	return ""
}

// certificateFor makes a certificate for jurat.example, which is its own root, and the key to it.
func certificateFor(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=jurat.example",
		"-addext", "subjectAltName=DNS:jurat.example", "-keyout", key, "-out", cert).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return cert, key
}

// start starts nginx with the file as it is, but for its ports, the server's address and the certificate.
func (f *front) start(behind string) {
	f.t.Helper()
	dir := f.t.TempDir()
	cert, key := certificateFor(f.t, dir)
	text := must.Get(os.ReadFile(filepath.Join(deploy, "nginx.conf")))(f.t)
	site := string(text)
	for _, change := range [][2]string{
		{"/etc/letsencrypt/live/jurat.example/fullchain.pem", cert}, {"/etc/letsencrypt/live/jurat.example/privkey.pem", key},
		{"listen 443 ssl;", "listen " + f.tls + " ssl;"}, {"listen [::]:443 ssl;", ""},
		{"listen 80;", "listen " + f.plain + ";"}, {"listen [::]:80;", ""}, {"127.0.0.1:8417", behind},
	} {
		must.Need(f.t, strings.Count(site, change[0]) == 1, "the file says %q %d times", change[0], strings.Count(site, change[0]))
		site = strings.Replace(site, change[0], change[1], 1)
	}
	included, whole := filepath.Join(dir, "jurat.conf"), filepath.Join(dir, "nginx.conf")
	// The rest is what every nginx has. Temporary files stay in the test's folder.
	frame := fmt.Sprintf("pid %[1]s/nginx.pid;\nerror_log stderr;\nevents {}\nhttp { access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; "+
		"fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s; include %[2]s; }\n", dir, included)
	if os.Geteuid() == 0 {
		frame = "user root;\n" + frame // the test's folder is root's alone
	}
	for name, text := range map[string]string{included: site, whole: frame} {
		must.Do(f.t, os.WriteFile(name, []byte(text), 0o600))
	}
	out, err := exec.Command(f.program, "-t", "-c", whole, "-p", dir).CombinedOutput()
	must.Need(f.t, err == nil && !strings.Contains(string(out), "[warn]"), "%v: %s", err, out)
	f.run(dir, whole)
	f.trusts(cert)
}

// run starts nginx, and stops it with the test.
func (f *front) run(dir, whole string) {
	f.t.Helper()
	var said lines
	running := exec.Command(f.program, "-c", whole, "-p", dir, "-g", "daemon off;")
	running.Stdout, running.Stderr = &said, &said
	must.Do(f.t, running.Start())
	f.t.Cleanup(func() {
		must.Want(f.t, running.Process.Signal(os.Interrupt), nil)
		must.Want(f.t, running.Wait(), nil, "nginx did not end well")
		if f.t.Failed() {
			f.t.Log(said.String())
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", f.tls)
		if err == nil {
			conn.Close()
			return
		}
		must.Need(f.t, !time.Now().After(end), "nginx does not listen: %v\n%s", err, said.String())
	}
}

// trusts makes the client, for which jurat.example is where nginx listens.
func (f *front) trusts(cert string) {
	f.t.Helper()
	text, err := os.ReadFile(cert)
	roots := x509.NewCertPool()
	must.Need(f.t, err == nil && roots.AppendCertsFromPEM(text), "%v", err)
	jar := must.Get(cookiejar.New(nil))(f.t)
	f.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			here, ok := map[string]string{"jurat.example:443": f.tls, "jurat.example:80": f.plain}[addr]
			if !ok {
				return nil, fmt.Errorf("nothing is at %s", addr)
			}
			return new(net.Dialer).DialContext(ctx, network, here)
		}}}
	f.t.Cleanup(f.client.CloseIdleConnections)
}

// ask makes a request.
func (f *front) ask(t *testing.T, method, at string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, at, body))(t)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := must.Get(f.client.Do(r))(t)
	defer answer.Body.Close()
	doc := must.Get(io.ReadAll(answer.Body))(t)
	return answer, string(doc)
}

// signsIn: a person signs in by a link, gets a cookie for https alone, and sees a page; another site cannot send the form.
func (f *front) signsIn(t *testing.T) {
	_, link, _ := strings.Cut(doing(t, 0, "--data", f.data, "access", "grant", "mia", "--link", "--at", frontOrigin), "link=")
	form := url.Values{"link": {link}}.Encode()
	const kind = "application/x-www-form-urlencoded"
	if answer, doc := f.ask(t, "POST", frontOrigin+"/sign-in", strings.NewReader(form), "Content-Type", kind, "Origin", "https://evil.example"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("another site: %s %.200s", answer.Status, doc)
	}
	answer, doc := f.ask(t, "POST", frontOrigin+"/sign-in", strings.NewReader(form), "Content-Type", kind, "Origin", frontOrigin)
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 || !answer.Cookies()[0].Secure || !strings.HasPrefix(answer.Cookies()[0].Name, "__Host-") {
		t.Fatalf("%s %v %.200s", answer.Status, answer.Cookies(), doc)
	}
	answer, doc = f.ask(t, "GET", frontOrigin+"/reviews", nil)
	must.Hold(t, answer.StatusCode == http.StatusOK, "%s %.200s", answer.Status, doc)
}

// takesLarge: a record as large as the server takes goes through, whole or in chunks. A larger one is refused.
func (f *front) takesLarge(t *testing.T) {
	const most = 8 << 20 // the default of --max-body
	record := func(id string, size int) []byte {
		frame := fmt.Sprintf(`{"agent_id":"agent","request_id":%q,"timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"p","response":"%%s","parameters":{}}`, id)
		return []byte(fmt.Sprintf(frame, strings.Repeat("x", size-len(frame)+2)))
	}
	for name, c := range map[string]struct {
		body io.Reader
		want int
	}{
		"whole":     {bytes.NewReader(record("1", most)), http.StatusCreated},
		"in chunks": {io.MultiReader(bytes.NewReader(record("2", most))), http.StatusCreated},
		"too large": {bytes.NewReader(record("3", most+1)), http.StatusRequestEntityTooLarge},
	} {
		answer, doc := f.ask(t, "POST", frontOrigin+"/v1/records", c.body, "Authorization", "Bearer "+f.agent)
		must.Hold(t, answer.StatusCode == c.want, "%s: %s %.300s", name, answer.Status, doc)
	}
}

// watches: a trial is watched to its end over a WebSocket.
func (f *front) watches(t *testing.T) {
	card, conversation, err := examples.Read(examples.Names()[0])
	must.Do(t, err)
	answer, doc := f.ask(t, "POST", frontOrigin+"/v1/submissions", strings.NewReader(fmt.Sprintf(`{"agentCard":%s,"conversation":%s}`, card, conversation)), "Authorization", "Bearer "+f.sam)
	must.Need(t, answer.StatusCode == http.StatusAccepted, "%s %.300s", answer.Status, doc)
	_, rest, _ := strings.Cut(doc, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "wss://jurat.example/ws/submissions/"+id+"/judge", &websocket.DialOptions{HTTPClient: f.client,
		HTTPHeader: http.Header{"Authorization": {"Bearer " + f.sam}}})
	must.Do(t, err)
	defer conn.CloseNow()
	for closed := false; !closed; {
		_, event, err := conn.Read(ctx)
		must.Do(t, err)
		closed = bytes.Contains(event, []byte(`"trial_closed"`))
	}
}

// believesNoHeader: what a stranger says about proxies changes nothing, neither where jurat thinks it is nor who asks.
func (f *front) believesNoHeader(t *testing.T) {
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-For", "X-Real-Ip", "Forwarded"} {
		answer, doc := f.ask(t, "GET", frontOrigin+"/", nil, name, "http://evil.example")
		plain, _ := f.ask(t, "GET", frontOrigin+"/", nil)
		if answer.StatusCode != plain.StatusCode || answer.Header.Get("Location") != plain.Header.Get("Location") || strings.Contains(doc, "evil.example") {
			t.Errorf("%s: %s %s, without it %s %s", name, answer.Status, answer.Header.Get("Location"), plain.Status, plain.Header.Get("Location"))
		}
	}
	answer, doc := f.ask(t, "GET", "https://jurat.example/healthz", nil)
	must.Hold(t, answer.StatusCode == http.StatusOK && doc == "ok\n", "%s %s", answer.Status, doc)
}

// redirects: over http there is nothing but the way to https.
func (f *front) redirects(t *testing.T) {
	if answer, _ := f.ask(t, "GET", "http://jurat.example/chains/a?page=2", nil); answer.StatusCode != http.StatusMovedPermanently || answer.Header.Get("Location") != frontOrigin+"/chains/a?page=2" {
		t.Errorf("%s to %s", answer.Status, answer.Header.Get("Location"))
	}
}

// limits: nginx refuses a stranger who asks too often.
func (f *front) limits(t *testing.T) {
	for range 5000 {
		if answer, _ := f.ask(t, "GET", frontOrigin+"/healthz", nil); answer.StatusCode == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("nginx refused none of 5000 requests")
}

// TestFrontsAgree: the command and the server give the same answer to the same act. Each has an installation of its own,
// which gets the same acts in the same order.
func TestFrontsAgree(t *testing.T) {
	said := func(id, more string) string {
		return `{"record_id":"` + id + `","agent_id":"courier","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"m-1",
			"prompt":"p","response":"r","parameters":{}` + more + `}`
	}
	decided := func(id, by, on, more string) string {
		return `{"record_id":"` + id + `","action_type":"human_review","reviewer_id":"` + by + `","original_response_id":"` + on + `",
			"approval_status":"approved","timestamp":"2026-01-31T16:20:00Z"` + more + `}`
	}
	const one, two, three, four = "019c1500-0000-7000-8000-000000000001", "019c1500-0000-7000-8000-000000000002",
		"019c1500-0000-7000-8000-000000000003", "019c1500-0000-7000-8000-000000000004"
	acts := []struct {
		what, by, payload string
		taken             bool
	}{
		{"an answer", "courier", said(one, ""), true},
		{"the same again", "courier", said(one, ""), true},
		{"another under its id", "courier", said(one, `,"context":"another"`), false},
		{"an agent in a trial", "courier", said(two, `,"chain_id":"trial-019c1500-0000-7000-8000-0000000000ff"`), false},
		{"an act of a juror", "courier", `{"action_type":"juror_evaluation","agent_id":"courier","response":{}}`, false},
		{"no number", "courier", said(two, `,"chain_position":"first"`), false},
		{"a person's decision", "noa", decided(three, "noa", one, ""), true},
		{"a decision that saw something else", "noa", decided(four, "noa", one, `,"saw":["`+strings.Repeat("ab", 32)+`"]`), false},
		{"a decision on nothing that is here", "noa", decided(four, "noa", two, ""), true},
	}
	served, alone := t.TempDir()+"/served", t.TempDir()+"/alone"
	at, _, _ := serve(t, "--data", served, "serve", "--addr", "127.0.0.1:0")
	tokens := map[string]string{}
	for _, who := range [][2]string{{"courier", "agent"}, {"noa", "reviewer"}} {
		tokens[who[0]] = doing(t, 0, "--data", served, "access", "grant", who[0], who[1], "--reason", "a test", "--by", "tester")
	}
	doing(t, 0, "--data", alone, "init")
	for _, folder := range []string{served, alone} {
		doing(t, 0, "--data", folder, "apart", "courier", "/prompt")
	}
	for _, act := range acts {
		status, answer := postTo(t, at+"/v1/records", tokens[act.by], "", act.payload)
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"--data", alone, "seal"}, stdio{in: strings.NewReader(act.payload), out: &out, err: &errs})
		if (status == http.StatusCreated) != act.taken || (code == 0) != act.taken {
			t.Errorf("%s: the server answers %d, the command %d\n%s\n%s", act.what, status, code, answer, &errs)
			continue
		}
		if act.taken {
			sameRecord(t, act.what, answer, out.String())
			continue
		}
		var problem api.Problem
		must.Do(t, json.Unmarshal([]byte(answer), &problem))
		_, reason, _ := strings.Cut(problem.Detail, ": ") // the server's answer begins with the kind of problem, for which the command has exit codes
		must.Hold(t, strings.Contains(errs.String(), reason), "%s: the server answers\n%s\nand the command\n%s", act.what, problem.Detail, &errs)
	}
}

// sameRecord compares the records that two installations made of one draft. Keys and commitments differ.
func sameRecord(t *testing.T, what, one, other string) {
	t.Helper()
	a, err := evidence.Open([]byte(one))
	must.Need(t, err == nil, "%v %v", what, err)
	b, err := evidence.Open([]byte(other))
	must.Need(t, err == nil, "%v %v", what, err)
	a.Payload.Signers, b.Payload.Signers = nil, nil
	a.Payload.Saw, b.Payload.Saw = a.Payload.Saw[:0], b.Payload.Saw[:0]
	a.Payload.Prompt, b.Payload.Prompt = nil, nil
	first, _ := json.Marshal(a.Payload)
	second, _ := json.Marshal(b.Payload)
	must.Hold(t, string(first) == string(second) && len(a.Disclosures) == len(b.Disclosures), "%s:\n%s\n%s", what, first, second)
}
