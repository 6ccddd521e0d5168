//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jurat/client"
	"jurat/client/api"
	"jurat/examples"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/jury"
)

// A composed is a Compose file as the Compose project's own reader understands it.
type composed struct {
	Services map[string]*composedService `json:"services"`
	Secrets  map[string]struct {
		File string `json:"file"`
	} `json:"secrets"`
	Networks map[string]struct {
		Internal bool `json:"internal"`
	} `json:"networks"`
	Volumes map[string]any `json:"volumes"`
}

type composedService struct {
	Image       string             `json:"image"`
	User        string             `json:"user"`
	Entrypoint  []string           `json:"entrypoint"`
	Command     []string           `json:"command"`
	Environment map[string]*string `json:"environment"`
	Secrets     []struct {
		Source string `json:"source"`
		Target string `json:"target"`
	} `json:"secrets"`
	Volumes []struct {
		Type, Source, Target string
		ReadOnly             bool `json:"read_only"`
	} `json:"volumes"`
	Ports []struct {
		Target    int    `json:"target"`
		Published string `json:"published"`
	} `json:"ports"`
	Networks    map[string]any `json:"networks"`
	Healthcheck struct {
		Test []string `json:"test"`
	} `json:"healthcheck"`
	DependsOn map[string]struct {
		Condition string `json:"condition"`
	} `json:"depends_on"`
	Restart     string   `json:"restart"`
	ReadOnly    bool     `json:"read_only"`
	Privileged  bool     `json:"privileged"`
	Tmpfs       []string `json:"tmpfs"`
	CapDrop     []string `json:"cap_drop"`
	CapAdd      []string `json:"cap_add"`
	SecurityOpt []string `json:"security_opt"`
}

// inContainer is the user of the image.
const inContainer = 65532

// A stack is what an operator has unpacked, with the folder of secrets that secrets.sh made. Each service has a folder of its own, with the
// secrets that the file gives it and no others.
type stack struct {
	t       *testing.T
	root    string
	program string
	cert    string
	file    composed
	at      map[string]string // where services listen here, instead of in networks of their own
	running map[string]*exec.Cmd
	said    map[string]*lines
}

// unpacked makes the secrets by the script, and reads a Compose file.
func unpacked(t *testing.T, name string) *stack {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to the users of containers")
	}
	s := &stack{t: t, at: map[string]string{}, running: map[string]*exec.Cmd{}, said: map[string]*lines{}}
	s.root = must.Get(os.MkdirTemp("", "jurat-compose-"))(t)
	t.Cleanup(func() { os.RemoveAll(s.root) })
	found := must.Get(exec.LookPath("jurat"))(t)
	s.program = filepath.Join(s.root, "jurat")
	s.must(exec.Command("chmod", "755", s.root))
	s.must(exec.Command("cp", "-L", found, s.program))
	s.must(exec.Command("cp", "-R", deploy, s.root))
	cert, key := certificateFor(t, t.TempDir())
	s.cert = cert
	s.documented(cert, key)
	s.file = compose(t, s.path(name))
	return s
}

// documented runs the commands of docs/operations.md that come before the start.
func (s *stack) documented(cert, key string) {
	s.t.Helper()
	_, after, _ := strings.Cut(string(must.Get(os.ReadFile("../../docs/operations.md"))(s.t)), "/deploy/compose\n")
	commands, _, ok := strings.Cut(after, "    sudo docker compose")
	must.Need(s.t, strings.Count(commands, "\n") == 2 && ok,
		"docs/operations.md does not say how to begin with Compose, or this test does not find it:\n%s", commands)
	const mine = "/etc/letsencrypt/live/jurat.example/"
	script := exec.Command("bash", "-euc", strings.NewReplacer("sudo ", "", mine+"fullchain.pem", cert, mine+"privkey.pem", key).Replace(commands))
	script.Dir = s.path(".")
	s.must(script)
}

// compose has the Compose project's own reader read a file.
func compose(t *testing.T, file string) composed {
	t.Helper()
	reader := exec.Command("go", "run", "-C", "../../scripts/tools", "./composefile", file)
	var errs bytes.Buffer
	reader.Stderr = &errs
	doc, err := reader.Output()
	must.Need(t, err == nil, "%v\n%s", err, &errs)
	var read composed
	err = json.Unmarshal(doc, &read)
	must.Need(t, err == nil && len(read.Services) != 0, "%v: %s", err, doc)
	return read
}

func (s *stack) path(name string) string { return filepath.Join(s.root, "deploy", "compose", name) }

func (s *stack) must(cmd *exec.Cmd) string {
	s.t.Helper()
	out, err := cmd.CombinedOutput()
	must.Need(s.t, err == nil, "%v: %v\n%s", cmd.Args, err, out)
	return string(out)
}

// folder is the folder of a service: secrets as they would be mounted, and data. It is made once.
func (s *stack) folder(name string) string {
	s.t.Helper()
	folder := filepath.Join(s.root, "of-"+name)
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	for _, sub := range []string{"run/secrets", "tmp", "data"} {
		must.Do(s.t, os.MkdirAll(filepath.Join(folder, sub), 0o755))
	}
	for _, sub := range []string{"tmp", "data"} {
		must.Do(s.t, os.Chown(filepath.Join(folder, sub), inContainer, inContainer))
	}
	for _, secret := range s.file.Services[name].Secrets {
		s.must(exec.Command("cp", "-p", s.file.Secrets[secret.Source].File, filepath.Join(folder, secret.Target)))
	}
	return folder
}

// here turns the words of a service into what they are on this machine.
func (s *stack) here(name, text string) string {
	folder := s.folder(name)
	changes := []string{"/run/secrets/", folder + "/run/secrets/", "/usr/local/bin/jurat", s.program, "database:5432", s.at["database"],
		"0.0.0.0:8417", s.at[name], "0.0.0.0:8443", s.at[name], "127.0.0.1:8443", s.at[name]}
	return strings.NewReplacer(changes...).Replace(text)
}

// within is a command in the container of a service.
func (s *stack) within(name string, words ...string) *exec.Cmd {
	s.t.Helper()
	var args []string
	for _, word := range words {
		args = append(args, s.here(name, word))
	}
	folder := s.folder(name)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "JURAT_DATA=" + folder + "/data", "TMPDIR=" + folder + "/tmp"} // JURAT_DATA is the image's
	for key, value := range s.file.Services[name].Environment {
		must.Need(s.t, value != nil, "%s: %s has no value", name, key)
		cmd.Env = append(cmd.Env, key+"="+s.here(name, *value))
	}
	asUser(cmd, inContainer)
	return cmd
}

// start starts a service by its command. It returns before the service is healthy.
func (s *stack) start(name string, words ...string) {
	s.t.Helper()
	cmd, said := s.within(name, words...), new(lines)
	cmd.Stdout, cmd.Stderr = said, said
	if strings.HasPrefix(s.file.Services[name].Image, "localhost/jurat:") {
		endsWithTest(s.t, cmd)
	}
	must.Do(s.t, cmd.Start())
	s.running[name], s.said[name] = cmd, said
	s.t.Cleanup(func() { s.end(name, syscall.SIGTERM) }) // nginx then ends its own processes, too
}

// node starts a service of jurat's image.
func (s *stack) node(name string) {
	s.t.Helper()
	s.start(name, append([]string{"/usr/local/bin/jurat"}, s.file.Services[name].Command...)...) // the first word is the image's
}

// end ends a service that runs.
func (s *stack) end(name string, signal os.Signal) {
	cmd := s.running[name]
	if cmd == nil {
		return
	}
	s.running[name] = nil
	err := cmd.Process.Signal(signal)
	must.Hold(s.t, err == nil, "%s: %v\n%s", name, err, s.said[name])
	_ = cmd.Wait() // its error says how it ended
}

// health runs the health check of a service once.
func (s *stack) health(name string, env ...string) (string, error) {
	test := s.file.Services[name].Healthcheck.Test
	must.Need(s.t, len(test) >= 2 && test[0] == "CMD", "%s: the health check is %q", name, test)
	check := s.within(name, test[1:]...)
	check.Env = append(check.Env, env...)
	out, err := check.CombinedOutput()
	return string(out), err
}

// healthy waits until a service is.
func (s *stack) healthy(name string, env ...string) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := s.health(name, env...)
		if err == nil {
			return
		}
		must.Need(s.t, !time.Now().After(end), "%s is not healthy: %s\n%s", name, out, s.said[name])
	}
}

// TestComposeOnPostgreSQL starts what postgres.yaml says, by its own commands, environments, secrets and health checks, on a real PostgreSQL and
// behind a real nginx, but in no containers. A trial that was submitted to one node is read on another, and the end of a node stops nobody.
func TestComposeOnPostgreSQL(t *testing.T) {
	t.Parallel()
	s := unpacked(t, "postgres.yaml")
	s.database()
	nodes := []string{"jurat-1", "jurat-2", "jurat-3"}
	for _, name := range nodes {
		s.at[name] = freeAddr(t)
	}
	for _, name := range nodes { // as Compose does, at the same time
		s.node(name)
	}
	for _, name := range nodes {
		s.healthy(name)
	}
	s.proxy(nodes)
	s.healthy("proxy")

	granted := must.Get(s.within("jurat-1", "/usr/local/bin/jurat", "access", "grant", "sam", "submitter", "--reason", "a test", "--by", "tester").Output())(t)
	token := strings.TrimSpace(string(granted))
	first := s.submit(s.client("jurat-1", token))
	s.over(s.client("jurat-2", token), first)
	s.end("jurat-1", syscall.SIGKILL)
	out, err := s.health("jurat-1")
	must.Hold(t, err != nil && strings.Contains(out, "no server answers there"), "a node that was killed is healthy: %s", out)
	s.healthy("proxy")
	people := s.people(token)
	for range 12 { // whichever node nginx would ask
		must.Fail(t, nil)(people.Submission(t.Context(), first))
	}
	second := s.submit(people)
	s.over(s.client("jurat-3", token), second)
	s.node("jurat-1")
	s.healthy("jurat-1")
	s.over(s.client("jurat-1", token), second)
}

// database starts PostgreSQL, and has the file's script make the role and the database in it.
func (s *stack) database() {
	s.t.Helper()
	server := rig.StartPostgres(s.t)
	empty := server.Database(s.t)
	admin := must.Get(url.Parse(rig.Admin(s.t, empty)))(s.t)
	// package rig has made a role and a database already; the image has neither.
	name := strings.TrimPrefix(admin.Path, "/")
	admin.Path = "/postgres"
	conn := must.Get(pgx.Connect(s.t.Context(), admin.String()))(s.t)
	defer conn.Close(context.Background())
	for _, statement := range []string{"DROP DATABASE " + name, "DROP ROLE jurat"} {
		_, err := conn.Exec(s.t.Context(), statement)
		must.Need(s.t, err == nil, "%v", err)
	}
	s.at["database"] = admin.Host
	password, _ := admin.User.Password()
	of := s.file.Services["database"]
	at := slices.IndexFunc(of.Volumes, func(v struct {
		Type, Source, Target string
		ReadOnly             bool `json:"read_only"`
	}) bool {
		return strings.HasPrefix(v.Target, "/docker-entrypoint-initdb.d/")
	})
	must.Need(s.t, at >= 0, "%+v", of.Volumes)
	script := exec.Command("bash", of.Volumes[at].Source)
	script.Env = append(os.Environ(), "PGHOST=127.0.0.1", "PGPORT="+admin.Port(), "PGPASSWORD="+password, "JURAT_PGPASS="+s.folder("database")+"/run/secrets/pgpass")
	s.must(script)
	s.healthy("database", "PGPORT="+admin.Port())
}

// proxy starts nginx with the file that is mounted.
func (s *stack) proxy(nodes []string) {
	s.t.Helper()
	program, of := nginx(s.t), s.file.Services["proxy"]
	must.Need(s.t, len(of.Volumes) == 1 && of.Volumes[0].Target == "/etc/nginx/nginx.conf" && of.User == fmt.Sprintf("%d:%[1]d", inContainer), "%+v", of)
	s.at["proxy"] = freeAddr(s.t)
	folder := s.folder("proxy")
	text := must.Get(os.ReadFile(of.Volumes[0].Source))(s.t)
	site := strings.NewReplacer("/run/secrets/", folder+"/run/secrets/", " /tmp/", " "+folder+"/tmp/").Replace(string(text))
	changes := [][2]string{{"listen 8443 ssl;", "listen " + s.at["proxy"] + " ssl;"}, {"listen 8080;", "listen " + freeAddr(s.t) + ";"}}
	for _, name := range nodes { // here are no names, and Debian's nginx is older than the word
		changes = append(changes, [2]string{"server " + name + ":8417 resolve ", "server " + s.at[name] + " "})
	}
	for _, change := range changes {
		must.Need(s.t, strings.Count(site, change[0]) == 1, "nginx.conf says %q %d times", change[0], strings.Count(site, change[0]))
		site = strings.Replace(site, change[0], change[1], 1)
	}
	conf := filepath.Join(folder, "nginx.conf")
	must.Do(s.t, os.WriteFile(conf, []byte(site), 0o644))
	must.Need(s.t, of.Entrypoint[0] == "nginx", "%q", of.Entrypoint)
	s.start("proxy", append([]string{program, "-c", conf, "-p", folder + "/tmp"}, of.Entrypoint[1:]...)...)
}

// client asks a node, and nothing before it.
func (s *stack) client(name, token string) *client.Client {
	s.t.Helper()
	return must.Get(client.NewClient(client.Config{URL: "http://" + s.at[name], Token: token}))(s.t)
}

// people asks as people do, by the name.
func (s *stack) people(token string) *client.Client {
	s.t.Helper()
	return must.Get(client.NewClient(client.Config{URL: "https://jurat.example", Token: token, HTTP: s.browser("proxy"), Attempts: 1}))(s.t)
}

// browser reaches a service as jurat.example, and checks its certificate.
func (s *stack) browser(name string) *http.Client {
	s.t.Helper()
	roots := x509.NewCertPool()
	must.Need(s.t, roots.AppendCertsFromPEM(must.Get(os.ReadFile(s.cert))(s.t)), "no certificate")
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.at[name])
	}}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (s *stack) submit(to *client.Client) string {
	s.t.Helper()
	card, conversation, err := examples.Read("invoice-inbox")
	must.Do(s.t, err)
	made := must.Get(to.Submit(s.t.Context(), api.NewSubmission{AgentCard: card, Conversation: conversation}))(s.t)
	return made.ID
}

// over waits until a node shows the verdict.
func (s *stack) over(at *client.Client, id string) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		trial := must.Get(at.Submission(s.t.Context(), id))(s.t)
		if trial.State == api.Over {
			must.Hold(s.t, trial.Verdict != nil && trial.Verdict.Position == jury.UnsafeFail, "%+v", trial)
			return
		}
		must.Need(s.t, !time.Now().After(end), "%+v", trial)
	}
}

// TestComposeOnSQLite starts the one node of sqlite.yaml, which ends TLS itself.
func TestComposeOnSQLite(t *testing.T) {
	t.Parallel()
	s := unpacked(t, "sqlite.yaml")
	s.at["jurat"] = freeAddr(t)
	s.node("jurat")
	s.healthy("jurat")
	must.Equal(t, s.file.Services["jurat"].Image, "localhost/jurat:v1.2.3")
	answer := must.Get(s.browser("jurat").Get("https://jurat.example/verify"))(t)
	answer.Body.Close()
	must.Equal(t, answer.StatusCode, http.StatusOK)
	must.Contain(t, s.must(s.within("jurat", "/usr/local/bin/jurat", "access", "grant", "--link", "--at", "https://jurat.example")), "https://jurat.example/sign-in?link=")
	s.end("jurat", syscall.SIGKILL)
	out, err := s.health("jurat")
	must.Hold(t, err != nil, "a node that was killed is healthy: %s", out)
}

// TestComposeGivesLittle: no service has more rights, files or secrets than it needs, and each starts again and says how it is.
func TestComposeGivesLittle(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite.yaml", "postgres.yaml"} {
		s := unpacked(t, name)
		used := map[string]bool{}
		for of, service := range s.file.Services {
			if !service.ReadOnly || service.Privileged || !slices.Equal(service.CapDrop, []string{"ALL"}) || len(service.CapAdd) > 0 || !slices.Equal(service.SecurityOpt, []string{"no-new-privileges:true"}) {
				t.Errorf("%s, %s has rights: %+v", name, of, service)
			}
			must.Hold(t, service.Restart == "unless-stopped" && len(service.Healthcheck.Test) != 0 && slices.Contains(service.Tmpfs, "/tmp"),
				"%s, %s does not start again, does not say how it is, or has no /tmp: %+v", name, of, service)
			must.Hold(t, of == "proxy" || of == "jurat" || len(service.Ports) == 0, "%s, %s is open to others", name, of)
			for _, v := range service.Volumes {
				if _, named := s.file.Volumes[v.Source]; v.Type == "volume" && !named || v.Type == "bind" && !v.ReadOnly || v.Type != "volume" && v.Type != "bind" {
					t.Errorf("%s, %s: %+v", name, of, v)
				}
			}
			for on, how := range service.DependsOn {
				must.Hold(t, how.Condition == "service_healthy", "%s, %s does not wait until %s is healthy", name, of, on)
			}
			for _, secret := range service.Secrets {
				used[secret.Source] = true
			}
		}
		for secret, file := range s.file.Secrets {
			if info, err := os.Stat(file.File); err != nil || !used[secret] || info.Mode().Perm()&0o337 != 0 || info.Size() < 32 {
				t.Errorf("%s: the secret %s: %v, %v, used: %t", name, secret, info, err, used[secret])
			}
		}
		if db := s.file.Networks["database"]; name == "postgres.yaml" && (!db.Internal || len(s.file.Services["database"].Networks) != 1 || s.file.Services["proxy"].Networks["database"] != nil) {
			t.Errorf("others reach the database: %+v", s.file.Networks)
		}
		secretsAreKept(t, s)
	}
}

// secretsAreKept: the script never overwrites secrets, takes no key of another certificate, and leaves nothing behind when it fails.
func secretsAreKept(t *testing.T, s *stack) {
	t.Helper()
	before := must.Get(os.ReadFile(s.path("secrets/wrapping.key")))(t)
	_, other := certificateFor(t, t.TempDir())
	refuses := func(want string, words ...string) {
		t.Helper()
		out, err := exec.Command("bash", append([]string{s.path("secrets.sh")}, words...)...).CombinedOutput()
		must.Hold(t, err != nil && strings.Contains(string(out), want), "%v, want %q: %s", err, want, out)
	}
	refuses("is there already", s.cert, other)
	must.Hold(t, bytes.Equal(before, must.Get(os.ReadFile(s.path("secrets/wrapping.key")))(t)), "the script has made another wrapping key")
	must.Do(t, os.Rename(s.path("secrets"), s.path("kept")))
	refuses("is not the key of", s.cert, other)
	refuses("CERTIFICATE.pem KEY.pem")
	left, err := fs.Glob(os.DirFS(s.path(".")), "secrets*")
	must.Hold(t, err == nil && slices.Equal(left, []string{"secrets.sh"}), "%q, %v", left, err)
}

// asUser runs a command as an ordinary user, as root can.
func asUser(cmd *exec.Cmd, user uint32) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
}
