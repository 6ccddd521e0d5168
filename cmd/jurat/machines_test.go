package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// A machine runs 'jurat serve' in a process of its own, on a database that it shares with others.
type machine struct {
	t    *testing.T
	env  []string
	args []string
	with []string // which 'jurat serve' has besides

	mu      sync.Mutex // while it is held, no other goroutine starts or ends it
	at      string     // the address of the server
	said    *lines
	process *exec.Cmd
}

// machines makes a database and this many machines on it. None of them runs yet.
func machines(t *testing.T, count int) []*machine {
	t.Helper()
	return machinesOn(t, rig.Database(t), count)
}

func machinesOn(t *testing.T, database string, count int) []*machine {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "wrapping.key")
	doing(t, 0, "keys", "rewrap", "--new", key)
	// On a busy machine, a slow database is not unreachable.
	env := append(os.Environ(), "JURAT_DB="+database+"?connect_timeout=60", "JURAT_WRAPPING_KEY="+key)
	var list []*machine
	for n := range count {
		m := &machine{t: t, env: env, args: []string{"--data", filepath.Join(dir, fmt.Sprint("machine-", n))}}
		t.Cleanup(m.kill)
		list = append(list, m)
	}
	return list
}

// command returns the built command, to be run on this machine.
func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.Command("jurat", append(append([]string{}, m.args...), args...)...)
	cmd.Env = m.env
	return cmd
}

// do runs a command to its end, and returns what it prints.
func (m *machine) do(args ...string) string {
	m.t.Helper()
	var out, errs bytes.Buffer
	cmd := m.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		m.t.Fatalf("jurat %s: %v\n%s%s", strings.Join(args, " "), err, &out, &errs)
	}
	return strings.TrimSpace(out.String())
}

// start starts the server, and returns when it answers.
func (m *machine) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	cmd := m.command(append([]string{"serve", "--addr", "127.0.0.1:0"}, m.with...)...)
	said := new(lines)
	cmd.Stderr = said
	endsWithTest(m.t, cmd)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	m.process, m.said = cmd, said
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fmt.Errorf("it does not start: %w\n%s", err, said)
	}
	m.at = strings.TrimSpace(line)
	return nil
}

// kill ends the server at once.
func (m *machine) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill()
	_ = m.process.Wait() // Wait returns an error, as the server was killed
	m.process = nil
}

// stop ends the server as an operator does.
func (m *machine) stop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	process := m.process
	m.process = nil
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := process.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, m.said)
	}
	return nil
}

func (m *machine) address() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

const machinesAgent = "logistics-agent-v1"

// seal sends a payload to the machine. It returns no record and no error if another machine should be tried.
func (m *machine) seal(ctx context.Context, token, key, request string) (*evidence.Record, error) {
	body := fmt.Sprintf(`{"agent_id": %q, "request_id": %q, "timestamp": "2026-01-31T16:15:00Z", "model": "m", "model_version": "m-1",
		"prompt": "p", "response": "r", "parameters": {}}`, machinesAgent, request)
	r, err := http.NewRequestWithContext(ctx, "POST", m.address()+"/v1/records", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set(api.IdempotencyKey, key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil // it was killed
	}
	defer answer.Body.Close()
	doc, err := io.ReadAll(answer.Body)
	switch {
	case err != nil, answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode >= 500:
		return nil, nil
	case answer.StatusCode != http.StatusCreated:
		return nil, fmt.Errorf("%s: %s", answer.Status, doc)
	}
	return evidence.Open(doc)
}

func (m *machine) get(token, path string) (int, string) {
	m.t.Helper()
	r := must.Get(http.NewRequestWithContext(m.t.Context(), "GET", m.address()+path, nil))(m.t)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer := must.Get(http.DefaultClient.Do(r))(m.t)
	defer answer.Body.Close()
	doc := must.Get(io.ReadAll(answer.Body))(m.t)
	return answer.StatusCode, string(doc)
}

func (m *machine) grant(name, role string) string {
	m.t.Helper()
	return m.do("access", "grant", name, role, "--reason", "a test", "--by", "tester")
}

// startAll starts machines at the same time.
func startAll(t *testing.T, list []*machine) {
	t.Helper()
	var all sync.WaitGroup
	for _, m := range list {
		all.Go(func() {
			must.Want(t, m.start(), nil)
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// TestMachines: three servers that start at the same time on an empty database are one installation. An agent that is
// new to all of them gets one key, each server reads what the others have sealed, and a browser session works on all.
func TestMachines(t *testing.T) {
	t.Parallel()
	list := machines(t, 3)
	startAll(t, list)
	token, auditor := list[0].grant(machinesAgent, "agent"), list[1].grant("ada", "auditor")
	const each = 6
	records := make([]*evidence.Record, len(list)*each)
	var all sync.WaitGroup
	for n := range records {
		all.Go(func() {
			var err error
			key := fmt.Sprint("order ", n)
			if records[n], err = list[n%len(list)].seal(t.Context(), token, key, key); err != nil || records[n] == nil {
				t.Error(records[n], err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	var trusts []string
	for _, m := range list {
		for _, r := range records {
			status, doc := m.get(auditor, "/v1/records/"+r.Payload.RecordID)
			must.Hold(t, status == http.StatusOK && strings.Contains(doc, r.Payload.RequestID), "%s: %d", r.Payload.RequestID, status)
			must.Hold(t, r.Payload.Signers[0] == records[0].Payload.Signers[0], "%s is signed with another key", r.Payload.RequestID)
		}
		_, trust := m.get(auditor, "/v1/trust")
		trusts = append(trusts, trust)
	}
	must.Hold(t, trusts[0] == trusts[1] && trusts[0] == trusts[2], "the machines return different trust files")
	// A request that is repeated on another machine has no second effect.
	again, err := list[1].seal(t.Context(), token, "order 0", "order 0")
	must.Hold(t, err == nil && again != nil && again.Digest == records[0].Digest, "%v %v", again, err)
	browse(t, list)
	for _, m := range list {
		must.Want(t, m.stop(), nil)
	}
	list[2].do("log", "fsck")
}

// browse uses one browser on every machine.
func browse(t *testing.T, list []*machine) {
	t.Helper()
	jar := must.Get(cookiejar.New(nil))(t)
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	_, link, _ := strings.Cut(list[0].do("access", "grant", "mia", "--link"), "link=")
	for n, want := range []int{http.StatusSeeOther, http.StatusUnauthorized, http.StatusUnauthorized} { // a link works once, on any machine
		who := browser
		if n > 0 {
			who = http.DefaultClient // somebody else
		}
		answer := must.Get(who.PostForm(list[(n+1)%len(list)].at+"/sign-in", url.Values{"link": {link}}))(t)
		answer.Body.Close()
		must.Equal(t, answer.StatusCode, want)
	}
	for _, m := range list {
		answer := must.Get(browser.Get(m.at + "/reviews"))(t)
		page, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		must.Hold(t, err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(page), "mia"), "%s: %s, %v", m.at, answer.Status, err)
	}
}

// TestMachinesAreKilled kills machines at random moments while agents seal. Every acknowledged record is in the log
// once, whichever machine acknowledged it, and the log is whole. Meanwhile it is backed up, and restored to a folder and
// to another database.
func TestMachinesAreKilled(t *testing.T) {
	t.Parallel()
	list := machines(t, 3)
	startAll(t, list)
	token, auditor := list[0].grant(machinesAgent, "agent"), list[0].grant("ada", "auditor")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	acknowledged := make([][]*evidence.Record, 6)
	var many atomic.Int64 // of acknowledged
	var agents sync.WaitGroup
	for n := range acknowledged {
		agents.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				request := fmt.Sprint("agent ", n, ", request ", k)
				for tried := 0; ctx.Err() == nil; tried++ { // with the same idempotency key, on one machine after the other
					r, err := list[(n+k+tried)%len(list)].seal(ctx, token, request, request)
					if err != nil {
						t.Error(err)
						return
					}
					if r != nil {
						acknowledged[n] = append(acknowledged[n], r)
						many.Add(1)
						break
					}
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	copies := make(chan string, 1)
	go func() { // on the first machine, where only the server is killed
		copied := filepath.Join(t.TempDir(), "copy")
		cmd := list[0].command("backup", copied)
		out, err := cmd.CombinedOutput()
		must.Hold(t, err == nil, "backup: %v\n%s", err, out)
		copies <- copied
	}()
	leastKills := 5
	if os.Getenv("JURAT_TEST_LONG") != "" {
		leastKills = 30
	}
	for kills := 0; kills < leastKills || many.Load() < 50; kills++ {
		time.Sleep(rand.N(400 * time.Millisecond))
		m := list[rand.N(len(list))]
		m.kill()
		must.Do(t, m.start())
	}
	end()
	agents.Wait()

	seen := map[string]bool{}
	total := 0
	for _, records := range acknowledged {
		for _, r := range records {
			total++
			must.Hold(t, !seen[r.Payload.RequestID], "%s was acknowledged twice", r.Payload.RequestID)
			seen[r.Payload.RequestID] = true
			status := http.StatusTooManyRequests
			for status == http.StatusTooManyRequests {
				if status, _ = list[total%len(list)].get(auditor, "/v1/records/"+r.Payload.RecordID); status == http.StatusTooManyRequests {
					time.Sleep(20 * time.Millisecond)
				}
			}
			must.Hold(t, status == http.StatusOK, "%s was acknowledged, and is %d", r.Payload.RequestID, status)
		}
	}
	t.Logf("%d records were acknowledged", total)
	for _, m := range list {
		m.kill()
	}
	list[1].do("log", "fsck")
	wantOnceEach(t, list[2], seen)

	copied := <-copies
	folder := filepath.Join(t.TempDir(), "restored")
	doing(t, 0, "--data", folder, "init", "--from", copied, "--none-later")
	doing(t, 0, "--data", folder, "log", "fsck")
	other := machines(t, 1)[0]
	other.do("init", "--from", copied, "--none-later")
	other.do("log", "fsck")
}

// TestMachinesWithoutDatabase: while the database is away, a server says so and seals nothing. When it is back, the
// server works again.
func TestMachinesWithoutDatabase(t *testing.T) {
	t.Parallel()
	server := rig.StartPostgres(t)
	m := machinesOn(t, server.Database(t), 1)[0]
	startAll(t, []*machine{m})
	token := m.grant(machinesAgent, "agent")
	seal := func(key string) *evidence.Record {
		t.Helper()
		return must.Get(m.seal(t.Context(), token, key, key))(t)
	}
	first := seal("first")
	server.Halt(t)
	if r := seal("lost"); r != nil {
		t.Errorf("sealed without a database: %s", r.Payload.RecordID)
	}
	status, _ := m.get("", "/readyz")
	must.Hold(t, status == http.StatusServiceUnavailable, "it is ready without a database: %d", status)
	answered(t, exitBad, readiness{URL: m.at, Reason: "the server cannot do it now: the log takes no records: the database server is out of reach; the server's log says more"}, "doctor", "--ready", "--json", m.at)
	status, _ = m.get("", "/healthz")
	must.Hold(t, status == http.StatusOK, "/healthz fails without a database: %d", status)
	server.Restart(t)
	var again *evidence.Record
	for again == nil { // until there are new connections
		again = seal("lost")
	}
	must.Equal(t, again.Payload.Signers[0], first.Payload.Signers[0])
	must.Want(t, m.stop(), nil)
	m.do("log", "fsck")
}

// TestMachinesSayThatTheDatabaseIsAway asks and posts while the database is stopped, killed and started again. A request that cannot be served gets
// 503, which says that it may be sent again.
func TestMachinesSayThatTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	server := rig.StartPostgres(t)
	m := machinesOn(t, server.Database(t), 1)[0]
	m.with = []string{"--jurors", "offline"}
	startAll(t, []*machine{m})
	agent, people := m.grant(machinesAgent, "agent"), m.do("access", "grant", "sam", "submitter", "auditor", "--reason", "a test", "--by", "tester")
	body, err := json.Marshal(map[string]any{"conversation": []map[string]string{{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}}})
	must.Do(t, err)
	ask := func(ctx context.Context, method, path, token, body string) (int, string) {
		r, err := http.NewRequestWithContext(ctx, method, m.at+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, ""
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body) // it is only shown
		return answer.StatusCode, string(text)
	}
	record := `{"agent_id":"` + machinesAgent + `","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"1","prompt":"p","response":"r","parameters":{}}`
	requests := []struct{ method, path, token, body string }{{"POST", "/v1/submissions", people, string(body)}, {"POST", "/v1/records", agent, record}, {"GET", "/v1/submissions", people, ""},
		{"GET", "/v1/records", people, ""}, {"GET", "/readyz", people, ""}, {"GET", "/v1/trials", people, ""}, {"GET", "/v1/trust", people, ""}, {"GET", "/log/checkpoint", people, ""}}
	for _, r := range requests {
		status, text := ask(t.Context(), r.method, r.path, r.token, r.body)
		must.Need(t, status < 300, "%s %s: %d %s", r.method, r.path, status, text)
	}
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	var away atomic.Int64
	for _, r := range requests {
		asking.Go(func() {
			for ctx.Err() == nil {
				switch status, text := ask(ctx, r.method, r.path, r.token, r.body); {
				case status == http.StatusServiceUnavailable:
					away.Add(1)
				case status >= 300 && status != http.StatusTooManyRequests:
					t.Errorf("%s %s: %d %s", r.method, r.path, status, text)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	times := 2 // once in order, once at once
	if os.Getenv("JURAT_TEST_LONG") != "" {
		times = 6
	}
	for n := range times {
		time.Sleep(500 * time.Millisecond)
		if n%2 == 0 {
			server.Halt(t)
		} else {
			server.Kill(t)
		}
		time.Sleep(300 * time.Millisecond)
		server.Restart(t)
	}
	stop()
	asking.Wait()
	must.Hold(t, away.Load() != 0, "nobody was told that the database is away")
	if t.Failed() {
		t.Log(m.said)
	}
}

// TestWrappingKeyOnTheCommandLine: errors about wrapping keys say what to do, a key file is never overwritten, and a
// password is never printed.
func TestWrappingKeyOnTheCommandLine(t *testing.T) {
	m := machines(t, 1)[0]
	m.do("init")
	m.do("keys", "new", "agent", "a")
	database, _ := strings.CutPrefix(m.env[len(m.env)-2], "JURAT_DB=")
	key, _ := strings.CutPrefix(m.env[len(m.env)-1], "JURAT_WRAPPING_KEY=")
	u := must.Get(url.Parse(database))(t)
	password, _ := u.User.Password()
	in := func(args ...string) []string {
		return append([]string{"--data", filepath.Join(t.TempDir(), "data"), "--db", database}, args...)
	}
	other := filepath.Join(t.TempDir(), "other.key")
	doing(t, 0, "keys", "rewrap", "--new", other)
	both := filepath.Join(t.TempDir(), "both.key")
	must.Do(t, os.WriteFile(both, bytes.Join([][]byte{must.Get(os.ReadFile(other))(t), must.Get(os.ReadFile(key))(t)}, nil), 0o600))
	gone, withQuery := *u, *u
	gone.Path += "x"
	withQuery.RawQuery = "sslmode=nonsense&password=" + password
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no wrapping key":      {in("keys", "list"), "jurat keys rewrap --new FILE"},
		"another wrapping key": {in("--wrapping-key", other, "keys", "list"), "the other machines have"},
		"it is there already":  {[]string{"keys", "rewrap", "--new", other}, "never overwritten"},
		"nothing to rewrap":    {[]string{"--data", t.TempDir(), "keys", "rewrap"}, "--db"},
		"no such database":     {[]string{"--data", t.TempDir(), "--db", gone.String(), "--wrapping-key", key, "keys", "list"}, "testx"},
		"an invalid URL":       {[]string{"--data", t.TempDir(), "--db", withQuery.String(), "--wrapping-key", key, "keys", "list"}, "sslmode"},
	} {
		_, said := ran(t, exitCannot, c.args...)
		lacks(t, said, password)
		must.Hold(t, name == "no such database" || strings.Contains(said, c.want), "%s:\n%s", name, said)
	}
	got := doing(t, 0, in("--wrapping-key", both, "keys", "rewrap")...)
	must.Hold(t, strings.HasPrefix(got, "6 files were wrapped again"), "%v", got)
	must.Contain(t, doing(t, 0, in("--wrapping-key", other, "keys", "list")...), "agent")
}

// wantOnceEach requires each acknowledged request in the log exactly once, and any other at most once.
func wantOnceEach(t *testing.T, m *machine, acknowledged map[string]bool) {
	t.Helper()
	must.Do(t, m.start())
	auditor := m.grant("ben", "auditor")
	count, after := map[string]int{}, ""
	for {
		status, doc := m.get(auditor, "/v1/records?limit=500&after="+after)
		must.Need(t, status == http.StatusOK, "%v %v", status, doc)
		var page api.Listing
		must.Do(t, json.Unmarshal([]byte(doc), &page))
		for _, e := range page.Records {
			if e.Actor == machinesAgent {
				count[e.RequestID]++
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for request := range acknowledged {
		must.Equal(t, count[request], 1)
	}
	for _, n := range count {
		must.Equal(t, n, 1)
	}
}
