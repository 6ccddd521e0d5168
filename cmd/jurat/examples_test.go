package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"jurat/internal/listtest"
	"jurat/internal/must"
	"jurat/internal/pgtest"
	"jurat/jurattest"
	"jurat/trustlist"
)

// A rehearsal is what the test of one example adds to the command line that people read.
type rehearsal struct {
	before string                          // a script that prepares the folder of this example
	needs  func(t *testing.T, e *exemplar) // starts what the example talks to, after before
	more   string                          // flags that make it quick, or lead it to a server of the test
	code   int                             // the exit code; 0 if none is documented
	until  string                          // it does not end by itself: it is interrupted when it has said this
	says   string                          // what its output has; empty: not looked at
}

// importedResults writes results of promptfoo.
const importedResults = `echo '{"results":{"results":[{"id":"order-7","prompt":{"raw":"Where is order 7?"},"response":{"output":"Shipped."}}]}}' > results.json`

// rehearsals are the examples of which the prepared folder alone is not enough.
var rehearsals = map[string]rehearsal{
	"import":     {before: importedResults, says: "1 sealed"},
	"trial":      {says: "safe_pass"},
	"trials":     {says: "unsafe_fail"},
	"records":    {says: "support-agent"},
	"reputation": {says: "support-agent"},
	"verify":     {says: "PROVED"},
	"explain":    {says: "support-agent"},
	"card":       {says: "proved"},

	"init":     {before: "jurat backup backups/2026-01-30; rm -r jurat-data"},
	"trust":    {before: "jurat --data theirs init; jurat --data theirs trust > theirs.json"},
	"keys new": {before: "openssl pkey -in other.pem -pubout -out public.pem"},
	"doctor": {says: "taken, with status 204", needs: func(t *testing.T, e *exemplar) {
		outside(t, e)
		served(t, e)
		pager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
		t.Cleanup(pager.Close)
		secret := write(t, filepath.Join(e.folder, "pager.secret"), hookSecret+"\n")
		write(t, filepath.Join(e.folder, "webhook.yaml"), "webhook: {url: '"+pager.URL+"', inward: true, secret: {file: '"+secret+"'}}\n")
	}},
	"keys rewrap": {before: "rm -r jurat-data; jurat keys rewrap --new wrapping.key", needs: func(t *testing.T, e *exemplar) {
		database := pgtest.Database(t)
		e.env = append(e.env, "PGCONNECT_TIMEOUT=60")
		e.stands["postgres://jurat@db.example/jurat"] = database
		e.sh(t, "jurat --db '"+database+"' --wrapping-key wrapping.key init")
	}},
	"access grant": {before: `jurat keys new agent tool-agent`},
	"ca init":      {before: "rm -r agents-ca"},

	"trust eu": {before: "rm -r lists; mkdir lists", needs: fetchable},

	"log monitor": {says: "consistent", needs: served},
	"log witness": {needs: witnessed, says: "cosigned by 1 of 1"},
	"witness":     {until: "http://127.0.0.1:"},

	"log stamp": {needs: outside},
	"tsa":       {says: "freetsa", needs: func(t *testing.T, e *exemplar) { e.outside(t) }},

	"serve":        {until: "http://127.0.0.1:"},
	"record proxy": {until: "http://127.0.0.1:"},
	"record otlp":  {until: "http://127.0.0.1:"},
	"record a2a":   {until: "http://127.0.0.1:"},
	"record run":   {before: `echo 'test "$ANTHROPIC_BASE_URL" && echo I was recorded' > agent.sh`, says: "I was recorded"},
	"record mcp":   {before: `echo 'echo "{\"method\":\"notifications/heard\"}"' > server.sh`, says: "notifications/heard"},
}

// freeAddress matches the fixed addresses of examples, instead of which tests take free ones.
var freeAddress = regexp.MustCompile(`127\.0\.0\.1:(84\d\d|4318)`)

// An exemplar is a folder in which one example is run.
type exemplar struct {
	folder string
	env    []string
	stands map[string]string // what words of the example stand for here
}

// sh runs a script in the folder, and returns what it prints.
func (e *exemplar) sh(t *testing.T, script string) string {
	t.Helper()
	out, said, code := e.run(t, script, "")
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s\nof %s", code, out, said, script)
	}
	return strings.TrimSpace(out)
}

// run runs a script to its end, or until its output has these words.
func (e *exemplar) run(t *testing.T, script, until string) (out, said string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Dir, cmd.Env = e.folder, e.env
	stdout, stderr := &ending{word: until, do: func() { cmd.Process.Signal(syscall.SIGINT) }}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if until != "" {
		endsWithTest(t, cmd)
	}
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatalf("%s: %v", script, err)
	}
	if until != "" && !strings.Contains(stdout.String(), until) {
		t.Fatalf("%s: it ended before it said %q\n%s%s", script, until, stdout, stderr)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// ending does something when its text has a word, once.
type ending struct {
	text bytes.Buffer
	word string
	do   func()
	over bool
}

func (e *ending) String() string { return e.text.String() }

func (e *ending) Write(p []byte) (int, error) {
	n, err := e.text.Write(p)
	if !e.over && e.word != "" && bytes.Contains(e.text.Bytes(), []byte(e.word)) {
		e.over = true
		e.do()
	}
	return n, err
}

// outside starts a time-stamping authority, which https://freetsa.example stands for.
func (e *exemplar) outside(t *testing.T) {
	t.Helper()
	a := must.Get(jurattest.StartTSA())(t)
	t.Cleanup(a.Close)
	write(t, filepath.Join(e.folder, "freetsa-ca.pem"), string(a.PEM()))
	e.stands["https://freetsa.example/tsr"] = a.URL
}

// outside starts an authority, and names it to the installation.
func outside(t *testing.T, e *exemplar) {
	t.Helper()
	e.outside(t)
	e.sh(t, "jurat tsa freetsa "+e.stands["https://freetsa.example/tsr"]+" --root freetsa-ca.pem")
}

// witnessed starts the witness.
func witnessed(t *testing.T, e *exemplar) {
	t.Helper()
	dir := filepath.Join(e.folder, "jurat-witness")
	e.stands["https://witness.example"], _, _ = serve(t, "witness", "--dir", dir, "--addr", "127.0.0.1:0", "--log", filepath.Join(e.folder, "trust.json"))
	e.stands["WITNESS-KEY"] = doing(t, 0, "witness", "--key", "--dir", dir)
}

// served starts the server of the installation.
func served(t *testing.T, e *exemplar) {
	t.Helper()
	e.stands["https://jurat.example"], _, _ = serve(t, "--data", filepath.Join(e.folder, "jurat-data"), "serve", "--addr", "127.0.0.1:0", "--public-entries")
}

// fetchable serves trusted lists, as the EU and a member state do.
func fetchable(t *testing.T, e *exemplar) {
	t.Helper()
	pages := http.NewServeMux()
	server := httptest.NewTLSServer(pages)
	t.Cleanup(server.Close)
	oj, eu, qq := listsOf(t, server.URL)
	for path, page := range map[string]string{"/eu.xml": eu, "/qq.xml": qq} {
		pages.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, page) }) //nolint:errcheck // the client sees what is missing
	}
	write(t, filepath.Join(e.folder, "oj.pem"), oj)
	write(t, filepath.Join(e.folder, "server.pem"), pemOf(server.Certificate().Raw))
	e.env = append(e.env, "SSL_CERT_FILE="+filepath.Join(e.folder, "server.pem"))
	e.stands["--fetch"] = "--fetch --from " + server.URL + "/eu.xml"
}

// listsOf returns certificates of the Official Journal, the list of the lists, and that of QQ, which is at this address.
func listsOf(t *testing.T, url string) (oj, eu, qq string) {
	t.Helper()
	journal, operator := listtest.NewSigner(t, "journal"), listtest.NewSigner(t, "operator")
	lotl := listtest.List{Type: trustlist.ListOfLists, Territory: "EU", Sequence: 1, Issued: "2026-01-01T00:00:00Z", Next: "2136-10-01T00:00:00Z", URIs: []string{"https://journal.example/"},
		Pointers: []listtest.Pointer{{Location: url + "/qq.xml", Type: trustlist.NationalList, Territory: "QQ", Signers: []*listtest.Signer{operator}}}}
	national := listtest.List{Type: trustlist.NationalList, Territory: "QQ", Sequence: 7, Issued: "2026-01-01T00:00:00Z", Next: "2136-10-01T00:00:00Z"}
	return string(journal.PEM()), string(lotl.Sign(t, journal)), string(national.Sign(t, operator))
}

func pemOf(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// prepared is the script that prepares the folder of all examples.
const prepared = `set -eu
for name in private other agent; do
	openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $name.pem
done
openssl pkey -in agent.pem -pubout -out public.pem
jurat init
jurat keys new agent refund-bot --public public.pem --reason "its own key"
openssl pkey -in private.pem -pubout -out public.pem
cp examples/kitchen-return/conversation.json transcript.json
jurat apart support-agent prompt --provable /metadata/amount=decimal:2
jurat seal payload.json > record.json
jurat log checkpoint > old.checkpoint
jurat trial examples/kitchen-return --out case.jurat
jurat trial examples/invoice-inbox --out other.jurat || test $? = 1
trial=$(grep -o '"chain_id":"trial-[^"]*"' case.jurat | head -n 1 | cut -d '"' -f 4)
judged=$(grep -o '"action_type":"final_judgment".*' case.jurat | grep -o '"record_id":"[^"]*"' | head -n 1 | cut -d '"' -f 4)
printf '{"action_type":"human_review","reviewer_id":"hana","timestamp":"%s","original_response_id":"%s","chain_id":"%s","approval_status":"approved_with_modifications","modified_response":{"position":"unsafe_fail"},"changes":"It told nobody."}' \
	"$(date -u +%Y-%m-%dT%H:%M:%S.999Z)" "$judged" "$trial" | jurat seal > review.json
sh sign-card.sh
jurat ca init --ca agents-ca --name "Example Ltd agents"
openssl req -new -key private.pem -subj /CN=courier -addext subjectAltName=URI:urn:jurat:agent:courier -out request.pem
jurat ca issue --ca agents-ca request.pem > certificate.pem
jurat trust > trust.json
jurat log prove operator-keys > keys.jurat
jurat witness --init witness.example/w1 > witness.txt
jurat access grant ines reviewer --reason "she reviews" > token
jurat log checkpoint > now.checkpoint
`

// saidByAgent is what the agent of the prepared folder said.
const saidByAgent = `{"agent_id":"support-agent","request_id":"r-1","timestamp":"2026-01-31T16:15:00Z","chain_id":"order-4711","chain_position":1,"model":"m","model_version":"1",
"prompt":"I want my money back.","response":"The transfer approved by your bank is on its way.","parameters":{},"metadata":{"amount":12.50,"user_id":"u-7"}}`

const cardOfAgent = `{"capabilities":{"streaming":false},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"description":"Answers about refunds","name":"refund-bot",` +
	`"skills":[{"description":"Grants them","id":"s","name":"Refunds","tags":["money"]}],` +
	`"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://a.example/v1"}],"version":"1"}`

// signCard signs the card, which has one line in canonical form, with a key for RS256.
const signCard = `set -e
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out owner.pem
openssl pkey -in owner.pem -pubout -out owner-public.pem
jurat keys new reviewer owner --public owner-public.pem --reason "the owner"
url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
card=$(cat card.json)
protected=$(printf '{"alg":"RS256","kid":"owner","typ":"JOSE"}' | url)
signature=$(printf '%s.%s' "$protected" "$(printf %s "$card" | url)" | openssl dgst -sha256 -sign owner.pem | url)
printf '%s,"signatures":[{"protected":"%s","signature":"%s"}]}' "${card%?}" "$protected" "$signature" > signed-card.json
`

// prepareExamples makes the folder that every example gets a copy of.
func prepareExamples(t *testing.T) *exemplar {
	t.Helper()
	needProgram(t, "openssl")
	e := &exemplar{folder: t.TempDir(), env: append(os.Environ(), "JURAT_JURORS=offline"), stands: map[string]string{}}
	file := func(name string) string { return filepath.Join(e.folder, name) }
	must.Do(t, os.Mkdir(file("lists"), 0o700))
	oj, eu, qq := listsOf(t, "https://lists.example")
	for name, content := range map[string]string{"oj.pem": oj, "lists/eu.xml": eu, "lists/qq.xml": qq, "payload.json": saidByAgent, "card.json": cardOfAgent, "sign-card.sh": signCard} {
		write(t, file(name), content)
	}
	must.Do(t, os.CopyFS(file("examples"), os.DirFS("../../examples")))
	e.sh(t, prepared)
	e.stands["RECORD"] = recordID(t, file("record.json"))
	ids := strings.Fields(e.sh(t, "jurat trials --json | grep -o 'trial-[0-9a-f-]*' | sort -u"))
	e.stands["OTHER-TRIAL"], e.stands["TRIAL"] = ids[0], ids[1]
	e.stands["KEY-ID"] = e.sh(t, "jurat keys list | grep support-agent | grep -o 'sha256:[0-9a-f]*'")
	e.stands["TOKEN-ID"] = e.sh(t, "jurat access list | grep -o 'sha256:[0-9a-f]*' | head -n 1")
	return e
}

// copied returns a copy of the prepared folder for one example.
func (e *exemplar) copied(t *testing.T) *exemplar {
	t.Helper()
	to := &exemplar{folder: t.TempDir(), env: slices.Clone(e.env), stands: maps.Clone(e.stands)}
	if out, err := exec.Command("cp", "-a", e.folder+"/.", to.folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return to
}

// line is an example as it is run here.
func (e *exemplar) line(example string) string {
	for _, word := range slices.SortedFunc(maps.Keys(e.stands), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) {
		example = strings.ReplaceAll(example, word, e.stands[word])
	}
	return freeAddress.ReplaceAllString(example, "127.0.0.1:0")
}

// runnable are the commands that do something, and are not only the beginning of others.
func runnable(node *kong.Node) (all []*kong.Node) {
	for _, n := range nodesBelow(node) {
		if n.Leaf() || n.DefaultCmd != nil {
			all = append(all, n)
		}
	}
	return all
}

// exampleLines are the command lines that end the helps, by command.
func exampleLines(t *testing.T) map[string]string {
	t.Helper()
	lines := map[string]string{}
	for path, text := range helps() {
		if _, example, has := strings.Cut("\n\n"+text, "\n\nExample:\n\n    "); has {
			lines[path] = strings.ReplaceAll(example, "\n    ", "\n")
		}
	}
	return lines
}

// TestEveryCommandHasAnExample: the help of each command shows its example, and helps are of commands that exist.
func TestEveryCommandHasAnExample(t *testing.T) {
	lines := exampleLines(t)
	var paths []string
	for _, n := range runnable(model(t)) {
		paths = append(paths, n.Path())
		text := doing(t, 0, append(strings.Fields(n.Path()), "--help")...)
		if line := lines[n.Path()]; line == "" || strings.Count(text, "\nExample:\n\n    "+strings.ReplaceAll(line, "\n", "\n    ")+"\n") != 1 {
			t.Errorf("jurat %s --help does not show the example %q once, after 'Example:'\n%s", n.Path(), line, text)
		}
	}
	for _, path := range append(slices.Collect(maps.Keys(lines)), slices.Collect(maps.Keys(rehearsals))...) {
		if !slices.Contains(paths, path) {
			t.Errorf("there is no command %q", path)
		}
	}
	for _, n := range nodesBelow(model(t)) {
		paths = append(paths, n.Path())
	}
	for path := range helps() {
		if !slices.Contains(paths, path) && path != "complete" {
			t.Errorf("there is a help of %q, and no command", path)
		}
	}
}

// TestExamples runs the example of every command, in a folder as those have it who type it.
func TestExamples(t *testing.T) {
	withoutKeys(t)
	stage := prepareExamples(t)
	for path, line := range exampleLines(t) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			r, e := rehearsals[path], stage.copied(t)
			if r.before != "" {
				e.sh(t, r.before)
			}
			if r.needs != nil {
				r.needs(t, e)
			}
			script := e.line(line) + " " + r.more
			if r.until != "" {
				script = "exec " + script
			}
			out, said, code := e.run(t, script, r.until)
			if code != r.code || !strings.Contains(out, r.says) {
				t.Errorf("%s\nexit code %d, want %d, and %q in its output\n%s%s", script, code, r.code, r.says, out, said)
			}
		})
	}
}
